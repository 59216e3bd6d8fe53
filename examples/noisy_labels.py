"""
Labels that can't be trusted
============================

What happens to an ensemble if some training labels are wrong? We change a growing share of the training
labels of a dataset, train five ensembles of 100 trees, and test them on right labels.
"""

# %%
# Data and classifiers
# --------------------
#
# :func:`kfhe.noise.flip_labels` changes the labels of a share of the rows. The ensemble of the paper has two
# variants: KFHE-e raises the weight of a missed row exponentially, KFHE-l linearly. The robust classifier
# builds on them. AdaBoost and bagging are those of scikit-learn.
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import RepeatedStratifiedKFold

from kfhe import CARTClassifier, KFHEClassifier, RobustKFHEClassifier
from kfhe.noise import flip_labels

X, y = load_iris(return_X_y=True)
n_estimators = 100
n_repeats = 2
noise_levels = (0.0, 0.05, 0.1, 0.15, 0.2)

tree = CARTClassifier()  # the default component of KFHE
models = {
    "Robust KFHE": RobustKFHEClassifier(n_estimators=n_estimators, random_state=0),
    "KFHE-l": KFHEClassifier(emphasis="linear", n_estimators=n_estimators, random_state=0),
    "KFHE-e": KFHEClassifier(emphasis="exponential", n_estimators=n_estimators, random_state=0),
    "bagging": BaggingClassifier(tree, n_estimators=n_estimators, random_state=0),
    "AdaBoost": AdaBoostClassifier(tree, n_estimators=n_estimators, random_state=0),
}

# %%
# Only the training labels are changed; the test labels stay as they are.


def macro_f1(model, noise):
    """Return the mean macro F1 over the folds of a repeated 4-fold cross-validation."""
    folds = RepeatedStratifiedKFold(n_splits=4, n_repeats=n_repeats, random_state=0).split(X, y)
    scores = []
    for fold, (train, test) in enumerate(folds):
        noisy = flip_labels(y[train], noise, random_state=fold)
        predicted = clone(model).fit(X[train], noisy).predict(X[test])
        scores.append(f1_score(y[test], predicted, average="macro"))
    return np.mean(scores)


scores = {name: [macro_f1(model, noise) for noise in noise_levels] for name, model in models.items()}
for name, values in scores.items():
    print(f"{name:12}", *(f"{value:.3f}" for value in values))

# %%
# The figure
# ----------
#
# With right labels all five are close together. AdaBoost keeps raising the weight of the rows that it
# misclassifies, and many of these have wrong labels. KFHE-l raises it less, and its filter trusts each
# component only as far as its error allows. The robust classifier also adapts to the noise.
import matplotlib.pyplot as plt

from kfhe.plotting import NoiseDisplay

display = NoiseDisplay(noise_levels, scores, value_name="macro F1 on unchanged labels").plot()
display.ax_.set_title(f"Iris, {n_repeats} times 4-fold cross-validation, {n_estimators} trees each")
plt.show()
