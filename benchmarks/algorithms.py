"""Who is compared: algorithms of the study's registry, with a number of components and of threads."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from kfhe.study.algorithms import SHORT_NAMES, new_classifier
from kfhe.study.encoding import Categorical, encoding_steps
from kfhe.study.plan import Algorithm

OURS = "KFHE-e"
ROBUST = "Robust KFHE"
ONE_HOT = "KFHE-e one-hot"
PEERS = (
    "scikit-learn AdaBoost",
    "scikit-learn Bagging",
    "random forest",
    "extra trees",
    "HistGradientBoosting",
    "LightGBM",
    "XGBoost",
    "CatBoost",
)
NAMES = (*SHORT_NAMES, ONE_HOT)

# Nobody stops early, and nobody is slowed down by what a study fixes. What has no parameter for threads is
# held by OMP_NUM_THREADS, which the worker sets; AdaBoost uses one thread by its nature.
TIMED: dict[str, dict[str, Any]] = {
    "HistGradientBoosting": {"early_stopping": False},
    "LightGBM": {"deterministic": False, "force_row_wise": False},
}
THREADS_OF_PREDICT = {"CatBoost": "thread_count"}


def is_installed(name: str) -> bool:
    """Whether an algorithm's package is there."""
    package = SHORT_NAMES[_registered(name)].package
    return package is None or find_spec(package) is not None


def build(name: str, categorical: Categorical, n_components: int, n_threads: int, **settings: Any) -> Any:
    """Return a classifier that has not been fitted, for a table that `encode` has encoded.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    categorical : Categorical
        The table's categorical columns, as they were before it was encoded.
    n_components, n_threads : int
        Size of the ensemble, and how many threads it may use.
    **settings
        Parameters that are not its defaults.
    """
    registered = _registered(name)
    components = SHORT_NAMES[registered].components
    parameters = {components: n_components} if components else {}
    parameters |= TIMED.get(registered, {}) | settings
    columns = Categorical([], []) if name == ONE_HOT else categorical
    return new_classifier(Algorithm(name, registered, parameters), columns, n_threads=n_threads)


def encode(name: str, X_train: Any, X_test: Any) -> tuple[Any, Any]:
    """Return a table as an algorithm gets it, if it has categories; that is no part of what is timed."""
    categorical = Categorical.of(X_train)
    if not categorical.names:
        return X_train, X_test
    encoding = "one-hot" if name == ONE_HOT else SHORT_NAMES[name].encoding
    for step in encoding_steps(encoding, categorical, build(name, categorical, 1, 1)):
        X_train, X_test = step.fit_transform(X_train), step.transform(X_test)
    return X_train, X_test


def predict_settings(name: str, n_threads: int) -> dict[str, int]:
    """Return the arguments of `predict` that an algorithm needs to use so many threads."""
    return {THREADS_OF_PREDICT[name]: n_threads} if name in THREADS_OF_PREDICT else {}


def _registered(name: str) -> str:
    return OURS if name == ONE_HOT else name
