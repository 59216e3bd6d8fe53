"""KFHEClassifier: the ensemble of the paper as a scikit-learn classifier."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from kfhe import emphasis as emphases
from kfhe.base import BaseKFHE
from kfhe.early_stopping import EarlyStopping
from kfhe.kalman import Schedule, check_schedule
from kfhe.measurement import FUSION, Measurement, OnTrainingRows, OnUnseenRows
from kfhe.rows import TrainingRows
from kfhe.sensors import EstimatorSensor, Sensor, TreeSensor
from kfhe.training import TrainingRun
from kfhe.tree import CARTClassifier
from kfhe.tree_settings import TreeSettings
from kfhe.validation import check_component, check_foreign_table, check_list, check_tree_component

Floats = NDArray[np.float64]

MEASUREMENTS = {"training": OnTrainingRows, "out-of-bag": OnUnseenRows}


class KFHEClassifier(BaseKFHE):
    """Kalman Filter-based Heuristic Ensemble (Pakrashi and Mac Namee, 2019).

    Training is seen as estimating a fixed, unknown state: the ideal classifier. Each component
    classifier is a noisy measurement of it, and a Kalman filter fuses the measurements. A second
    filter estimates the weights by which the next component's training rows are drawn.

    Parameters
    ----------
    estimator : classifier, list of classifiers or None, default=None
        What to train in each iteration. None: a native CART decision tree with the settings below; a
        `CARTClassifier`: one with the settings of that. Else any scikit-learn classifier; it is cloned for
        each component and given resampled rows of X. Those of a list take turns within an iteration.
    emphasis : {"exponential", "linear", "margin"} or callable, default="exponential"
        How a miss raises a row's weight. "exponential" (KFHE-e) is the more accurate on clean labels,
        "linear" (KFHE-l) the more robust to wrong ones. "margin" goes by how narrowly the state has a row
        right or wrong, instead of counting misses. A callable gets the sampling weights and a boolean array
        of the misclassified rows, and returns the measured weights.
    measurement : {"training", "out-of-bag"}, default="training"
        Which rows a component is judged by, and moves: all, as in the paper, or those that are not in its
        sample. Out of bag, errors and misses are those of unseen rows, also `training_error` in the trace.
        That is no estimate of the error on new rows: rows with much weight are in nearly every sample, so
        few components judge them (`RobustKFHEClassifier` has an `oob_score_`, which is one). h_0 has
        no more than the shares of the classes then, as any other would have seen all rows.
    fusion : float, default=0.5
        How far a measurement lies from the state (0) to the votes of the component (1).
    process_noise : float, sequence of float or callable, default=0.0
        What each iteration adds to the variance of the model filter. The more, the more the later components
        count; the paper has none, as the state that it estimates does not change. A sequence has a value for
        each iteration, the last of which stays; a function gets the number of the iteration, from 1.
    transition : float, default=1.0
        What each iteration leaves of the state: below 1 it goes back towards the shares of the classes, from
        which it then starts as well: h_0 is a tree of one leaf. Needs `process_noise`.
    n_measurements : int, default=1
        How many components of each estimator an iteration measures and fuses, one after the other. They are
        drawn by the same weights; weights, process noise and transition follow once for all of them.
    n_estimators : int, default=100
        Number of components to train after the initial one. Training stops earlier once the
        filter is certain (a measurement without any error).
    max_samples : int, float, "auto" or None, default=None
        How many rows a component is trained on, drawn with replacement: a number, or a share of the rows.
        None: as many as there are, as in the paper. "auto": so too up to 50,000 rows, beyond that the
        geometric mean of 50,000 and their number. Fewer rows are faster; errors are measured on all rows
        anyway. h_0 gets such a sample as well.
    voting : {"hard", "soft"}, default="hard"
        Whether a component votes for one class, or by its class probabilities.
    max_depth, min_samples_split, min_samples_leaf, max_leaf_nodes, max_features, splitter, cp, shrinkage, \
