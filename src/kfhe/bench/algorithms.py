"""Who is compared: one adapter for each algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Settings = dict[str, Any]

OURS = "kfhe"
ONE_HOT = "kfhe-onehot"


@dataclass(frozen=True)
class Algorithm:
    """How to build a classifier, with a number of components and of threads.

    Attributes
    ----------
    class_name : str
        The classifier's class, after the name of its module and a colon.
    settings : callable
        Takes the number of components and of threads, returns the constructor's arguments.
    predict_settings : callable
        Takes the number of threads, returns further arguments of ``predict``.
    """

    class_name: str
    settings: Callable[[int, int], Settings]
    predict_settings: Callable[[int], Settings] = field(default=lambda threads: {})

    @property
    def package(self) -> str:
        """Name of the package that it comes with."""
        return self.class_name.partition(":")[0].partition(".")[0]

    def is_installed(self) -> bool:
        """Whether its package is there."""
        return find_spec(self.package) is not None

    def build(self, n_components: int, n_threads: int) -> Any:
        """Return a classifier that has not been fitted."""
        module, _, name = self.class_name.partition(":")
        return getattr(import_module(module), name)(**self.settings(n_components, n_threads))


def _equal_tree() -> Any:
    """Return scikit-learn's tree with the settings of ours."""
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=30, min_samples_split=20, min_samples_leaf=7)


def _usual(n_components: int, n_threads: int) -> Settings:
    return {"n_estimators": n_components, "n_jobs": n_threads, "random_state": 0}


# Early stopping is off for everybody. What has no setting for threads is held by OMP_NUM_THREADS, which
# the worker sets; AdaBoost uses one thread by its nature.
ALGORITHMS = {
    OURS: Algorithm("kfhe:KFHEClassifier", _usual),
    ONE_HOT: Algorithm("kfhe:KFHEClassifier", _usual),
    "adaboost": Algorithm(
        "sklearn.ensemble:AdaBoostClassifier",
        lambda n, threads: {"estimator": _equal_tree(), "n_estimators": n, "random_state": 0},
    ),
    "bagging": Algorithm(
        "sklearn.ensemble:BaggingClassifier",
        lambda n, threads: {"estimator": _equal_tree(), **_usual(n, threads)},
    ),
    "random-forest": Algorithm("sklearn.ensemble:RandomForestClassifier", _usual),
    "extra-trees": Algorithm("sklearn.ensemble:ExtraTreesClassifier", _usual),
    "hist-gradient-boosting": Algorithm(
        "sklearn.ensemble:HistGradientBoostingClassifier",
        lambda n, threads: {"max_iter": n, "early_stopping": False, "random_state": 0},
    ),
    "lightgbm": Algorithm(
        "lightgbm:LGBMClassifier", lambda n, threads: _usual(n, threads) | {"verbosity": -1}
    ),
    "xgboost": Algorithm("xgboost:XGBClassifier", _usual),
    "catboost": Algorithm(
        "catboost:CatBoostClassifier",
        lambda n, threads: {
            "n_estimators": n,
            "thread_count": threads,
            "random_state": 0,
            "verbose": 0,
            "allow_writing_files": False,
        },
        lambda threads: {"thread_count": threads},
    ),
}
