"""Measurements: what a component's votes say about the state, and how noisy that is.

A measurement is of the ensemble's scores for the training rows. It consists of a value for these scores (z)
and an error (R), the noise variance. The loop uses the methods of `Measurement`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kfhe.filter_bank import FilterBank, TreeVotes, Unseen
from kfhe.kalman import Filter, KalmanFilter, RowFilter, Schedule, SomeRows
from kfhe.rows import TrainingRows

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]
Votes = NDArray[np.int32] | Floats  # a class per row (hard voting), or a score per row and class

FUSION = 0.5  # in the paper, a measurement is half way between the state and the votes


class Reading(NamedTuple):
    """The result of one measurement.

    Attributes
    ----------
    state : ndarray of shape (n_rows, n_classes), or another type for the model filter
        z, the measured state.
    error : float
        R, the noise: the weighted share of rows that z misclassifies.
    missed : bool array of shape (n_rows,)
        The misclassified rows.
    component_error : float
        The weighted share of rows that the votes alone misclassify.
    guessed : bool
        Whether the component is no better than guessing, so that the sampling weights are reset.
    """

    state: Any
    error: float
    missed: NDArray[np.bool_]
    component_error: float
    guessed: bool = False


class Measurement(Protocol):
    """The interface of a measurement in the training loop.

    Attributes
    ----------
    fusion : float
        Share of the votes in z. With gain K, the state moves towards the votes by K times `fusion`.
    transition : float
        Share of the state that a time update keeps; the rest is that of h_0.
    """

    fusion: float
    transition: float

    def take(self, state: Floats, votes: Any, counts: Counts) -> Reading:
        """Measure the state.

        Parameters
        ----------
        state : ndarray of shape (n_rows, n_classes)
            The current scores.
        votes : ndarray, or what else the sensor gives
            The component's votes for the training rows.
        counts : int32 array of shape (n_rows,)
            How often each row is in the component's sample; 0: unseen.
        """

    def error(self, state: Floats) -> float:
        """Return the weighted share of training rows that a state misclassifies."""

    def model_filter(self, initial: Floats) -> Filter:
        """Return the model filter, which starts with the scores of h_0."""

    def weight_filter(self) -> KalmanFilter:
        """Return a new filter of the sampling weights."""


class OnTrainingRows:
    """The paper's measurement: between state and votes, judged on all training rows.

    Parameters
    ----------
    rows : TrainingRows
        The rows.
    fusion : float, default=0.5
        Position between the state (0) and the votes (1).
    process_noise : float, sequence of float or callable, default=0.0
        Of the model filter, as in `KalmanFilter`.
    transition : float, default=1.0
        Of the model filter, towards the scores of h_0.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.measurement import OnTrainingRows
    >>> from kfhe.rows import TrainingRows
    >>> labels = np.array([0, 1], dtype=np.int32)
    >>> rows = TrainingRows(None, labels, np.array(["a", "b"]), np.array([0.5, 0.5]), seed=0, n_threads=1)
    >>> state, votes = np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([0, 1], dtype=np.int32)
    >>> reading = OnTrainingRows(rows).take(state, votes, counts=np.array([1, 1], dtype=np.int32))
    >>> reading.state
    array([[0.95, 0.05],
           [0.4 , 0.6 ]])
    >>> reading.error
    0.0
    """

    def __init__(
        self,
        rows: TrainingRows,
        fusion: float = FUSION,
        *,
        process_noise: Schedule = 0.0,
        transition: float = 1.0,
    ) -> None:
        self.fusion, self.process_noise, self.transition = float(fusion), process_noise, float(transition)
        self.rows = rows
        self._guessing = 1 - 1 / rows.n_present
        self._measurer = rows.measurer()
        self._total = float(rows.exchange.sum(self._measurer.total))  # weight of all rows

    def take(self, state: Floats, votes: Votes, counts: Counts) -> Reading:
        """Measure the state on all rows, whether the component has seen them or not."""
        measurer = self._measurer
        missed, alone = self.rows.exchange.sum(measurer.measure(state, votes, self.fusion))
        component_error = alone / self._total
        guessed = component_error >= self._guessing
        return Reading(measurer.measurement, missed / self._total, measurer.missed, component_error, guessed)

    def error(self, state: Floats) -> float:
        """Return the weighted share of training rows that a state misclassifies."""
        return self.rows.exchange.sum(self._measurer.misses(state)) / self._total

    def model_filter(self, initial: Floats) -> Filter:
        """Return a filter of the scores for all training rows."""
        return self.rows.filter(initial, **self._dynamics(initial))

    def _dynamics(self, initial: Floats) -> dict[str, Any]:
        """Return the process noise, transition and prior of the model filter."""
        return {
            "process_noise": self.process_noise,
            "transition": self.transition,
            "prior": 0.0 if self.transition == 1.0 else initial,
        }

    def weight_filter(self) -> KalmanFilter:
        """Return a filter of the sampling weights, which start as the base weights."""
        return self.rows.filter(self.rows.base)


class OnUnseenRows(OnTrainingRows):
    """The paper's measurement on the rows that the component has not seen; other rows are unchanged.

    So no label supports itself: state, misses and errors are those of a model that has not seen the row. This
    requires that h_0 has not seen it either and predicts class shares. A row is measured less often than new
    rows, so it has a variance of its own.

    The error is that of the unseen rows plus one miss and one hit, because a few rows without a miss do not
    prove that a component is perfect.
    """

    def take(self, state: Floats, votes: Votes, counts: Counts) -> Reading:
        """Measure the state of the rows that are not in the sample."""
        rows, unseen = self.rows, counts == 0
        scores: Floats = np.asarray(votes) if votes.ndim == 2 else np.eye(len(rows.classes))[votes]
        measured = state + self.fusion * unseen[:, np.newaxis] * (scores - state)
        missed = measured.argmax(axis=1) != rows.labels
        error = self._unseen_error(unseen, missed)
        component_error = self._unseen_error(unseen, scores.argmax(axis=1) != rows.labels)
        guessed = component_error >= self._guessing
        return Reading(SomeRows(measured, unseen), error, missed, component_error, guessed)

    def model_filter(self, initial: Floats) -> Filter:
        """Return a filter of the scores for all training rows, each with a variance of its own."""
        return self.rows.filter(initial, RowFilter, **self._dynamics(initial))

    def _unseen_error(self, unseen: NDArray[np.bool_], missed: NDArray[np.bool_]) -> float:
        """Return the weighted share of missed rows among the unseen ones, with one miss and one hit added."""
        base, n_unseen = self.rows.base, self.rows.exchange.sum(int(unseen.sum()))
        summed = self.rows.exact_sum
        share = summed(base * (unseen & missed)) / summed(base * unseen) if n_unseen else 0.0
        return (share * n_unseen + 1) / (n_unseen + 2)


class OutOfBag:
    """The robust measurement: the votes, judged on the rows that the component has not seen.

    Parameters
    ----------
    rows : TrainingRows
        The rows.
    bank : FilterBank
        The bank of filters that takes the measurements.
    """

    fusion = transition = 1.0

    def __init__(self, rows: TrainingRows, bank: FilterBank) -> None:
        self._rows, self._bank = rows, bank
        self._measurer = rows.measurer()
        self._total = float(rows.exchange.sum(self._measurer.total))  # weight of all rows

    def take(self, state: Floats, votes: TreeVotes, counts: Counts) -> Reading:
        """Measure the state of the rows that are not in the sample; other rows are unchanged."""
        unseen = Unseen(votes, counts)
        missed, error = self._bank.misses(unseen)
        return Reading(unseen, error, missed, error)

    def error(self, state: Floats) -> float:
        """Return the weighted share of training rows that a state misclassifies."""
        return self._rows.exchange.sum(self._measurer.misses(state)) / self._total

    def model_filter(self, initial: Floats) -> FilterBank:
        """Return the bank; its states start as the class shares."""
        return self._bank

    def weight_filter(self) -> KalmanFilter:
        """Return a filter that keeps only the newest weights, because the emphasis changes."""
        return self._rows.filter(self._rows.base, process_noise=1e6)
