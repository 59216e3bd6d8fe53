"""A Kalman filter for a static state with one scalar variance, and its recursion over the components.

The filter's equations are only here. KFHE runs two of them: the state of the model filter is the ensemble's
scores for the training rows, and the state of the weight filter is the sampling weights. The step by which
each component moved the first state determines the scores of other rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfhe.engine.arrays import correct

Floats = NDArray[np.float64]

Schedule = float | Sequence[float] | Callable[[int], float]  # process noise by time update

TINY = float(np.finfo(np.float64).tiny)
LEAST_LEFT = 1e-200  # minimum factor of a state before `Stages` changes its unit


class Filter(Protocol):
    """The interface of the model filter in the training loop."""

    @property
    def state(self) -> Floats:
        """The current estimate: scores of the training rows."""

    @property
    def variance(self) -> float:
        """The current variance of the estimate."""

    def predict(self) -> None:
        """Time update: predict the next state."""

    def update(self, measurement: Any, noise: float) -> float:
        """Measurement update; return the gain."""


class KalmanFilter:
    """Estimate a state from noisy measurements of it.

    All values of the state have the same variance, so variance and gain are scalars.

    Parameters
    ----------
    state : array-like or float
        Initial estimate of the state, of any shape. It is copied.
    variance : float
        Variance of the initial estimate.
    process_noise : float, sequence of float or callable, default=0.0
        Variance that each time update adds: how much the true state may change. A sequence has one value per
        time update, and the last value is repeated; a function gets the number of the update, from 1.
    transition : float, default=1.0
        Factor by which each time update multiplies the difference of the state from `prior`.
    prior : array-like or float, default=0.0
        The value that the state returns to if the transition is below 1.
    n_threads : int, default=1
        Number of threads for a large state.

    Attributes
    ----------
    state : ndarray
        The current estimate. `update` changes it in place.
    variance : float
        The current variance of the estimate.

    Examples
    --------
    Three measurements of a battery's voltage, each with a noise variance of 0.5. A filter with no initial
    knowledge (a huge variance) ends at their mean:

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
        process_noise: Schedule = 0.0,
        transition: float = 1.0,
        prior: ArrayLike = 0.0,
        n_threads: int = 1,
    ) -> None:
        self.state: Floats = np.array(state, dtype=np.float64, order="C")
        self.variance = _non_negative(variance, "variance")
        self.process_noise = check_schedule(process_noise)
        self.transition = float(transition)
        self.prior: Floats = np.array(prior, dtype=np.float64)
        self.n_threads = n_threads
        self._n_predicted = 0

    def predict(self) -> None:
        """Time update: predict the next state."""
        self._n_predicted += 1
        if self.transition != 1.0:
            self._return()
        self.variance = self._later(self.variance)

    def _return(self) -> None:
        """Move the state towards the prior."""
        self.state *= self.transition
        self.state += (1 - self.transition) * self.prior

    def _later(self, variance: Any) -> Any:
        """Return the variance after a time update."""
        noise, transition = self.process_noise, self.transition
        if type(noise) is not float:  # called twice per iteration, so be quick
            noise = scheduled(noise, self._n_predicted)
        return transition * variance * transition + noise

    def update(self, measurement: ArrayLike, noise: float) -> float:
        """Measurement update: move the state towards a measurement.

        Parameters
        ----------
        measurement : array-like or float
            A measurement, of the shape of the state.
        noise : float
            The variance of the measurement; 0 means that it is exact.

        Returns
        -------
        float
            The gain: with 0 the measurement is ignored, with 1 it replaces the state.
        """
        variance = self.variance
        gain = variance / (variance + _non_negative(noise, "noise") + TINY)
        self._correct(measurement, gain)
        self.variance = variance - gain * variance
        return gain

    def _correct(self, measurement: ArrayLike, gain: float) -> None:
        """Move the state towards a measurement."""
        state, measurement = self.state, np.asarray(measurement, dtype=np.float64)
        if measurement.shape != state.shape:
            raise ValueError(f"measurement has shape {measurement.shape}, the state has {state.shape}")
        correct(state.ravel(), measurement.ravel(), gain, self.n_threads)


class SomeRows(NamedTuple):
    """A measurement of some rows of the state."""

    state: Floats  # of all rows; rows that were not measured are unchanged
    measured: NDArray[np.bool_]  # the measured rows


