"""Measurements and filters of rows on a GPU, to the bit those of `engine.arrays` and `engine.bank`."""

from __future__ import annotations

from math import ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.cuda.array import CudaArray
from kfhe.cuda.device import Device
from kfhe.cuda.work import RowWork
from kfhe.engine.arrays import Measurer, unit_of
from kfhe.engine.bank import restored
from kfhe.kalman import KalmanFilter

Floats = NDArray[np.float64]

BANK_UNIT = 2.0**50


class CudaMeasurer:
    """Computes measurements of the training rows and their errors, as `Measurer` does.

    Parameters
    ----------
    device : Device
        The device.
    labels, base, n_classes
        As in `Measurer`.

    Attributes
    ----------
    measurement, missed : CudaArray
        As in `Measurer`.
    total : int
        The weight of all rows, in units.
    """

    def __init__(self, device: Device, labels: NDArray[np.int32], base: Floats, n_classes: int) -> None:
        self._arguments = (labels, base, n_classes)
        self.total = int((base * 2.0**60 + 0.5).astype(np.int64).sum())
        self.measurement = CudaArray.empty(device, (len(labels), n_classes), np.float64)
        self.missed = CudaArray.empty(device, (len(labels),), np.bool_)
        self._work = RowWork(device, n=len(labels), n_classes=n_classes, labels=labels, base=base)

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle as a measurer of the host."""
        return Measurer, self._arguments

    def measure(self, scores: Any, votes: Any, fusion: float) -> tuple[int, int]:
        """Compute a measurement; return the weights of the rows missed by it, and by the votes alone."""
        missed, alone = self._work.run(
            "measure",
            2,
            state=scores,
            one=fusion,
            measured=self.measurement,
            missed=self.missed,
            **{"classes" if votes.ndim == 1 else "votes": votes},
        )
        return int(missed), int(alone)

    def misses(self, scores: Any) -> int:
        """Return the weight of the rows that the scores miss, in units."""
        return int(self._work.run("sum_misses", 1, state=scores)[0])


class CudaBank:
    """The states of a bank of filters, as in `HonestBank`.

    Parameters
    ----------
    device : Device
        The device.
    labels, base, prior, n_filters
        As in `HonestBank`.
    """

    def __init__(
        self, device: Device, labels: NDArray[np.int32], base: Floats, prior: Floats, n_filters: int
    ) -> None:
        self._arguments = (labels, base, prior, n_filters)
        n, n_classes = len(labels), len(prior)
        states = np.broadcast_to(prior, (n_filters, n, n_classes))
        self._states = CudaArray.of(device, states, np.float64)
        self._n_read = CudaArray.of(device, np.zeros(n), np.int32)
        self._missed = CudaArray.empty(device, (n,), np.bool_)
        self._work = RowWork(device, n=n, n_classes=n_classes, n_filters=n_filters, labels=labels, base=base)

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle as a bank of the host."""
        return restored, (self._arguments, np.asarray(self._states), self.n_read)

    def __deepcopy__(self, memo: dict[int, Any]) -> CudaBank:
        copy = object.__new__(CudaBank)
        copy.__dict__.update(self.__dict__)
        copy._states, copy._n_read = self._states.__deepcopy__(memo), self._n_read.__deepcopy__(memo)
        return copy

    @property
    def n_read(self) -> NDArray[np.int32]:
        """Number of components that each row was measured by."""
        return np.asarray(self._n_read)

    def update(self, leaves: Any, votes: Any, counts: Any) -> None:
        """Move the states of unseen rows towards the votes of their leaves."""
        self._work.run(
            "update_bank",
            leaves=leaves,
            votes=votes,
            counts=counts,
            n_leaves=votes.shape[1],
            state=self._states,
            n_read=self._n_read,
        )

    def state(self, b: int) -> CudaArray:
        """Return the state of one filter: a score per row and class."""
        state: CudaArray = self._states[b]
        return state

    def label_scores(self, b: int) -> Floats:
        """Return the score of each row's label in the state of one filter."""
        labels = self._arguments[0]
        scores: Floats = np.asarray(self._states[b])[np.arange(len(labels)), labels]
        return scores

    def brier_scores(self) -> Floats:
        """Return the Brier score of each filter."""
        totals = [self._work.run("sum_brier", 1, state=self._states[b])[0] for b in range(len(self._states))]
        return np.array(totals) / BANK_UNIT

    def misses(self, leaves: Any, votes: Any, counts: Any) -> tuple[CudaArray, float, float]:
        """Return which unseen rows a component misses, their weight, and the weight of all unseen rows."""
        wrong, unseen = self._work.run(
            "judge_unseen", 2, leaves=leaves, votes=votes, counts=counts, missed=self._missed
        )
        return self._missed, float(wrong / BANK_UNIT), float(unseen / BANK_UNIT)


class CudaFilter(KalmanFilter):
    """A Kalman filter whose state is on a device; the other parameters are those of `KalmanFilter`."""

    def __init__(self, state: Any, variance: float, *, device: Device, **settings: Any) -> None:
        super().__init__(state, variance, **settings)
        self.state: Any = CudaArray.of(device, self.state, np.float64)

    def _correct(self, measurement: Any, gain: float) -> None:
        measured = measurement if isinstance(measurement, CudaArray) else np.asarray(measurement)
        if measured.shape != self.state.shape:
            raise ValueError(f"measurement has shape {measured.shape}, the state has {self.state.shape}")
        work_on(self.state).run("correct", state=self.state, measured=measured, one=gain)


# ---------------------------------------------------------------- sums, as in `engine.arrays`


def work_on(values: CudaArray) -> RowWork:
    """Return the kernels for an array."""
    return RowWork(values.device, n=len(values.cells))


def exact_sum(values: CudaArray) -> float:
    """Return the fixed-point sum of non-negative values; NaN if one is negative or not finite."""
    top = highest(values)
    return top if top != top else summed(values, unit_of(top, len(values)), "sum_units")


def effective_sample_size(weights: CudaArray) -> float:
    """Return the effective sample size of weights."""
    top = highest(weights)
    unit = unit_of(top * top, len(weights))
    return 1 / summed(weights, unit, "sum_squares")


def highest(values: CudaArray) -> float:
    """Return the maximum of non-negative values; NaN if one is negative or not finite."""
    top, n_bad = work_on(values).run("find_highest", 2, state=values)
    return float("nan") if n_bad else float(np.int64(top).view(np.float64))


def summed(values: CudaArray, unit: int, kernel: str) -> float:
    """Convert a sum from units of 2^-unit; the scale of very small values would overflow."""
    scales: dict[str, Any] = {"one": ldexp(1.0, unit // 2), "other": ldexp(1.0, unit - unit // 2)}
    return ldexp(float(work_on(values).run(kernel, 1, state=values, **scales)[0]), -unit)
