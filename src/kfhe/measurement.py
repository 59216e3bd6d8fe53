"""Measurements: what a component's votes say about the state, and how far they can be trusted.

A measurement is taken of the ensemble's scores for the training rows. It says what these scores should be
(z), and its error (R) says how noisy that is. The loop knows no more of it than `Measurement` lists.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.arrays import Measurer
from kfhe.rows import TrainingRows

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]
Votes = NDArray[np.int32] | Floats  # a class per row (hard voting), or a score per row and class

FUSION = 0.5  # the paper's: a measurement lies half way between the state and the votes


class Reading(NamedTuple):
    """What one measurement gave.

    Attributes
    ----------
    state : ndarray of shape (n_rows, n_classes)
        z, what the state should be.
    error : float
        R, the measurement's noise: the weighted share of rows that it misclassifies.
    missed : bool array of shape (n_rows,)
        Which rows these are.
    component_error : float
        The weighted share of rows that the votes alone misclassify.
    """

    state: Floats
    error: float
    missed: NDArray[np.bool_]
    component_error: float


class Measurement(Protocol):
    """What the training loop needs of a measurement.

    Attributes
    ----------
    fusion : float
        Share of the votes in z. A gain of K moves the state towards them by a step of K times `fusion`.
    """

    fusion: float

    def take(self, state: Floats, votes: Votes, counts: Counts) -> Reading:
        """Measure the state.

        Parameters
        ----------
        state : ndarray of shape (n_rows, n_classes)
            The scores so far.
        votes : ndarray
            What the component votes for the training rows.
        counts : int32 array of shape (n_rows,)
            How often each row is in the component's sample: 0 if it has not seen the row.
        """

    def error(self, state: Floats) -> float:
        """Return the weighted share of training rows that a state misclassifies."""


class OnTrainingRows:
    """The paper's measurement: between state and votes, judged on all training rows.

    Parameters
    ----------
    rows : TrainingRows
        The rows.
    fusion : float, default=0.5
        How far from the state (0) to the votes (1) it lies.

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

    def __init__(self, rows: TrainingRows, fusion: float = FUSION) -> None:
        self.fusion = fusion
        self.rows = rows
        self._measurer = Measurer(rows.labels, rows.base, len(rows.classes), rows.n_threads)

    def take(self, state: Floats, votes: Votes, counts: Counts) -> Reading:
        """Measure the state; all rows count, whether the component has seen them or not."""
        error, component_error = self._measurer.measure(state, votes, self.fusion)
        return Reading(self._measurer.measurement, error, self._measurer.missed, component_error)

    def error(self, state: Floats) -> float:
        """Return the weighted share of training rows that a state misclassifies."""
        return self._measurer.error(state)
