"""The algorithms of studies and benchmarks: by short name, or any scikit-learn classifier by its import path.

To add one, add an entry to `SHORT_NAMES`. Each classifier gets categories and missing values in the best form
that it supports:

- KFHE, CART, GBM, S-GBM, HistGradientBoosting, LightGBM and XGBoost: both unchanged;
- CatBoost: categories as text, where missing is a category; missing numbers unchanged;
- AdaBoost and Bagging: codes, which their CART treats as categories, where missing is a category; missing
  numbers filled with the median (scikit-learn's AdaBoost does not support them);
- forest on target encoding: categories by scikit-learn's TargetEncoder, missing numbers unchanged;
- random forest, extra trees, CleanLearning (cleanlab with a random forest) and ensembles of scikit-learn's
  trees: one-hot categories, where missing is a category; missing numbers unchanged if supported, otherwise
  filled with the median;
- classifiers by import path: the same, with standardised numbers unless only positive ones are supported.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from kfhe.study.encoding import Categorical, encoding_steps
from kfhe.study.errors import StudyError
from kfhe.tables.errors import did_you_mean

if TYPE_CHECKING:
    from kfhe.study.plan import Algorithm, Plan

Parameters = dict[str, Any]
Maker = Callable[[Categorical, Parameters], Any]


@dataclass(frozen=True)
class ShortName:
    """How to create an algorithm with a short name.

    Attributes
    ----------
    make : callable
        Gets the categorical columns and the parameters.
    encoding : str
        "native", "text", "codes", "one-hot" or "target encoding": the form of categories and missing values.
    package, extra : str or None
        The package that it needs in addition to kfhe's own dependencies, and the extra that installs it.
    components : str or None
        Its parameter for the number of components, if any.
    threads : str
        Its parameter for the number of threads, if any.
    """

    make: Maker
    encoding: str = "native"
    package: str | None = None
    extra: str = "study"
    components: str | None = "n_estimators"
    threads: str = "n_jobs"


def check(plan: Plan) -> None:
    """Create each algorithm of a plan once, so that mistakes are found before anything runs."""
    for algorithm in plan.algorithms:
        _made(algorithm, Categorical([], []))


def build(algorithm: Algorithm, X: Any, seed: int) -> Any:
    """Create an unfitted classifier for the columns of a data frame.

    Parameters
    ----------
    algorithm : Algorithm
        The algorithm, with its parameters.
    X : DataFrame
        Numbers and categories, possibly with missing values.
    seed : int
        Its random state, if it has one.

    Returns
    -------
    classifier
        A scikit-learn classifier, or a pipeline of an encoding and one.
    """
    from sklearn.pipeline import make_pipeline

    categorical = Categorical.of(X)
    # One thread, because the cells of a study run in parallel
    classifier = new_classifier(algorithm, categorical, seed=seed, n_threads=1)
    known = SHORT_NAMES.get(algorithm.algorithm)
    steps = encoding_steps(known.encoding if known else "one-hot, scaled", categorical, classifier)
    return make_pipeline(*steps, classifier) if steps else classifier


def new_classifier(
    algorithm: Algorithm, categorical: Categorical, *, seed: int = 0, n_threads: int = 1
) -> Any:
    """Create an unfitted classifier for an encoded table.

    Parameters
    ----------
    algorithm : Algorithm
        The algorithm, with its parameters.
    categorical : Categorical
        The categorical columns of the table before encoding.
    seed, n_threads : int
        Its random state and number of threads, if it has them.

    Returns
    -------
    classifier
        A scikit-learn classifier.

    Raises
    ------
    StudyError
        There is no such algorithm, or it can't be created.
    """
    classifier = _made(algorithm, categorical)
    known = SHORT_NAMES.get(algorithm.algorithm)
    takes = classifier.get_params()
    fixed = {"random_state": seed, known.threads if known else "n_jobs": n_threads}
    return classifier.set_params(**{name: value for name, value in fixed.items() if name in takes})


def versions_for(plan: Plan) -> dict[str, str]:
    """Return the versions of the packages that a plan's results depend on."""
    names = ["kfhe", "numpy", "pandas", "scikit-learn", "scipy", *_packages(plan)]
    found = {name: known or "unknown" for name, known in versions_of(names).items() if name != "sklearn"}
    return {"python": platform.python_version(), **found}


