"""KFHEClassifier: the ensemble of the paper as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from kfhe import early_stopping
from kfhe import emphasis as emphases
from kfhe.callbacks import Callback, CallbackSupportMixin, FitTasks
from kfhe.early_stopping import BestLength, EarlyStopping, ValidationSet, Watch
from kfhe.engine.arrays import exact_sum
from kfhe.engine.threads import thread_count
from kfhe.ensemble import Ensemble
from kfhe.forest import Forest
from kfhe.look.notebook import NotebookMixin
from kfhe.look.progress import ProgressBar
from kfhe.measurement import Measurement, OnTrainingRows
from kfhe.rows import TrainingRows
from kfhe.saving.model_file import save
from kfhe.sensors import EstimatorSensor, Sensor, TreeSensor
from kfhe.trace import Trace
from kfhe.training import TrainingRun
from kfhe.tree import CARTClassifier
from kfhe.tree_settings import TreeSettings
from kfhe.validation import (
    COMMON_CONSTRAINTS,
    check_callbacks,
    check_component,
    check_same_length,
    check_table,
    check_tree_component,
    encode_labels,
    refuse_sparse,
    row_weights,
    seed_from,
    unchanged_on_error,
)

Floats = NDArray[np.float64]


class KFHEClassifier(NotebookMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Kalman Filter-based Heuristic Ensemble (Pakrashi and Mac Namee, 2019).

    Training is seen as estimating a fixed, unknown state: the ideal classifier. Each component
    classifier is a noisy measurement of it, and a Kalman filter fuses the measurements. A second
    filter estimates the weights by which the next component's training rows are drawn.

    Parameters
    ----------
    estimator : classifier or None, default=None
        What to train in each iteration. None: a native CART decision tree with the settings below; a
        `CARTClassifier`: one with the settings of that. Else any scikit-learn classifier; it is cloned for
        each component and given resampled rows of X.
    emphasis : {"exponential", "linear"} or callable, default="exponential"
        How a miss raises a row's weight. "exponential" (KFHE-e) is the more accurate on clean labels,
        "linear" (KFHE-l) the more robust to wrong ones. A callable gets the sampling weights and a
        boolean array of the misclassified rows, and returns the measured weights.
    n_estimators : int, default=100
        Number of components to train after the initial one. Training stops earlier once the
        filter is certain (a measurement without any error).
    voting : {"hard", "soft"}, default="hard"
        Whether a component votes for one class, or by its class probabilities.
    max_depth, min_samples_split, min_samples_leaf, max_leaf_nodes, max_features, cp, max_bins, \
categorical_features
        Settings of the native trees, as in `CARTClassifier`; the defaults are the paper's. Not used with
        an `estimator` of your own.
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
        "estimator": [HasMethods(["fit", "predict"]), None],
        "emphasis": [StrOptions({"exponential", "linear"}), callable],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "voting": [StrOptions({"hard", "soft"})],
        "early_stopping": [Interval(Integral, 1, None, closed="left"), EarlyStopping, None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        **TreeSettings.constraints(),
        **COMMON_CONSTRAINTS,
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
        cp: float = 0.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        class_weight: dict[Any, float] | str | None = None,
        early_stopping: int | EarlyStopping | None = None,
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
        self.cp = cp
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> KFHEClassifier:
        """Train the ensemble.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Their labels: strings, integers or booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. Zero means that the row is absent; scaling all of them changes nothing.
        X_val, y_val : default=None
            Rows and labels that are not trained on: a validation set, for `early_stopping` and
            `validation_scores_`.
        callbacks : list of Callback, default=None
            Functions that are called with each iteration's row of the trace. Training ends when one of
            them returns True.

        Returns
        -------
        KFHEClassifier
            The fitted classifier itself. If fitting fails, it stays as it was.
        """
        # What scikit-learn's callbacks need to be told of an error stays outside of what an error undoes.
        tasks = FitTasks(self, X, y, sample_weight) if hasattr(self, "_skl_callbacks") else None
        with unchanged_on_error(self):
            rows = self._validate(X, y, sample_weight)
            check = partial(self._check_table, reset=False)
            validation = early_stopping.validation_set(self, check, X_val, y_val, rows)
            own = check_callbacks(callbacks)
            run = self._start_or_resume(rows)
            with run.undone_on_error(), self._watchers(run, validation, tasks) as watchers:
                emphasis = emphases.resolve(self.emphasis, rows.base)
                run.train(emphasis, self.n_estimators, Watch([*own, *watchers], validation))
            self._store(run, validation)
            if tasks is not None:
                tasks.finish()
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest score for each row; ties go to the first one."""
        positions = self.predict_proba(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[positions]
        return classes

    def predict_proba(self, X: Any) -> Floats:
        """Return the scores of the classes for each row: they sum to 1."""
        X = self._validate_for_prediction(X)
        return self.estimators_.scores(X, thread_count(self.n_jobs))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the predicted classes after h_0 alone, then after each further component."""
        for scores in self.staged_predict_proba(X):
            yield self.classes_[scores.argmax(axis=1)]

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Yield the scores after h_0 alone, then after each further component."""
        X = self._validate_for_prediction(X)
        yield from self.estimators_.staged_scores(X, thread_count(self.n_jobs))

    def fingerprint(self) -> str:
        """Return a hex digest of what determines the predictions: equal for models that predict alike."""
        check_is_fitted(self)
        if not isinstance(self.estimators_, Forest):
            raise ValueError("fingerprint() needs native trees (estimator=None, or a CARTClassifier)")
        return self.estimators_.digest()

    def save(self, path: Any) -> None:
        """Write the fitted model to a file that `kfhe.load` reads; there is an example there.

        The file holds all that prediction and display need, as arrays and JSON, and no code: a function
        that is the `emphasis` is remembered by its name only. A `random_state` that is not an int becomes
        None. After loading, `fit` starts anew, also with `warm_start=True`.

        Parameters
        ----------
        path : str, path or binary file
            Where to write. A file is replaced only once the new one is complete.

        Raises
        ------
        ValueError
            The model has components other than native trees, or has labels or categories other than
            strings and numbers; skops saves such models.
        OSError
            The file can't be written.
        """
        save(self, path)

    @property
    def component_weights_(self) -> Floats:
        """How much each component contributes to the scores. They sum to 1."""
        check_is_fitted(self)
        return self.estimators_.weights

    @property
    def feature_importances_(self) -> Floats:
        """Importances of the components, averaged by component weight."""
        check_is_fitted(self)
        return self.estimators_.importances()

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        check_component(self.estimator)
        if type(self.estimator) is CARTClassifier:
            check_tree_component(self.estimator)
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

    @contextmanager
    def _watchers(
        self, run: TrainingRun, validation: ValidationSet | None, tasks: FitTasks | None
    ) -> Iterator[list[Callback]]:
        """Give the callbacks that the parameters ask for; early stopping ends at the best length."""
        stopping = early_stopping.resolve(self.early_stopping)
        watchers: list[Callback] = []
        with ExitStack() as stack:
            if validation is not None:
                validation.catch_up(run.sensor, run.trace["step"])
                if stopping is not None:
                    best = BestLength(run, stopping.rounds, validation.history[-1])
                    watchers.append(stack.enter_context(best))
            if self.verbose:
                bar = ProgressBar(self.n_estimators, len(run.trace))
                watchers.append(stack.enter_context(bar))
            if tasks is not None:
                tasks.start(lambda: {**self._attributes(run, resumes=True), "trace_": deepcopy(run.trace)})
                watchers.append(tasks)
            yield watchers

    def _start_or_resume(self, rows: TrainingRows) -> TrainingRun:
        resumes = self._resumes(rows)
        if resumes and rows.n_threads < self._run.rows.n_threads:
            # Its threads may be gone, as after a fork; the same seed gets to the same point without them.
            rows, resumes = replace(rows, seed=self._run.rows.seed), False
        if resumes:
            return self._run
        return TrainingRun(rows, self.make_sensor(rows), self.make_measurement(rows))

    def make_sensor(self, rows: TrainingRows) -> Sensor:
        """Return what trains the components. A subclass with a sensor of its own overrides it.

        Parameters
        ----------
        rows : TrainingRows
            The training rows, checked.

        Returns
        -------
        Sensor
            A new sensor for these rows.
        """
        if self._grows_trees():
            settings = TreeSettings.of(self if self.estimator is None else self.estimator)
            return TreeSensor(rows, settings, self.voting)
        return EstimatorSensor(rows, self.estimator, self.voting)

    def make_measurement(self, rows: TrainingRows) -> Measurement:
        """Return what measures the components' votes. A subclass with another measurement overrides it.

        Parameters
        ----------
        rows : TrainingRows
            The training rows, checked.

        Returns
        -------
        Measurement
            A new one for these rows: the paper's.
        """
        return OnTrainingRows(rows)

    def _grows_trees(self) -> bool:
        """Whether the components are native trees."""
        return self.estimator is None or type(self.estimator) is CARTClassifier

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
        others = ("early_stopping", "emphasis", "n_estimators", "n_jobs", "verbose", "warm_start")
        return {name: value for name, value in self.get_params(deep=False).items() if name not in others}

    def _attributes(self, run: TrainingRun, *, resumes: bool) -> dict[str, Any]:
        """Return the fitted attributes; `resumes`: the run is to go on."""
        components = run.sensor.harvest(run.trace["step"], resumes=resumes)
        return fitted_attributes(run.rows.classes, run.trace, components)

    def _store(self, run: TrainingRun, validation: ValidationSet | None) -> None:
        for name in ("validation_scores_", "_run", "_run_settings"):
            self.__dict__.pop(name, None)
        self.__dict__.update(self._attributes(run, resumes=self.warm_start))
        if validation is not None:
            self.validation_scores_ = np.array(validation.history)
        if self.warm_start:
            self._run, self._run_settings = run, self._component_settings()

    def _validate_for_prediction(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._check_table(X, reset=False)

    def _check_table(self, X: Any, *, reset: bool) -> Any:
        """Check X; a given estimator gets it as it came, and checks its values itself."""
        if self._grows_trees() or len(getattr(X, "shape", ())) != 2:
            return check_table(self, X, reset=reset)
        refuse_sparse(X, self)
        return validate_data(self, X, reset=reset, skip_check_array=True)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._grows_trees() or get_tags(self.estimator).input_tags.allow_nan
        return tags


def fitted_attributes(classes: NDArray[Any], trace: Trace, components: Ensemble) -> dict[str, Any]:
    """Return what a fitted classifier has, from what training left or a model file holds."""
    return {
        "classes_": classes,
        "trace_": trace,
        "n_iter_": len(trace),
        "gains_": trace["gain"],
        "measurement_errors_": trace["measurement_error"],
        "variances_": np.append(1.0, trace["posterior_variance"]),
        "estimators_": components,
    }