class RowFilter(KalmanFilter):
    """A Kalman filter with a variance per row, for measurements of some of the rows.

    The parameters are those of `KalmanFilter`, for a state with one row per row. `variance` is that of a row
    which every measurement included, such as new rows.

    Attributes
    ----------
    variances : ndarray of shape (n_rows,)
        The variance of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.kalman import RowFilter, SomeRows
    >>> voltages = RowFilter([[0.0], [0.0]], 1.0)
    >>> voltages.update(SomeRows(np.array([[1.5], [0.0]]), np.array([True, False])), 0.5)
    0.6666666666666666
    >>> voltages.state.ravel()
    array([1., 0.])
    >>> voltages.variances
    array([0.33333333, 1.        ])
    """

    def __init__(self, state: ArrayLike, variance: float, **settings: Any) -> None:
        super().__init__(state, variance, **settings)
        self.variances: Floats = np.full(len(self.state), self.variance)

    def predict(self) -> None:
        """Time update: predict the next state of all rows."""
        super().predict()
        self.variances = self._later(self.variances)

    def update(self, measurement: Any, noise: float) -> float:
        """Measurement update with `SomeRows`; return the gain for new rows."""
        noise = _non_negative(noise, "noise") + TINY
        gains = np.where(measurement.measured, self.variances / (self.variances + noise), 0.0)
        self.state += gains[:, np.newaxis] * (measurement.state - self.state)
        self.variances -= gains * self.variances
        gain = self.variance / (self.variance + noise)
        self.variance -= gain * self.variance
        return gain


def _non_negative(value: float, name: str) -> float:
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)


def check_schedule(process_noise: Schedule) -> Schedule:
    """Validate process noise and return it unchanged; functions are not called."""
    if type(process_noise) is float:
        return _non_negative(process_noise, "process_noise")
    if not callable(process_noise):
        try:
            values = np.atleast_1d(np.asarray(process_noise, dtype=np.float64))
        except OverflowError:  # for example, an int of 400 digits
            raise ValueError("process_noise must be finite, got a number that is too large") from None
        if values.ndim != 1 or not len(values):
            raise ValueError(
                f"process_noise must be a number, a sequence or a function, got {process_noise!r}"
            )
        for value in values.tolist():
            _non_negative(value, "process_noise")
    return process_noise


def scheduled(process_noise: Schedule, time: int) -> float:
    """Return the process noise of a time update, counted from 1."""
    if callable(process_noise):
        return _non_negative(process_noise(time), f"process_noise({time})")
    if isinstance(process_noise, Sequence | np.ndarray):
        return float(process_noise[min(time, len(process_noise)) - 1])
    return float(process_noise)


# The effect of the components' steps. Each component first moves the state back towards h_0 by the share
# 1 - transition (the time update; zero in the paper), then a step towards its votes:
# state += step * (votes - state).


def component_weights(steps: Floats, transitions: Floats | float = 1.0) -> Floats:
    """Return how much each component contributes to the scores: the recursion in closed form.

    Parameters
    ----------
    steps : ndarray of shape (n_iterations,)
        The steps of the components after h_0.
    transitions : ndarray of shape (n_iterations,) or float, default=1.0
        The transitions before these steps.

    Returns
    -------
    ndarray of shape (n_iterations + 1,)
        The weights, h_0 first. They sum to 1.
    """
    left: Floats = np.cumprod(np.append(1.0, ((1 - steps) * transitions)[::-1]))[::-1]
    weights: Floats = np.append(1.0, steps) * left
    weights[0] += ((1 - steps) * (1 - transitions) * left[1:]).sum()
    return weights


class Stages(NamedTuple):
    """Factors that give the scores after each component, h_0 first, from a running sum.

    For each component, multiply the sum by its scale, add its votes times its weight, and add those of h_0
    times its return. The scores are the sum divided by its share.
    """

    scales: Floats
    weights: Floats
    returns: Floats
    shares: Floats


def stages(steps: Floats, transitions: Floats | float = 1.0) -> Stages:
    """Return the factors of all stages; steps and transitions as in `component_weights`."""
    kept = ((1 - steps) * transitions).tolist()
    scales, shares = np.ones(len(kept) + 1), np.ones(len(kept) + 1)
    for t in range(len(kept), 0, -1):
        shares[t - 1] = shares[t] * kept[t - 1]
        if shares[t - 1] < LEAST_LEFT:  # only rounding errors would be left of earlier stages
            scales[t], shares[t - 1] = shares[t - 1], 1.0
    weights = np.append(1.0, steps) * shares
    returns = np.append(0.0, (1 - steps) * (1 - transitions)) * shares
    return Stages(scales, weights, returns, shares)


def take_step(
    state: Floats,
    votes: NDArray[np.int32] | Floats,
    step: float,
    n_threads: int = 1,
    *,
    transition: float = 1.0,
    prior: Floats | float = 0.0,
) -> None:
    """Update the scores of rows that are not trained on, as a component updated those of the training rows.

    Parameters
    ----------
    state : ndarray of shape (n_rows, n_classes)
        The scores; changed in place.
    votes : ndarray
        A class per row, or a score per row and class.
    step : float
        The component's step.
    n_threads : int, default=1
        Number of threads for a large table.
    transition : float, default=1.0
        The transition before this step.
    prior : ndarray, default=0.0
        The scores of h_0.
    """
    if transition != 1.0:
        state *= transition
        state += (1 - transition) * prior
    scores = votes if votes.ndim == 2 else np.eye(state.shape[1])[votes]
    correct(state.ravel(), np.ascontiguousarray(scores, dtype=np.float64).ravel(), step, n_threads)
