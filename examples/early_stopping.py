"""
When to stop
============

More components rarely harm KFHE, but they take time. This page shows the score after each component, and lets
a validation set decide how many are kept.
"""

# %%
# A validation set
# ----------------
#
# The digits, with a tenth of the training labels changed. Early stopping needs rows that are not trained on,
# with right labels.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from kfhe import EarlyStopping, KFHEClassifier
from kfhe.noise import flip_labels
from kfhe.plotting import StagedScoreDisplay

n_estimators = 100
X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
X_val, X_test, y_val, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
y_train = flip_labels(y_train, 0.1, random_state=0)

# %%
# Training stops after 15 iterations without a better accuracy. The model keeps the components up to
# the best one.
stopping = EarlyStopping(15, scoring="accuracy")
short = KFHEClassifier(n_estimators=n_estimators, early_stopping=stopping, random_state=0)
short.fit(X_train, y_train, X_val=X_val, y_val=y_val)
full = KFHEClassifier(n_estimators=n_estimators, random_state=0).fit(X_train, y_train)
for name, model in {"stopped early": short, "in full": full}.items():
    print(f"{name}: {model.n_iter_} components, {model.score(X_test, y_test):.3f} on test rows")

# %%
# The figure
# ----------
#
# The score rises steeply at first, then hardly. The line marks the components that early stopping keeps.
display = StagedScoreDisplay.from_estimator(full, X_val, y_val, name="validation rows")
StagedScoreDisplay.from_estimator(full, X_test, y_test, name="test rows", ax=display.ax_)
display.ax_.axvline(short.n_iter_, color="0.4", linestyle=":", label="kept by early stopping")
display.ax_.set_title("Accuracy after each component, digits")
display.ax_.legend(loc="lower right")
plt.show()
