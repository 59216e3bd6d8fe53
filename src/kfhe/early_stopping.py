"""Early stopping: scores on a validation set, and the number of components with the best one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from kfhe.callbacks import Callback
from kfhe.engine.arrays import exact_sum
from kfhe.kalman import take_step
from kfhe.rows import TrainingRows
from kfhe.sensors import Sensor
from kfhe.tables.columns import some_rows
from kfhe.trace import Iteration, Trace
from kfhe.validation import check_same_length, checks_of, encode_known_labels

if TYPE_CHECKING:
    from kfhe.training import TrainingRun

Floats = NDArray[np.float64]
Scorer = Callable[[Any, Any, Any], float]
ROUNDS, FRACTION = 10, 0.1  # values of early_stopping=True, as elsewhere in scikit-learn


@dataclass(frozen=True)
class EarlyStopping:
    """Stop training once the score on the validation set no longer improves.

    A `RobustKFHEClassifier` uses its uncalibrated scores for this.

    Parameters
    ----------
    rounds : int
        Number of iterations without a better score after which training stops.
    scoring : str or callable, default="neg_log_loss"
        A score of scikit-learn by name, such as "accuracy" or "f1_macro", or a scorer made by
        `sklearn.metrics.make_scorer`. Higher is better.
    validation_fraction : float, default=None
        Share of the training rows that `fit` holds out as the validation set, stratified by class. None:
        `fit` gets the validation set, as `X_val` and `y_val`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from kfhe import EarlyStopping, KFHEClassifier
    >>> X, X_val, y, y_val = train_test_split(*load_iris(return_X_y=True), random_state=0)
    >>> model = KFHEClassifier(early_stopping=EarlyStopping(5, scoring="accuracy"), random_state=0)
    >>> model = model.fit(X, y, X_val=X_val, y_val=y_val)
    >>> model.n_iter_ < 100
    True
    >>> bool(model.score(X_val, y_val) == model.validation_scores_.max())
    True
    >>> stopping = EarlyStopping(5, scoring="accuracy", validation_fraction=0.2)
    >>> model = KFHEClassifier(early_stopping=stopping, random_state=0).fit(X, y)
    >>> model.n_iter_ < 100
    True
    """

    rounds: int
    scoring: str | Scorer = "neg_log_loss"
    validation_fraction: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, Integral) or self.rounds < 1:
            raise ValueError(f"early stopping takes a number of rounds of at least 1, got {self.rounds!r}")
        if not (isinstance(self.scoring, str) or callable(self.scoring)):
            raise TypeError(f"scoring must be a name or a scorer, got {self.scoring!r}")
        share = self.validation_fraction
        if share is not None and not (isinstance(share, Real) and 0 < share < 1):
            raise ValueError(f"validation_fraction must be a number between 0 and 1, or None, got {share!r}")


def resolve(early_stopping: bool | int | EarlyStopping | None) -> EarlyStopping | None:
    """Return the `EarlyStopping` that the parameter ``early_stopping`` stands for."""
    if early_stopping is None or isinstance(early_stopping, EarlyStopping):
        return early_stopping
    if is_boolean(early_stopping):
        return EarlyStopping(ROUNDS) if early_stopping else None
    return EarlyStopping(early_stopping)


def is_boolean(early_stopping: Any) -> bool:
    """Whether ``early_stopping`` is True or None, so that details are up to `fit`."""
    return isinstance(early_stopping, bool | np.bool_)


class ValidationSet:
    """A validation set on which the growing ensemble is scored; each component votes once.

    Parameters
    ----------
    X : array, data frame or sparse matrix
        The rows, in the user's container.
    labels : int32 array
        Position of each row's label in `classes`.
    classes : ndarray
        The class labels.
    scoring : str or scorer
        The metric.
    n_threads : int
        Number of threads.

    Attributes
    ----------
    history : list of float
        The score after h_0 alone, then after each further component.
    """

    def __init__(
        self, X: Any, labels: NDArray[np.int32], classes: NDArray[Any], scoring: str | Scorer, n_threads: int
    ) -> None:
        self.history: list[float] = []
        self._X, self._labels, self._classes = X, labels, classes
        self._n_threads = n_threads
        self._scoring = scoring
        self._scorer: Scorer | None = None
        if scoring != "neg_log_loss":
            from sklearn.metrics import get_scorer  # slow to load

            self._scorer = get_scorer(scoring)

    def catch_up(self, sensor: Sensor, trace: Trace) -> None:
        """Score h_0 and the existing components."""
        self._sensor = sensor
        with checks_of("X_val"):
            self._encoded = sensor.encode(self._X)
        self._initial: Floats = np.ascontiguousarray(sensor.votes(0, self._encoded), dtype=np.float64)
        self._scores = self._initial.copy()
        self.history = [self._score()]
        for step, transition in zip(trace["step"], trace["transition"], strict=True):
            self.follow(step, transition)

    def follow(self, step: float, transition: float) -> float:
        """Update the scores by the votes of the next component, and return the new metric."""
        votes = self._sensor.votes(len(self.history), self._encoded)
        take_step(self._scores, votes, step, self._n_threads, transition=transition, prior=self._initial)
        self.history.append(self._score())
        return self.history[-1]

    def _score(self) -> float:
        if self._scorer is None:  # the default is computed directly, for any subset of the classes
            likelihood = self._scores[np.arange(len(self._labels)), self._labels]
            return float(np.log(likelihood.clip(np.finfo(np.float64).eps, 1)).mean())
        predicted = Predicted(self._classes, self._scores)
        score = float(self._scorer(predicted, self._X, self._classes[self._labels]))
        if not isfinite(score):
            raise ValueError(f"scoring={self._scoring!r} gave {score} for the validation set")
        return score


class Predicted(ClassifierMixin, BaseEstimator):
    """A classifier for scorers, whose scores for some rows are already known.

    It predicts the class with the highest score, unless predictions are given.
    """

    def __init__(self, classes: NDArray[Any], scores: Floats, predicted: NDArray[Any] | None = None) -> None:
        self.classes_ = classes
        self._scores = scores
        self._predicted = classes[scores.argmax(axis=1)] if predicted is None else predicted

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predictions, regardless of X."""
        return self._predicted

    def predict_proba(self, X: Any) -> Floats:
        """Return the scores, regardless of X."""
        return self._scores.copy()


