"""
What the options of the framework do
====================================

:class:`~kfhe.KFHEClassifier` is the paper's algorithm, and each of its choices is a parameter. This page
varies one at a time, and shows the trace and the scores with right and with wrong labels. The page on the
framework in the guide discusses the results.
"""

# %%
# How it is measured
# ------------------
#
# The traces are from training on wine with a fifth of the labels changed. The scores are macro F1 on
# unchanged labels, averaged over three datasets and repeated 4-fold cross-validation. Of the training labels,
# none (0 %) or a fifth are changed (20 %).

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import f1_score
from sklearn.model_selection import RepeatedStratifiedKFold

from kfhe import CARTClassifier, KFHEClassifier, StateSpace
from kfhe.noise import flip_labels

n_estimators = 100
n_repeats = 2
datasets = [load(return_X_y=True) for load in (load_iris, load_wine, load_breast_cancer)]
X, y = datasets[1]
noisy = flip_labels(y, 0.2, random_state=0)


def folds():
    """Yield training rows and labels, test rows and labels, and the number of the fold."""
    for rows, labels in datasets:
        splits = RepeatedStratifiedKFold(n_splits=4, n_repeats=n_repeats, random_state=0).split(rows, labels)
        for fold, (train, test) in enumerate(splits):
            yield rows[train], labels[train], rows[test], labels[test], fold


def classifier(settings):
    """Return a classifier with some settings, including those of its estimator and its state space."""
    model = KFHEClassifier(CARTClassifier(), state_space=StateSpace(), random_state=0)
    return model.set_params(n_estimators=n_estimators, **settings)


def scores(settings):
    """Return the mean macro F1 after training on right labels, and with a fifth of them wrong."""
    means = []
    for noise in (0.0, 0.2):
        found = []
        for rows, labels, test_rows, test_labels, fold in folds():
            model = classifier(settings)
            predicted = model.fit(rows, flip_labels(labels, noise, random_state=fold)).predict(test_rows)
            found.append(f1_score(test_labels, predicted, average="macro"))
        means.append(np.mean(found))
    return means


def compare(title, variants, column, label):
    """Plot a column of the trace and the scores of some variants, and print the scores."""
    _, (left, right) = plt.subplots(1, 2, figsize=(8, 3), width_ratios=(3, 2), layout="constrained")
    for (name, settings), style in zip(variants.items(), ("-", "--", "-.", ":"), strict=False):
        model = classifier(settings).fit(X, noisy)
        left.plot(range(1, model.n_iter_ + 1), model.trace_[column], style)
        found = scores(settings)
        right.plot(["0 %", "20 %"], found, f"o{style}", label=name)
        print(f"{name:28}", *(f"{score:.3f}" for score in found))
    left.set(title=title, xlabel="iteration", ylabel=label, ylim=(0, None))
    right.set(xlabel="changed training labels", ylabel="macro F1", xlim=(-0.2, 1.2), ylim=(0.8, 0.97))
    right.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    plt.show()


linear = {"emphasis": "linear"}

# %%
# Fusion
# ------
#
# The position of a measurement between the state and the votes. In the paper it is half way.
compare(
    "fusion, KFHE-l",
    {
        "0.25": {"state_space__fusion": 0.25, **linear},
        "0.5, the paper's": linear,
        "1, votes alone": {"state_space__fusion": 1.0, **linear},
    },
    "measurement_error",
    "measurement error R",
)

# %%
# Process noise
# -------------
#
# Variance that each iteration adds. The gain then never falls to 0, so later components count as much as
# earlier ones.
compare(
    "process_noise, KFHE-e",
    {
        "0, the paper's": {},
        "0.001": {"state_space__process_noise": 0.001},
        "0.01": {"state_space__process_noise": 0.01},
    },
    "gain",
    "gain K",
)

# %%
# Transition
# ----------
#
# Share of the state that each iteration keeps; the rest returns to the class shares.
moving = {"state_space__process_noise": 0.01, **linear}
compare(
    "transition, KFHE-l",
    {
        "1, the paper's": linear,
        "0.99, process noise 0.01": {
            "state_space__transition": 0.99,
            "state_space__process_noise": 0.01,
            **linear,
        },
        "0.9, process noise 0.01": {
            "state_space__transition": 0.9,
            "state_space__process_noise": 0.01,
            **linear,
        },
    },
    "gain",
    "gain K",
)

# %%
# Measurement
# -----------
#
# A component is judged by all training rows, or by those that it has not seen.
compare(
    "measurement",
    {
        "KFHE-e": {},
        "KFHE-e, out of bag": {"state_space__measurement": "out-of-bag"},
        "KFHE-l": linear,
        "KFHE-l, out of bag": {"state_space__measurement": "out-of-bag", **linear},
    },
    "training_error",
    "error of the state\n(out of bag: of unseen rows)",
)

# %%
# Emphasis
# --------
#
# How the state determines the weights of the next sample.
compare(
    "emphasis",
    {
        "exponential (KFHE-e)": {},
        "linear (KFHE-l)": linear,
        "margin": {"emphasis": "margin"},
        "margin, out of bag": {"emphasis": "margin", "state_space__measurement": "out-of-bag"},
    },
    "effective_sample_size",
    "effective sample size",
)

# %%
# Shrinkage
# ---------
#
# Fully grown trees memorise wrong labels. A filter down each tree corrects this.
pure = {
    "estimator__min_samples_leaf": 1,
    "estimator__min_samples_split": 2,
    "voting": "soft",
    "state_space__measurement": "out-of-bag",
}
pure["emphasis"] = "margin"
compare(
    "shrinkage, pure trees",
    {
        "0": pure,
        "3": {"estimator__shrinkage": 3, **pure},
        "30": {"estimator__shrinkage": 30, **pure},
        '"auto"': {"estimator__shrinkage": "auto", **pure},
    },
    "training_error",
    "error of unseen rows",
)

# %%
# Several measurements
# --------------------
#
# Number of components drawn with the same weights; and components of two kinds.
kinds = [CARTClassifier(), CARTClassifier(max_features="sqrt")]
compare(
    "n_measurements, KFHE-e",
    {
        "1, the paper's": {},
        "3": {"state_space__n_measurements": 3},
        "10": {"state_space__n_measurements": 10},
        "1 of each of two kinds": {"estimator": kinds},
    },
    "effective_sample_size",
    "effective sample size",
)
