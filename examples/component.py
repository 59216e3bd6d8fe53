"""
Another component
=================

KFHE isn't limited to trees. Any scikit-learn classifier or pipeline can be the component. Here, a logistic
regression on polynomial features is compared with trees.
"""

# %%
# A pipeline as the component
# ---------------------------
#
# The component is cloned ``n_estimators`` times, and each clone is trained on rows drawn by weight. It gets
# rows of your own table, so a ``ColumnTransformer`` works as well.
import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from kfhe import KFHEClassifier
from kfhe.noise import flip_labels
from kfhe.plotting import DecisionRegionsDisplay

X, y = make_moons(300, noise=0.15, random_state=0)
noisy = flip_labels(y, 0.2, random_state=0)
X_test, y_test = make_moons(2000, noise=0.15, random_state=1)

curve = make_pipeline(StandardScaler(), PolynomialFeatures(3), LogisticRegression(max_iter=1000))
models = {
    "trees": KFHEClassifier(emphasis="linear", n_estimators=20, random_state=0),
    "logistic regression on polynomials": KFHEClassifier(
        curve, emphasis="linear", n_estimators=20, random_state=0
    ),
}
for name, model in models.items():
    model.fit(X, noisy)
    print(f"{name}: {model.n_iter_} components, {model.score(X_test, y_test):.3f} on right labels")

# %%
# The figure
# ----------
#
# Trees cut along the axes, polynomials draw curves. Here the true border is a curve and the labels are poor,
# so the stiffer component is better.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (name, model), ax in zip(models.items(), axes, strict=True):
    DecisionRegionsDisplay.from_estimator(model, X, noisy, ax=ax)
    ax.set_title(f"{name}: {model.score(X_test, y_test):.1%}")
plt.show()
