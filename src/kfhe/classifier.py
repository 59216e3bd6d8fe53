"""KFHEClassifier: the ensemble of the paper as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from kfhe import emphasis as emphases
from kfhe.cart.filtering import exact_sum, measure, missed_units
from kfhe.cart.threads import thread_count
from kfhe.kalman import KalmanFilter
from kfhe.progress import ProgressBar
from kfhe.sensors import EstimatorSensor, Sensor, TrainingRows
from kfhe.trace import Trace
from kfhe.validation import (
    check_component,
    check_same_length,
    encode_labels,
    refuse_sparse,
    row_weights,
    seed_from,
    unchanged_on_error,
)

Floats = NDArray[np.float64]


class KFHEClassifier(ClassifierMixin, BaseEstimator):
    """Kalman Filter-based Heuristic Ensemble (Pakrashi and Mac Namee, 2019).

    Training is seen as estimating a fixed, unknown state: the ideal classifier. Each component
    classifier is a noisy measurement of it, and a Kalman filter fuses the measurements. A second
    filter estimates the weights by which the next component's training rows are drawn.

    Parameters
    ----------
    estimator : classifier or None, default=None
        What to train in each iteration. None: a CART decision tree with the settings below. Else any
        scikit-learn classifier; it is cloned for each component and given resampled rows of X.
    emphasis : {"exponential", "linear"} or callable, default="exponential"
        How a miss raises a row's weight. "exponential" (KFHE-e) is the more accurate on clean labels,
        "linear" (KFHE-l) the more robust to wrong ones. A callable gets the sampling weights and a
        boolean array of the misclassified rows, and returns the measured weights.
    n_estimators : int, default=100
        Number of components to train after the initial one. Training stops earlier once the
        filter is certain (a measurement without any error).
    voting : {"hard", "soft"}, default="hard"
        Whether a component votes for one class, or by its class probabilities.
    max_depth, min_samples_split, min_samples_leaf, max_leaf_nodes, max_features
        Settings of the decision trees, as in scikit-learn; the defaults are the paper's.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, on top of `sample_weight`.
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
    gains_, measurement_errors_ : ndarray of shape (n_iter_,)
        Gain K and measurement error R of each iteration.
    variances_ : ndarray of shape (n_iter_ + 1,)
        Variance P of the model filter, the initial one (1) first.
    estimators_ : list of n_iter_ + 1 classifiers
        The components, h_0 first.
    component_weights_ : ndarray of shape (n_iter_ + 1,)
        How much each component contributes to the scores. They sum to 1.
    trace_ : Trace
        What happened in each iteration.
    feature_importances_ : ndarray of shape (n_features_in_,)
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "emphasis": [StrOptions({"exponential", "linear"}), callable],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "voting": [StrOptions({"hard", "soft"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        emphasis: str | emphases.Emphasis = "exponential",
        n_estimators: int = 100,
        voting: str = "hard",
        max_depth: int | None = 30,
        min_samples_split: int = 20,
        min_samples_leaf: int = 7,
        max_leaf_nodes: int | None = None,
        max_features: int | float | str | None = None,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.emphasis = emphasis
        self.n_estimators = n_estimators
        self.voting = voting
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features = max_features
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KFHEClassifier:
        """Train the ensemble.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Their labels: strings, integers or booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. Zero means that the row is absent; scaling all of them changes nothing.

        Returns
        -------
        KFHEClassifier
            The fitted classifier itself. If fitting fails, it stays as it was.
        """
        with unchanged_on_error(self):
            rows = self._validate(X, y, sample_weight)
            run = self._run if self._resumes(rows) else TrainingRun(self._sensor(rows), rows)
            with run.undone_on_error():
                run.train(emphases.resolve(self.emphasis, rows.base), self.n_estimators, bool(self.verbose))
            self._store(run, rows)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest score for each row; ties go to the first one."""
        positions = self.predict_proba(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[positions]
        return classes

    def predict_proba(self, X: Any) -> Floats:
        """Return the scores of the classes for each row: they sum to 1."""
        X = self._validate_for_prediction(X)
        return self._ensemble.scores(X, self.component_weights_, thread_count(self.n_jobs))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the predicted classes after h_0 alone, then after each further component."""
        for scores in self.staged_predict_proba(X):
            yield self.classes_[scores.argmax(axis=1)]

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Yield the scores after h_0 alone, then after each further component."""
        X = self._validate_for_prediction(X)
        remaining = np.cumprod(np.append(1.0, 1 - self.gains_[::-1] / 2))[::-1]
        sums = self._ensemble.staged_sums(X, self.component_weights_, thread_count(self.n_jobs))
        for total, later in zip(sums, remaining, strict=True):
            yield total / later

    @property
    def feature_importances_(self) -> Floats:
        """Importances of the components, averaged by component weight."""
        check_is_fitted(self)
        importances = [component.feature_importances_ for component in self.estimators_]
        return np.average(importances, axis=0, weights=self.component_weights_)

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        check_component(self.estimator)
        classes, labels = encode_labels(y, self)
        X = self._check_table(X, reset=True)
        check_same_length(X, labels)
        weights = row_weights(sample_weight, self.class_weight, classes, labels)
        present = weights > 0
        if not present.all():
            X, labels, weights = _safe_indexing(X, present.nonzero()[0]), labels[present], weights[present]
        return TrainingRows(
            X,
            labels,
            classes,
            weights / exact_sum(weights),
            seed_from(self.random_state),
            thread_count(self.n_jobs),
        )

    def _sensor(self, rows: TrainingRows) -> Sensor:
        estimator = self.estimator
        if estimator is None:
            estimator = DecisionTreeClassifier(
                max_depth=self.max_depth,
                min_samples_split=self.min_samples_split,
                min_samples_leaf=self.min_samples_leaf,
                max_leaf_nodes=self.max_leaf_nodes,
                max_features=self.max_features,
            )
        return EstimatorSensor(estimator, rows, self.voting)

    def _resumes(self, rows: TrainingRows) -> bool:
        """Whether this call of fit adds to the model that is there."""
        if not (self.warm_start and hasattr(self, "_run")):
            return False
        changed = self._run.rows.differences(rows)
        if changed:
            raise ValueError(f"warm_start=True needs the data of the first fit, got other {changed}")
        settings = self._component_settings()
        for name, value in self._run_settings.items():
            if not (settings[name] is value or np.array_equal(settings[name], value)):
                raise ValueError(
                    f"warm_start=True can't go on with another {name}: there are components trained with "
                    f"{value!r}; use warm_start=False"
                )
        if self.n_estimators < self.n_iter_:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {self.n_iter_} components there are; "
                "with warm_start=True components can only be added"
            )
        return True

    def _component_settings(self) -> dict[str, Any]:
        """Return the parameters that all components have to share."""
        others = ("emphasis", "n_estimators", "n_jobs", "verbose", "warm_start")
        return {name: value for name, value in self.get_params(deep=False).items() if name not in others}

    def _store(self, run: TrainingRun, rows: TrainingRows) -> None:
        self.classes_ = rows.classes
        self.trace_ = run.trace
        self.n_iter_ = len(run.trace)
        self.gains_ = run.trace["gain"]
        self.measurement_errors_ = run.trace["measurement_error"]
        self.variances_ = np.append(1.0, run.trace["posterior_variance"])
        self.component_weights_ = component_weights(self.gains_)
        self.estimators_ = self._ensemble = run.sensor.components
        if self.warm_start:
            self._run, self._run_settings = run, self._component_settings()
        elif hasattr(self, "_run"):
            del self._run, self._run_settings

    def _validate_for_prediction(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._check_table(X, reset=False)

    def _check_table(self, X: Any, *, reset: bool) -> Any:
        """Check X; a given estimator gets it as it came, and checks its values itself."""
        refuse_sparse(X, self)
        if self.estimator is not None and len(getattr(X, "shape", ())) == 2:
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "component_weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None or get_tags(self.estimator).input_tags.allow_nan
        return tags


class TrainingRun:
    """The state of training: two Kalman filters, a sensor that feeds them, and the trace.

    Parameters
    ----------
    sensor : Sensor
        Trains the components.
    rows : TrainingRows
        The training rows.
    """

    def __init__(self, sensor: Sensor, rows: TrainingRows) -> None:
        self.sensor = sensor
        self.rows = rows
        self.trace = Trace()
        self.model = KalmanFilter(sensor.initial(), 1.0, n_threads=rows.n_threads)
        self.weights = self._uninformed_weights()
        self._units = (rows.base * 2.0**60 + 0.5).astype(np.int64)
        self._total_units = int(self._units.sum())

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Forget the iterations of a training that fails, so that the run can still be resumed."""
        n_iter = len(self.trace)
        filters = (deepcopy(self.model), deepcopy(self.weights)) if n_iter else (self.model, self.weights)
        try:
            yield
        except BaseException:
            self.trace.cut(n_iter)
            self.sensor.keep(n_iter + 1)
            self.model, self.weights = filters
            raise

    def train(self, emphasis: emphases.Emphasis, n_estimators: int, verbose: bool) -> None:
        """Run the filters until there are ``n_estimators`` components, or nothing is left to learn."""
        rows, trace, model = self.rows, self.trace, self.model
        no_better_than_guessing = 1 - 1 / rows.n_present
        measurement = np.empty_like(model.state)
        missed = np.empty(len(rows.labels), dtype=bool)
        with ProgressBar(n_estimators, len(trace), shown=verbose) as bar:
            while len(trace) < n_estimators and model.variance > 0 and rows.n_present > 1:
                started = perf_counter()
                model.predict()
                self.weights.predict()
                for resets in (0, 1):
                    votes = self.sensor.read(self.weights.state, len(trace) + 1, resets)
                    error, component_error = self._measure(votes, measurement, missed)
                    if component_error < no_better_than_guessing or resets:
                        break
                    self.weights = self._uninformed_weights()
                effective_sample_size = 1 / float(self.weights.state @ self.weights.state)
                prior_variance = model.variance
                gain = model.update(measurement, error)
                if model.variance > 0:  # else this was the last iteration
                    self.weights.update(emphasis(self.weights.state, missed), error)
                    self._normalise(self.weights.state)
                trace.append(
                    measurement_error=error,
                    prior_variance=prior_variance,
                    posterior_variance=model.variance,
                    gain=gain,
                    component_error=component_error,
                    training_error=missed_units(model.state, rows.labels, self._units, rows.n_threads)
                    / self._total_units,
                    effective_sample_size=effective_sample_size,
                    resets=resets,
                    seconds=perf_counter() - started,
                )
                bar.advance(error, model.variance, gain)

    def _uninformed_weights(self) -> KalmanFilter:
        return KalmanFilter(self.rows.base, 1.0, n_threads=self.rows.n_threads)

    def _measure(self, votes: Any, measurement: Floats, missed: NDArray[np.bool_]) -> tuple[float, float]:
        """Take the measurement; return its error and the error of the votes alone."""
        rows = self.rows
        units, component_units = measure(
            self.model.state,
            votes,
            rows.labels,
            self._units,
            measurement,
            missed.view(np.uint8),
            rows.n_threads,
        )
        return units / self._total_units, component_units / self._total_units

    def _normalise(self, weights: Floats) -> None:
        total = exact_sum(weights, self.rows.n_threads)
        if not total > 0:
            raise ValueError("emphasis left no row with a positive weight to sample from")
        weights /= total


def component_weights(gains: Floats) -> Floats:
    """Return how much each component contributes to the scores: the filter's recursion, unrolled."""
    halves = np.append(1.0, gains / 2)
    later: Floats = np.cumprod(np.append(1.0, 1 - halves[:0:-1]))[::-1]
    return halves * later
