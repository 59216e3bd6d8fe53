"""The base class of the classifiers: fitting, predicting, warm starts, saving."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kfhe import early_stopping
from kfhe.callbacks import Callback, CallbackSupportMixin, FitTasks
from kfhe.cuda.rows import placed
from kfhe.display.notebook import NotebookMixin
from kfhe.display.progress import training_bar
from kfhe.early_stopping import EarlyStopping, ValidationSet, Watch
from kfhe.emphasis import Emphasis
from kfhe.engine.arrays import exact_sum
from kfhe.engine.threads import thread_count
from kfhe.ensemble import Ensemble
from kfhe.forest import Forest
from kfhe.groups import Groups
from kfhe.remarks import TableWarning
from kfhe.rows import TrainingRows
from kfhe.saving.model_file import save
from kfhe.tables.columns import some_rows
from kfhe.trace import Trace
from kfhe.training import TrainingRun
from kfhe.validation import (
    COMMON_CONSTRAINTS,
    NamedParameters,
    check_callbacks,
    check_groups,
    check_same_length,
    check_table,
    encode_labels,
    row_weights,
    seed_from,
    unchanged_on_error,
)

Floats = NDArray[np.float64]


class BaseKFHE(NotebookMixin, CallbackSupportMixin, ClassifierMixin, NamedParameters):
    """A classifier that is trained by the loop of `training.py`.

    Subclasses provide the parts of the loop by `make_run` and `make_emphasis`.
    """

    _saved_as: ClassVar[str]  # name in model files; only for classes that can be loaded
    _found: ClassVar[tuple[str, ...]] = ()  # additional fitted attributes that model files store
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            StrOptions({"auto"}),
            None,
        ],
        "early_stopping": ["boolean", Interval(Integral, 1, None, closed="left"), EarlyStopping, None],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        **COMMON_CONSTRAINTS,
    }

    n_estimators: int
    max_samples: int | float | str | None
    class_weight: Any
    early_stopping: bool | int | EarlyStopping | None
    warm_start: bool
    random_state: Any
    n_jobs: int | None
    device: str
    verbose: int

    @abstractmethod
    def make_run(self, rows: TrainingRows) -> TrainingRun:
        """Create the run: a sensor, a measurement and their filters.

        Parameters
        ----------
        rows : TrainingRows
            The validated training rows.

        Returns
        -------
        TrainingRun
            A run that has only its initial component.
        """

    @abstractmethod
    def make_emphasis(self, run: TrainingRun) -> Emphasis:
        """Return the function that turns misses into measured sampling weights.

        Parameters
        ----------
        run : TrainingRun
            The run.

        Returns
        -------
        Emphasis
            A function of the sampling weights and the misclassified rows.
        """

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        """Train the ensemble.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Their labels: strings, integers or booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights. Rows of weight 0 are ignored; only ratios matter.
        groups : array-like of shape (n_samples,), default=None
            Which rows belong together, such as those of one patient or document. They are drawn together, so
            that a row is only judged by components that have seen none of its group.
        X_val, y_val : default=None
            Rows and labels of a validation set, for `early_stopping` and `validation_scores_`.
            `EarlyStopping` can hold out a share of X instead.
        callbacks : list of Callback, default=None
            Functions that are called with the row of the trace after each iteration. Training ends when one
            of them returns True.

        Returns
        -------
        self
            The fitted classifier. If fitting fails, it is unchanged.
        """
        # State of scikit-learn's callbacks must survive when a failed fit is undone.
        tasks = FitTasks(self, X, y, sample_weight) if hasattr(self, "_skl_callbacks") else None
        with unchanged_on_error(self):
            rows = self._with_copies(self._validate(X, y, sample_weight, groups))
            if self.warm_start and hasattr(self, "_run"):  # hold out the same rows as before
                rows = replace(rows, seed=self._run.rows.seed)
            check = partial(self._check_table, reset=False)
            rows, validation = early_stopping.with_validation(self, check, X_val, y_val, rows)
            self._train(rows, validation, check_callbacks(callbacks), tasks)
            if tasks is not None:
                tasks.finish()
        for remark in getattr(self, "remarks_", ()):
            warn(remark, TableWarning, stacklevel=3)
        return self

    def _train(
        self,
        rows: TrainingRows,
        validation: ValidationSet | None,
        callbacks: Sequence[Callback],
        tasks: FitTasks | None = None,
    ) -> None:
        """Train on validated rows and set the fitted attributes."""
        run = self._start_or_resume(rows)
        with run.undone_on_error():
            with self._watchers(run, validation, tasks) as watchers:
                watch = Watch([*callbacks, *watchers], validation)
                run.train(self.make_emphasis(run), self.n_estimators, watch)
            self._store(run, validation)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row; ties go to the first class.

        It is the class with the highest probability; in a `RobustKFHEClassifier` it depends on `decision`.
        """
        X = self._validate_for_prediction(X)
        classes: NDArray[Any] = self.classes_[self.estimators_.decisions(X, thread_count(self.n_jobs))]
        return classes

    def predict_proba(self, X: Any) -> Floats:
        """Return the class probabilities of each row; they sum to 1."""
        scores = self._scores(X)
        return self.estimators_.probabilities(scores)

    def predict_uncertainty(self, X: Any) -> Floats:
        """Return how far the components disagree about each row.

        The Gini impurity of the scores of a row is the sum of two parts: the impurity within the votes of
        single components, and the variance between them. This is the second part, weighted by component and
        summed over the classes. It is 0 where all components agree.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The uncertainty of each row: 0 to less than 1.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kfhe import KFHEClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = KFHEClassifier(random_state=0).fit(X, y)
        >>> model.predict_uncertainty(X[[0, 106]]).round(2)
        array([0.  , 0.22])
        """
        X = self._validate_for_prediction(X)
        return self.estimators_.spread(X, thread_count(self.n_jobs))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the class probabilities."""
        with np.errstate(divide="ignore"):
            logarithms: Floats = np.log(self.predict_proba(X))
        return logarithms

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf of each row (down) in each tree (across), h_0 first.

        The leaves of a tree are numbered from 0, as in `leaf_weights` of the trees in `estimators_`.
        """
        return self._forest("apply").leaves(self._validate_for_prediction(X), thread_count(self.n_jobs))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the predicted classes after h_0 alone, then after each further component."""
        for scores in self._staged_scores(X):
            yield self.classes_[self.estimators_.decide(scores)]

    def staged_predict_proba(self, X: Any) -> Iterator[Floats]:
        """Yield the probabilities after h_0 alone, then after each further component."""
        for scores in self._staged_scores(X):
            yield self.estimators_.probabilities(scores)

    def fingerprint(self) -> str:
        """Return a hex digest of everything that predictions depend on."""
        return self._forest("fingerprint").digest()

    def save(self, path: Any) -> None:
        """Write the fitted model to a file; `kfhe.load` reads it and has an example.

        The file holds arrays and JSON, and no code: of a function as `emphasis`, only the name is stored. A
        `random_state` that is not an int becomes None. After loading, `fit` starts from scratch, even with
        `warm_start=True`.

        Parameters
        ----------
        path : str, path or binary file
            Where to write. A file is replaced only once the new one is complete.

        Raises
        ------
        ValueError
            The components are not native trees, or labels or categories are neither strings nor numbers. Use
            skops for such models.
        OSError
            The file can't be written.
        """
        save(self, path)

    @property
    def component_weights_(self) -> Floats:
        """The weight of each component in the scores; they sum to 1."""
        check_is_fitted(self)
        return self.estimators_.weights

    @property
    def feature_importances_(self) -> Floats:
        """Feature importances of the components, averaged by component weight."""
        check_is_fitted(self)
        return self.estimators_.importances()

    def _forest(self, asked: str) -> Forest:
        """Return the native trees; raise if the components are something else."""
        check_is_fitted(self)
        if not isinstance(self.estimators_, Forest):
            raise ValueError(f"{asked}() needs native trees (estimator=None, or a CARTClassifier)")
        return self.estimators_

    def _with_copies(self, rows: TrainingRows) -> TrainingRows:
        """Return the rows; classifiers that look for copies group them here."""
        return rows

    def _validate(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> TrainingRows:
        classes, labels = encode_labels(y, self)
        X = self._check_table(X, reset=True)
        check_same_length(X, labels)
        together = None if groups is None else Groups.of(check_groups(groups, len(labels)))
        weights = row_weights(sample_weight, self.class_weight, classes, labels)
        present = weights > 0
        if not present.all():
            X, labels, weights = some_rows(X, present.nonzero()[0]), labels[present], weights[present]
            together = together and together.some(present)
        rows = TrainingRows(
            X,
            labels,
            classes,
            weights / exact_sum(weights),
            seed_from(self.random_state),
            thread_count(self.n_jobs),
            self.max_samples,
            together,
        )
        return placed(rows, self.device)

    @contextmanager
    def _watchers(
        self, run: TrainingRun, validation: ValidationSet | None, tasks: FitTasks | None
    ) -> Iterator[list[Callback]]:
        """Create the callbacks that the parameters require; early stopping keeps the best components."""
        stopping = early_stopping.resolve(self.early_stopping)
        watchers: list[Callback] = []
        with ExitStack() as stack:
            if validation is not None:
                validation.catch_up(run.sensor, run.trace)
                if stopping is not None:
                    best = early_stopping.best_length(run, stopping.rounds, validation.history[-1])
                    watchers.append(stack.enter_context(best))
            if self.verbose:
                watchers.append(stack.enter_context(training_bar(self.n_estimators, len(run.trace))))
            if tasks is not None:
                tasks.start(lambda: {**self._attributes(run, resumes=True), "trace_": deepcopy(run.trace)})
                watchers.append(tasks)
            yield watchers

    def _start_or_resume(self, rows: TrainingRows) -> TrainingRun:
        resumes = self._resumes(rows)
        if resumes and (rows.n_threads < self._run.rows.n_threads or type(rows) is not type(self._run.rows)):
            # Its threads may be gone, as after a fork, or its device; the same seed gets to the same point
            # without them.
            resumes = False
        if resumes:
            return self._run
        return self.make_run(rows.kept() if self.warm_start else rows)

    def _resumes(self, rows: TrainingRows) -> bool:
        """Whether this call of `fit` continues the existing model."""
        if not (self.warm_start and hasattr(self, "_run")):
            return False
        changed = self._run.rows.differences(rows)
        if changed:
            raise ValueError(f"warm_start=True needs the data of the first fit, got other {changed}")
        before, now = self._run_settings, self._component_settings()
        for name in before | now:
            old: Any = before.get(name)
            new: Any = now.get(name)
            if not (new is old or np.array_equal(new, old)):
                raise ValueError(
                    f"warm_start=True can't change {name}: the components were trained with {old!r}; use "
                    "warm_start=False"
                )
        if self.n_estimators < self.n_iter_:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {self.n_iter_} components there are; "
                "with warm_start=True components can only be added"
            )
        return True

    def _component_settings(self) -> dict[str, Any]:
        """Return the parameters that all components have to share."""
        others = ("device", "early_stopping", "emphasis", "n_estimators", "n_jobs", "verbose", "warm_start")
        return {name: value for name, value in self.get_params(deep=False).items() if name not in others}

    def _attributes(self, run: TrainingRun, *, resumes: bool) -> dict[str, Any]:
        """Return the fitted attributes; `resumes`: the run may be continued."""
        components = run.sensor.harvest(run.trace, resumes=resumes)
        return fitted_attributes(run.rows.classes, run.trace, components)

    def _store(self, run: TrainingRun, validation: ValidationSet | None) -> None:
        for name in ("validation_scores_", "_run", "_run_settings"):
            self.__dict__.pop(name, None)
        self.__dict__.update(self._attributes(run, resumes=self.warm_start))
        if validation is not None:
            self.validation_scores_ = np.array(validation.history)
        if self.warm_start:
            self._run, self._run_settings = run, self._component_settings()

    def _scores(self, X: Any) -> Floats:
        """Return the scores of the classes for each row."""
        X = self._validate_for_prediction(X)
        return self.estimators_.scores(X, thread_count(self.n_jobs))

    def _staged_scores(self, X: Any) -> Iterator[Floats]:
        """Yield the scores after h_0 alone, then after each further component."""
        X = self._validate_for_prediction(X)
        yield from self.estimators_.staged_scores(X, thread_count(self.n_jobs))

    def _validate_for_prediction(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._check_table(X, reset=False)

    def _check_table(self, X: Any, *, reset: bool) -> Any:
        """Validate X, at training or at prediction."""
        return check_table(self, X, reset=reset)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")


def fitted_attributes(classes: NDArray[Any], trace: Trace, components: Ensemble) -> dict[str, Any]:
    """Set the fitted attributes from a finished run or a model file."""
    return {
        "classes_": classes,
        "trace_": trace,
        "n_iter_": len(trace),
        "estimators_": components,
    }