def with_validation(
    estimator: Any, check_table: Callable[[Any], Any], X_val: Any, y_val: Any, rows: TrainingRows
) -> tuple[TrainingRows, ValidationSet | None]:
    """Return the training rows and the validation set, if any: passed to fit, or held out."""
    stopping = resolve(estimator.early_stopping)
    if stopping is not None and is_boolean(estimator.early_stopping) and X_val is None and y_val is None:
        stopping = replace(stopping, validation_fraction=FRACTION)
    if stopping is None or stopping.validation_fraction is None:
        return rows, _given(estimator, check_table, X_val, y_val, rows)
    if X_val is not None or y_val is not None:
        raise ValueError("choose one of validation_fraction and a validation set (X_val, y_val)")
    return _hold_back(rows, stopping)


def _given(
    estimator: Any, check_table: Callable[[Any], Any], X_val: Any, y_val: Any, rows: TrainingRows
) -> ValidationSet | None:
    """Validate X_val and y_val; None if there is no validation set."""
    stopping = resolve(estimator.early_stopping)
    if X_val is None and y_val is None:
        if stopping is not None:
            raise ValueError(
                f"early_stopping={estimator.early_stopping!r} needs a validation set: "
                "fit(X, y, X_val=..., y_val=...), or a share of the training rows: early_stopping=True, or "
                f"EarlyStopping({stopping.rounds}, validation_fraction={FRACTION})"
            )
        return None
    if X_val is None or y_val is None:
        given, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(f"a validation set needs both X_val and y_val, got {given} without {missing}")
    with checks_of("X_val"):
        X_val = check_table(X_val)
    with checks_of("y_val"):
        labels = encode_known_labels(y_val, rows.classes, estimator)
    with checks_of("validation set"):
        check_same_length(X_val, labels)
    scoring = EarlyStopping.scoring if stopping is None else stopping.scoring
    return ValidationSet(X_val, labels, rows.classes, scoring, rows.n_threads)


def _hold_back(rows: TrainingRows, stopping: EarlyStopping) -> tuple[TrainingRows, ValidationSet]:
    """Hold out the share of the training rows that early stopping requires.

    It is stratified: each class gives this share of its rows and keeps at least one. Groups are held out as a
    whole, stratified by the labels of their first rows.
    """
    assert stopping.validation_fraction is not None
    rng, together = np.random.default_rng(rows.seed), rows.together
    order = rng.permutation(len(rows.labels))
    if together is not None:
        order = order[together.first_rows[order] == order]
    held = np.zeros(len(rows.labels), dtype=bool)
    for label in np.unique(rows.labels[order]):
        own = order[rows.labels[order] == label]
        held[own[: min(round(stopping.validation_fraction * len(own)), len(own) - 1)]] = True
    if together is not None:
        held = held[together.first_rows]
        lost = ~np.isin(rows.labels, rows.labels[~held])  # classes without any first row
        held &= ~np.isin(together.numbers, together.numbers[lost])
    if not held.any():
        raise ValueError(
            f"validation_fraction={stopping.validation_fraction} of {len(held)} rows holds out none, as no "
            "class has enough; use a larger share, or pass X_val and y_val to fit"
        )
    kept, others = np.flatnonzero(~held), np.flatnonzero(held)
    base = rows.base[kept] / rows.base[kept].max()  # equal weights become exactly 1
    training = replace(
        rows,
        X=some_rows(rows.X, kept),
        labels=rows.labels[kept],
        base=base / exact_sum(base),
        groups=rows.groups and rows.groups.some(kept),
        copies=rows.copies and rows.copies.some(kept),
    )
    X_val, labels = some_rows(rows.X, others), rows.labels[others]
    return training, ValidationSet(X_val, labels, rows.classes, stopping.scoring, rows.n_threads)


@contextmanager
def best_length(run: TrainingRun, rounds: int, score: float) -> Iterator[Callback]:
    """Yield a callback that stops a run a number of rounds after the best score, then restore that state.

    Parameters
    ----------
    run : TrainingRun
        The run to stop.
    rounds : int
        Maximum number of iterations without a better score.
    score : float
        The current score.
    """
    point = run.checkpoint()

    def compare(row: Iteration) -> bool:
        """Compare the score with the best one; among equal scores, the first is the best."""
        nonlocal score, point
        assert row.validation_score is not None
        if row.validation_score > score:
            score, point = row.validation_score, run.checkpoint()
        return row.iteration - point.n_iter >= rounds

    yield compare
    run.restore(point)


class Watch:
    """After each iteration, scores the validation set and calls the callbacks.

    Parameters
    ----------
    callbacks : sequence of Callback
        The callbacks.
    validation : ValidationSet, optional
        The validation set.
    """

    def __init__(self, callbacks: Sequence[Callback], validation: ValidationSet | None) -> None:
        self._callbacks, self._validation = callbacks, validation

    def __call__(self, row: Iteration) -> bool:
        """Return whether a callback ends training; all of them are called."""
        if self._validation is not None:
            row = row._replace(validation_score=self._validation.follow(row.step, row.transition))
        stopped = False
        for callback in self._callbacks:
            stopped |= bool(callback(row))
        return stopped
