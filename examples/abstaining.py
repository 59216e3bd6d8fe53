"""
Leaving rows without an answer
==============================

A classifier may leave uncertain rows to a person. How far does the error among the answered rows fall? And
how should rows be ordered: by :meth:`~kfhe.RobustKFHEClassifier.predict_uncertainty`, or by the probability
of the most likely class?
"""

# %%
# How it is measured
# ------------------
#
# By cross-validation on three datasets, with right training labels and with a fifth of them changed. Test
# labels are always right.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import RepeatedStratifiedKFold

from kfhe import RobustKFHEClassifier
from kfhe.noise import flip_labels

n_estimators = 100
n_repeats = 2
datasets = {"breast cancer": load_breast_cancer, "digits": load_digits, "wine": load_wine}
answered = np.linspace(0.5, 1, 11)


def orders(model, rows, random):
    """Return the uncertainty of each row, for three ways of ordering them."""
    return {
        "highest probability": -model.predict_proba(rows).max(axis=1),
        "uncertainty": model.predict_uncertainty(rows),
        "at random": random.uniform(size=len(rows)),
    }


def errors(X, y, noise):
    """Return the error among the answered rows, for each order and share of answered rows."""
    found = {}
    folds = RepeatedStratifiedKFold(n_splits=4, n_repeats=n_repeats, random_state=0).split(X, y)
    for fold, (train, test) in enumerate(folds):
        model = RobustKFHEClassifier(n_estimators=n_estimators, random_state=0)
        model.fit(X[train], flip_labels(y[train], noise, random_state=fold))
        wrong = model.predict(X[test]) != y[test]
        for name, doubt in orders(model, X[test], np.random.default_rng(fold)).items():
            surest = wrong[np.argsort(doubt, kind="stable")]
            curve = [surest[: round(share * len(surest))].mean() for share in answered]
            found.setdefault(name, []).append(curve)
    return {name: np.mean(curves, axis=0) for name, curves in found.items()}


# %%
# The figure
# ----------
#
# Both orders leave few errors among the answered rows. With right labels, they hardly differ; with wrong
# labels, the highest probability is better. The page on uncertainty in the guide explains what the other one
# is for.
from kfhe.display.palette import BLUE, GREY, VERMILION

styles = [(BLUE, "-"), (VERMILION, "--"), (GREY, ":")]
figure, axes = plt.subplots(2, 3, figsize=(10, 6), sharex=True, sharey="row", layout="constrained")
shown = [0.5, 0.7, 0.8, 0.9, 1]
print(f"{'error among the answered, %':48}", *(f"{share:6.0%}" for share in shown))
for column, (dataset, load) in zip(axes.T, datasets.items(), strict=True):
    for ax, noise in zip(column, (0.0, 0.2), strict=True):
        curves = errors(*load(return_X_y=True), noise)
        for (name, curve), (colour, style) in zip(curves.items(), styles, strict=True):
            ax.plot(100 * answered, 100 * curve, style, color=colour, label=name)
            figures = np.interp(shown, answered, 100 * curve)
            print(f"{dataset:15}{noise:4.0%} changed  {name:20}", *(f"{error:6.2f}" for error in figures))
        ax.set_title(f"{dataset}, {noise:.0%} of labels changed")
        ax.set_ylabel("error among the answered, %")
    ax.set_xlabel("rows answered, %")
axes[0, 0].legend(fontsize="small")
plt.show()