def _packages(plan: Plan) -> list[str]:
    """Return the packages of a plan's algorithms, in addition to kfhe's own dependencies."""
    names = {each.algorithm for each in plan.algorithms}
    of_short_names = {SHORT_NAMES[name].package for name in names & SHORT_NAMES.keys()}
    return sorted(filter(None, {name.split(".")[0] for name in names - SHORT_NAMES.keys()} | of_short_names))


def versions_of(packages: Iterable[str]) -> dict[str, str | None]:
    """Return the versions of packages; None if one is not installed.

    Examples
    --------
    >>> from kfhe.study.algorithms import versions_of
    >>> versions_of(["nothing_like_it"])
    {'nothing_like_it': None}
    """
    return {package: _version(package) for package in packages}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # the package has another name than the module, or there is none
        try:
            return str(getattr(import_module(package), "__version__", "unknown"))
        except ImportError:
            return None


def components_of(classifier: Any) -> int | None:
    """Return the number of components (or rounds) of a fitted ensemble; None for other classifiers."""
    for attribute in ("estimators_", "n_estimators_", "n_iter_", "tree_count_"):
        value = getattr(classifier, attribute, None)
        if value is not None and attribute == "estimators_":
            return len(value)
        if isinstance(value, int | np.integer):
            return int(value)
    return None


def _made(algorithm: Algorithm, categorical: Categorical) -> Any:
    key = f"algorithms.{algorithm.name}"
    known = SHORT_NAMES.get(algorithm.algorithm)
    try:
        if known is not None:
            return known.make(categorical, dict(algorithm.parameters))
        return _imported(algorithm.algorithm, key)(**algorithm.parameters)
    except ImportError as error:
        needed = known.package if known and known.package else algorithm.algorithm
        hint = f'pip install "kfhe[{known.extra}]"' if known else str(error)
        raise StudyError(f"'{key}' needs the package {needed}, which can't be imported: {hint}") from error
    except (TypeError, ValueError) as error:
        raise StudyError(f"'{key}': {error}") from error


def _imported(path: str, key: str) -> Any:
    from sklearn.base import ClusterMixin, OutlierMixin, RegressorMixin

    module, _, name = path.rpartition(".")
    if not module:
        near = did_you_mean(path, SHORT_NAMES) or f"; there are {', '.join(SHORT_NAMES)}."
        raise StudyError(
            f"'{key}': there is no algorithm '{path}'{near} "
            "Any scikit-learn classifier can be named by its import path, "
            "such as sklearn.linear_model.LogisticRegression"
        )
    found = getattr(import_module(module), name, None)
    if not (isinstance(found, type) and hasattr(found, "fit") and hasattr(found, "predict")):
        raise StudyError(f"'{key}': {path} is not a classifier: it must be a class with fit and predict")
    if issubclass(found, (RegressorMixin, ClusterMixin, OutlierMixin)):
        raise StudyError(f"'{key}': {path} is not a classifier: it does not predict classes")
    return found


def _of(path: str, **defaults: Any) -> Maker:
    """Create a classifier by its import path."""

    def make(categorical: Categorical, parameters: Parameters) -> Any:
        module, _, name = path.rpartition(".")
        return getattr(import_module(module), name)(**{**defaults, **parameters})

    return make


def _kfhe(emphasis: str) -> Maker:
    def make(categorical: Categorical, parameters: Parameters) -> Any:
        from kfhe import CARTClassifier, KFHEClassifier, StateSpace

        classifier = KFHEClassifier(CARTClassifier(), emphasis=emphasis, state_space=StateSpace())
        return classifier.set_params(**parameters)  # also nested ones, such as estimator__max_depth

    return make