max_bins, categorical_features, honest_categories
        Settings of the native trees, as in `CARTClassifier`; the defaults are the paper's. On fewer than
        `min_samples_split` (20) rows no tree can split: lower it, and `min_samples_leaf`. Not used with
        an `estimator` of your own. `shrinkage` needs `voting="soft"`; "auto" goes by the pilot trees' mean.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, on top of `sample_weight`.
    early_stopping : int, EarlyStopping or None, default=None
        When to stop before `n_estimators`: after so many iterations without a better log loss for the
        validation set that `fit` gets, or as `EarlyStopping` says, by another score. The components up to
        the best score are kept (with `warm_start`, those of earlier calls anyway).
    warm_start : bool, default=False
        Whether a further call of `fit`, on the same data, adds components up to `n_estimators`.
    random_state : int, Generator, RandomState or None, default=None
        Where the randomness comes from. An int gives the same model each time.
    n_jobs : int or None, default=None
        Number of threads. It has no influence on the model.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_iter_ : int
        Number of components after h_0.
    gains_, measurement_errors_ : ndarray of shape (n_iterations,)
        Gain K and measurement error R of each iteration.
    variances_ : ndarray of shape (n_iterations + 1,)
        Variance P of the model filter, the initial one (1) first.
    estimators_ : list of n_iterations + 1 classifiers
        The components, h_0 first.
    component_weights_ : ndarray of shape (n_iterations + 1,)
        How much each component contributes to the scores. They sum to 1.
    trace_ : Trace
        What happened in each iteration.
    validation_scores_ : ndarray
        Score for the validation set, if `fit` got one: of h_0 alone, then after each iteration, those that
        early stopping has cut off counted in. Higher is better: the default is the negative log loss.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of the components, averaged by component weight.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KFHEClassifier(emphasis="linear", random_state=0).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    _saved_as: ClassVar[str] = "KFHEClassifier"  # in model files

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseKFHE._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), list, None],
        "emphasis": [StrOptions({"exponential", "linear", "margin"}), callable],
        "measurement": [StrOptions(set(MEASUREMENTS))],
        "fusion": [Interval(Real, 0, 1, closed="right")],
        "process_noise": [Interval(Real, 0, None, closed="left"), "array-like", callable],
        "transition": [Interval(Real, 0, 1, closed="right")],
        "n_measurements": [Interval(Integral, 1, None, closed="left")],
        "voting": [StrOptions({"hard", "soft"})],
        **TreeSettings.constraints(),
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        emphasis: str | emphases.Emphasis = "exponential",
        measurement: str = "training",
        fusion: float = FUSION,
        process_noise: Schedule = 0.0,
        transition: float = 1.0,
        n_measurements: int = 1,
        n_estimators: int = 100,
        max_samples: int | float | str | None = None,
        voting: str = "hard",
        max_depth: int | None = 30,
        min_samples_split: int = 20,
        min_samples_leaf: int = 7,
        max_leaf_nodes: int | None = None,
        max_features: int | float | str | None = None,
        splitter: str = "best",
        cp: float = 0.0,
        shrinkage: float | str = 0.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        honest_categories: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        early_stopping: int | EarlyStopping | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.emphasis = emphasis
        self.measurement = measurement
        self.fusion = fusion
        self.process_noise = process_noise
        self.transition = transition
        self.n_measurements = n_measurements
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.voting = voting
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features = max_features
        self.splitter = splitter
        self.cp = cp
        self.shrinkage = shrinkage
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.honest_categories = honest_categories
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def make_run(self, rows: TrainingRows) -> TrainingRun:
        """Put a run together."""
        n_measurements = self.n_measurements * len(self._components())
        run = TrainingRun(rows, self.make_sensor(rows), self.make_measurement(rows), n_measurements)
        if self._grows_trees() and rows.n_present > 1:
            self._hint_at_few_rows(rows.n_samples)
        return run

    def make_sensor(self, rows: TrainingRows) -> Sensor:
        """Return what trains the components: native trees, or clones of the estimators.

        A subclass with a sensor of its own overrides it.

        Parameters
        ----------
        rows : TrainingRows
            The training rows, checked.

        Returns
        -------
        Sensor
            A new sensor for these rows.
        """
        sensor = TreeSensor if self._grows_trees() else EstimatorSensor
        return sensor(rows, self._components(), self.voting, from_shares=self._from_shares())

    def make_measurement(self, rows: TrainingRows) -> Measurement:
        """Return what measures the components' votes.

        A subclass with another measurement overrides it.

        Parameters
        ----------
        rows : TrainingRows
            The training rows, checked.

        Returns
        -------
        Measurement
            A new measurement for these rows.
        """
        return MEASUREMENTS[self.measurement](
            rows, self.fusion, process_noise=self.process_noise, transition=self.transition
        )

    def make_emphasis(self, run: TrainingRun) -> emphases.Emphasis:
        """Return the emphasis that the parameter stands for."""
        return emphases.resolve(self.emphasis, run.rows, run.model)

    def _validate_params(self) -> None:
        """Check the parameters, one by one and together; fitting, saving and loading ask for it."""
        super()._validate_params()
        check_schedule(self.process_noise)
        self._check_components()
        self._check_combination()

    def _given(self) -> list[Any]:
        """Return the estimators that were given; of native trees the classifier itself has the settings."""
        if isinstance(self.estimator, list):
            return self.estimator
        return [self if self.estimator is None else self.estimator]

    def _components(self) -> list[Any]:
        """Return what the sensor takes: settings of trees, or estimators."""
        return [TreeSettings.of(each) for each in self._given()] if self._grows_trees() else self._given()

    def _check_components(self) -> None:
        """Raise unless the estimators can be components, of one ensemble."""
        if isinstance(self.estimator, list):
            check_list(self.estimator)
        for each in self._given() if self.estimator is not None else ():
            check_component(each)
            if type(each) is CARTClassifier:
                check_tree_component(each)
        if self._grows_trees():
            first, *others = self._components()
            for name in ("max_bins", "categorical_features", "honest_categories", "shrinkage"):
                if any(not np.array_equal(getattr(first, name), getattr(each, name)) for each in others):
                    raise ValueError(f"trees of one forest have to agree in {name}, estimator has several")

    def _check_combination(self) -> None:
        """Raise if parameters make no sense together."""
        if self.shrinkage != 0 and self.estimator is not None:
            raise ValueError(
                f"shrinkage={self.shrinkage!r} is for the native trees of estimator=None; leave one of them "
                "out, or give the shrinkage to the estimator if that is a CARTClassifier"
            )
        if self._grows_trees() and self._given()[0].shrinkage != 0 and self.voting == "hard":
            raise ValueError(
                "shrinkage needs voting='soft': a tree that votes for one class has no shares to shrink"
            )
        if self.transition < 1 and not callable(self.process_noise) and not np.any(self.process_noise):
            raise ValueError(
                f"transition={self.transition} needs a process_noise above 0: without it the filter soon "
                "believes no component any more, and the scores end at the shares of the classes"
            )

    def _hint_at_few_rows(self, n_rows: int) -> None:
        """Warn if there are too few rows for native trees of these settings to split at all."""
        needed = min(max(tree.min_samples_split, 2 * tree.min_samples_leaf) for tree in self._given())
        if n_rows < needed:
            warn(
                f"{n_rows} rows are too few for any tree to split, so all rows get the same scores: with "
                f"these settings it takes {needed}. Lower min_samples_split and min_samples_leaf",
                stacklevel=2,
            )

    def _from_shares(self) -> bool:
        """Whether h_0 is not trained: the state goes back to it, or is to be honest from the start."""
        return self.transition < 1 or self.measurement == "out-of-bag"

    def _grows_trees(self) -> bool:
        """Whether the components are native trees."""
        return self.estimator is None or all(type(each) is CARTClassifier for each in self._given())

    def _check_table(self, X: Any, *, reset: bool) -> Any:
        """Check X; a given estimator gets it as it came, and checks its values itself."""
        if self._grows_trees() or len(getattr(X, "shape", ())) != 2:
            return super()._check_table(X, reset=reset)
        return check_foreign_table(self, X, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for tag in ("allow_nan", "sparse"):
            taken = self._grows_trees() or all(
                getattr(get_tags(each).input_tags, tag) for each in self._given()
            )
            setattr(tags.input_tags, tag, taken)
        return tags
