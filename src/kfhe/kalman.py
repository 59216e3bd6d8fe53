"""A Kalman filter for a static state with one scalar variance, and its recursion over the components.

The only place that knows the filter's equations. KFHE runs two of them: the model filter, whose
state is the ensemble's scores for the training rows, and the weight filter, whose state is the
sampling weights. What each component moved the first one by, its step, is all that other rows need.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfhe.engine.arrays import correct

Floats = NDArray[np.float64]

TINY = float(np.finfo(np.float64).tiny)


class Filter(Protocol):
    """What the training loop needs of the model filter."""

    @property
    def state(self) -> Floats:
        """The current estimate: scores of the training rows."""

    @property
    def variance(self) -> float:
        """The current variance of the estimate."""

    def predict(self) -> None:
        """Time update: let the state move on by one step."""

    def update(self, measurement: Any, noise: float) -> float:
        """Measurement update; return the gain."""


class KalmanFilter:
    """Estimate a state from noisy measurements of it.

    Every cell of the state has the same variance, so variance and gain are scalars.

    Parameters
    ----------
    state : array-like or float
        First estimate of the state, of any shape. It is copied.
    variance : float
        How uncertain that estimate is.
    process_noise : float, default=0.0
        Variance that each time update adds: how much the true state may wander.
    transition : float, default=1.0
        Factor by which each time update multiplies the state.
    n_threads : int, default=1
        Threads that share the correction of a large state.

    Attributes
    ----------
    state : ndarray
        The current estimate. `update` changes it in place.
    variance : float
        The current variance of the estimate.

    Examples
    --------
    Three readings of a battery's voltage, each with a noise variance of 0.5. A filter that knows
    nothing to begin with (a huge variance) ends at their mean:

    >>> from kfhe import KalmanFilter
    >>> voltage = KalmanFilter(0.0, 1e12)
    >>> for reading in [1.4, 1.6, 1.5]:
    ...     voltage.predict()
    ...     gain = voltage.update(reading, 0.5)
    >>> round(float(voltage.state), 6)
    1.5
    >>> round(gain, 6)
    0.333333
    """

    def __init__(
        self,
        state: ArrayLike,
        variance: float,
        *,
        process_noise: float = 0.0,
        transition: float = 1.0,
        n_threads: int = 1,
    ) -> None:
        self.state: Floats = np.array(state, dtype=np.float64, order="C")
        self.variance = _non_negative(variance, "variance")
        self.process_noise = _non_negative(process_noise, "process_noise")
        self.transition = float(transition)
        self.n_threads = n_threads

    def predict(self) -> None:
        """Time update: let the state move on by one step."""
        if self.transition != 1.0:
            self.state *= self.transition
        self.variance = self.transition * self.variance * self.transition + self.process_noise

    def update(self, measurement: ArrayLike, noise: float) -> float:
        """Measurement update: move the state towards a measurement.

        Parameters
        ----------
        measurement : array-like or float
            A measurement of the state, of the state's shape.
        noise : float
            The measurement's variance; 0 means that it is exact.

        Returns
        -------
        float
            The gain: 0 ignores the measurement, 1 believes nothing else.
        """
        state, variance, measurement = self.state, self.variance, np.asarray(measurement, dtype=np.float64)
        if measurement.shape != state.shape:
            raise ValueError(f"measurement has shape {measurement.shape}, the state has {state.shape}")
        gain = variance / (variance + _non_negative(noise, "noise") + TINY)
        correct(state.ravel(), measurement.ravel(), gain, self.n_threads)
        self.variance = variance - gain * variance
        return gain


def _non_negative(value: float, name: str) -> float:
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def component_weights(steps: Floats) -> Floats:
    """Return how much each component contributes to the scores: the filter's recursion, unrolled.

    Each component moves the state a step towards its votes: ``state += step * (votes - state)``.

    Parameters
    ----------
    steps : ndarray of shape (n_iterations,)
        The steps of the components after h_0, which makes the state to begin with.

    Returns
    -------
    ndarray of shape (n_iterations + 1,)
        The weights, h_0's first. They sum to 1.
    """
    weights: Floats = np.append(1.0, steps) * remaining(steps)
    return weights


def remaining(steps: Floats) -> Floats:
    """Return how much of the state after h_0, and after each further component, is left in the end."""
    left: Floats = np.cumprod(np.append(1.0, 1 - steps[::-1]))[::-1]
    return left


def take_step(state: Floats, votes: NDArray[np.int32] | Floats, step: float, n_threads: int = 1) -> None:
    """Move the scores of rows that are not trained on as a component moved those of the training rows.

    Parameters
    ----------
    state : ndarray of shape (n_rows, n_classes)
        The scores; changed in place.
    votes : ndarray
        A class per row, or a score per row and class.
    step : float
        The component's step.
    n_threads : int, default=1
        Threads that share a large table.
    """
    scores = votes if votes.ndim == 2 else np.eye(state.shape[1])[votes]
    correct(state.ravel(), np.ascontiguousarray(scores, dtype=np.float64).ravel(), step, n_threads)