def _cart_of_codes(categorical: Categorical, parameters: Parameters) -> Any:
    from kfhe import CARTClassifier

    return CARTClassifier(categorical_features=categorical.positions or None, n_jobs=1, **parameters)


# scikit-learn's tree with the settings of CARTClassifier
_their_tree = _of(
    "sklearn.tree.DecisionTreeClassifier", max_depth=30, min_samples_split=20, min_samples_leaf=7
)


def _of_trees(name: str, tree: Maker) -> Maker:
    """Create an ensemble of trees; parameters that it does not have are those of the trees."""

    def make(categorical: Categorical, parameters: Parameters) -> Any:
        ensemble = getattr(import_module("sklearn.ensemble"), name)
        own = {key for key in signature(ensemble).parameters if key != "estimator"}
        of_tree = {key: value for key, value in parameters.items() if key not in own}
        of_ensemble = {key: value for key, value in parameters.items() if key in own}
        return ensemble(tree(categorical, of_tree), **{"n_estimators": 100, **of_ensemble})

    return make


def _catboost(categorical: Categorical, parameters: Parameters) -> Any:
    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1, "random_state": 0}
    return _of("catboost.CatBoostClassifier", **quiet, cat_features=categorical.names)(
        categorical, parameters
    )


_lightgbm = partial(_of, "lightgbm.LGBMClassifier", verbosity=-1, deterministic=True, force_row_wise=True)
# LightGBM's defaults for categories are for large data: categories with fewer than 100 rows are ignored.
# These settings split categories as in R's gbm: from min_child_samples rows on, without smoothing.
_gbm = partial(
    _lightgbm,
    n_estimators=100,
    max_depth=3,
    num_leaves=8,
    learning_rate=0.1,
    min_child_samples=10,
    min_data_per_group=10,
    cat_smooth=0.0,
    cat_l2=0.0,
)
_FOREST = "sklearn.ensemble.RandomForestClassifier"


SHORT_NAMES: dict[str, ShortName] = {
    "KFHE-e": ShortName(_kfhe("exponential")),
    "KFHE-l": ShortName(_kfhe("linear")),
    "Robust KFHE": ShortName(_of("kfhe.RobustKFHEClassifier")),
    "AdaBoost": ShortName(_of_trees("AdaBoostClassifier", _cart_of_codes), "codes"),
    "GBM": ShortName(_gbm(), package="lightgbm"),
    "S-GBM": ShortName(_gbm(subsample=0.5, subsample_freq=1), package="lightgbm"),
    "Bagging": ShortName(_of_trees("BaggingClassifier", _cart_of_codes), "codes"),
    "CART": ShortName(_of("kfhe.CARTClassifier"), components=None),
    "scikit-learn AdaBoost": ShortName(_of_trees("AdaBoostClassifier", _their_tree), "one-hot"),
    "scikit-learn Bagging": ShortName(_of_trees("BaggingClassifier", _their_tree), "one-hot"),
    "random forest": ShortName(_of(_FOREST), "one-hot"),
    "random forest, leaves of 5": ShortName(_of(_FOREST, min_samples_leaf=5), "one-hot"),
    "forest on target encoding": ShortName(_of(_FOREST, min_samples_leaf=5), "target encoding"),
    "extra trees": ShortName(_of("sklearn.ensemble.ExtraTreesClassifier"), "one-hot"),
    "HistGradientBoosting": ShortName(
        _of("sklearn.ensemble.HistGradientBoostingClassifier", categorical_features="from_dtype"),
        components="max_iter",
    ),
    "LightGBM": ShortName(_lightgbm(), package="lightgbm"),
    "XGBoost": ShortName(
        _of("xgboost.XGBClassifier", enable_categorical=True), package="xgboost", extra="peers"
    ),
    "CatBoost": ShortName(_catboost, "text", package="catboost", extra="peers", threads="thread_count"),
    "CleanLearning": ShortName(
        _of("kfhe.study.clean_learning.CleanLearningForest"), "one-hot", package="cleanlab", extra="peers"
    ),
}
