"""
What wrong labels do to decision regions
========================================

Two features, two classes, and a fifth of the labels wrong. The figure shows the decision regions of four
classifiers, and which wrong labels they have learned.
"""

# %%
# Two half-moons
# --------------
#
# The classes are easy to separate. Then 20 % of the labels are changed, and the classifiers are trained on
# these labels.
import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.ensemble import AdaBoostClassifier

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.noise import flip_labels
from kfhe.plotting import DecisionRegionsDisplay

n_estimators = 100
X, y = make_moons(500, noise=0.15, random_state=0)
noisy = flip_labels(y, 0.2, random_state=0)
X_test, y_test = make_moons(2000, noise=0.15, random_state=1)

tree = CARTClassifier()
models = {
    "one tree": tree,
    "AdaBoost": AdaBoostClassifier(tree, n_estimators=n_estimators, random_state=0),
    "KFHE-e": KFHEClassifier(n_estimators=n_estimators, random_state=0),
    "KFHE-l": KFHEClassifier(emphasis="linear", n_estimators=n_estimators, random_state=0),
}
for name, model in models.items():
    accuracy = model.fit(X, noisy).score(X_test, y_test)
    print(f"{name:9} {accuracy:.3f} on new rows with right labels")

# %%
# The figure
# ----------
#
# The stronger the shade, the more certain the classifier. Points are training labels; those that the
# classifier contradicts have a cross. About 100 of the 500 labels are wrong, so a good classifier has about
# 100 crosses, and no islands.
figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
for (name, model), ax in zip(models.items(), axes.flat, strict=True):
    DecisionRegionsDisplay.from_estimator(model, X, noisy, ax=ax)
    ax.set_title(f"{name}: {model.score(X_test, y_test):.1%} right on new rows")
plt.show()
