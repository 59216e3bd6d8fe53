"""Measurements and filters of rows on a GPU: those of `engine.arrays` and `engine.bank`, to the bit."""

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
    """Takes measurements of the training rows, and tells how wrong they are: as `Measurer`.

    Parameters
    ----------
    device : Device
        Where the rows are.
    labels, base, n_classes
        As for a `Measurer`.

    Attributes
    ----------
    measurement, missed : CudaArray
        As those of a `Measurer`.
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
        """Come back as a measurer of the host."""
        return Measurer, self._arguments

    def measure(self, scores: Any, votes: Any, fusion: float) -> tuple[int, int]:
        """Take the measurement; return the weights of the rows that it misses, and that the votes do."""
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
        """Return the weight of the rows that scores themselves miss, in units."""
        return int(self._work.run("sum_misses", 1, state=scores)[0])


class CudaBank:
    """The states of a bank of filters: as `HonestBank`.

    Parameters
    ----------
    device : Device
        Where they are.
    labels, base, prior, n_filters
        As for an `HonestBank`.
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
        """Come back as a bank of the host."""
        return restored, (self._arguments, np.asarray(self._states), self.n_read)

    def __deepcopy__(self, memo: dict[int, Any]) -> CudaBank:
        copy = object.__new__(CudaBank)
        copy.__dict__.update(self.__dict__)
        copy._states, copy._n_read = self._states.__deepcopy__(memo), self._n_read.__deepcopy__(memo)
        return copy

    @property
    def n_read(self) -> NDArray[np.int32]:
        """By how many components each row was read."""
        return np.asarray(self._n_read)

    def update(self, leaves: Any, votes: Any, counts: Any) -> None:
        """Let a component move the rows that it has not seen towards what their leaves vote for."""
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
        """Say which of the unseen rows a component misses; what these weigh, and all that are unseen."""
        wrong, unseen = self._work.run(
            "judge_unseen", 2, leaves=leaves, votes=votes, counts=counts, missed=self._missed
        )
        return self._missed, float(wrong / BANK_UNIT), float(unseen / BANK_UNIT)


class CudaFilter(KalmanFilter):
    """A Kalman filter whose state is on a GPU, a device; the other parameters are a `KalmanFilter`'s."""

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
    """Return what works on an array, cell by cell."""
    return RowWork(values.device, n=len(values.cells))


def exact_sum(values: CudaArray) -> float:
    """Sum non-negative values over fixed-point integers; NaN if one is negative or not finite."""
    top = highest(values)
    return top if top != top else summed(values, unit_of(top, len(values)), "sum_units")


def effective_sample_size(weights: CudaArray) -> float:
    """Return how many equal weights these are worth."""
    top = highest(weights)
    unit = unit_of(top * top, len(weights))
    return 1 / summed(weights, unit, "sum_squares")


def highest(values: CudaArray) -> float:
    """Return the highest of non-negative values; NaN if one is negative or not finite."""
    top, n_bad = work_on(values).run("find_highest", 2, state=values)
    return float("nan") if n_bad else float(np.int64(top).view(np.float64))


def summed(values: CudaArray, unit: int, kernel: str) -> float:
    """Return a sum that is taken in units of 2^-unit; the scale of very small values is no double."""
    scales: dict[str, Any] = {"one": ldexp(1.0, unit // 2), "other": ldexp(1.0, unit - unit // 2)}
    return ldexp(float(work_on(values).run(kernel, 1, state=values, **scales)[0]), -unit)
