"""Training rows on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.cuda.array import CudaArray
from kfhe.cuda.device import Device, open_device
from kfhe.cuda.filters import CudaBank, CudaFilter, CudaMeasurer, effective_sample_size, exact_sum, work_on
from kfhe.cuda.grower import CudaGrower, CudaTable
from kfhe.cuda.samples import CudaDraws
from kfhe.cuda.tree import CudaTree
from kfhe.kalman import KalmanFilter
from kfhe.rows import TrainingRows
from kfhe.tables.binned import BinnedTable
from kfhe.tree_settings import TreeSettings, check_columns

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CudaRows(TrainingRows):
    """Training rows on a GPU: bins, labels, weights, and the operations on them between two trees."""

    _tables: list[CudaTable] = field(default_factory=list, compare=False, repr=False)

    @property
    def device(self) -> Device:
        """The GPU."""
        return open_device()

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle as rows of the host."""
        return TrainingRows, tuple(getattr(self, each.name) for each in fields(TrainingRows))

    def draws(self) -> Any:
        """Return the source of bootstrap samples; those of groups are drawn by the host."""
        if self.together is not None:
            return super().draws()
        numbers = (len(self.classes), self.n_present, self.seed, self.n_samples)
        return CudaDraws(self.device, self.labels, *numbers)

    def exact_sum(self, values: Any) -> float:
        """Return the sum of non-negative values, one per row."""
        return exact_sum(values) if isinstance(values, CudaArray) else super().exact_sum(values)

    def normalise(self, weights: KalmanFilter) -> None:
        """Normalise the sampling weights of a filter to sum to 1."""
        total = self.exact_sum(weights.state)
        if not total > 0 or not isinstance(weights.state, CudaArray):
            return super().normalise(weights)
        return work_on(weights.state).run("divide", state=weights.state, one=total)

    def effective_sample_size(self, weights: Any) -> float:
        """Return the effective sample size of the sampling weights."""
        on_device = isinstance(weights, CudaArray)
        return effective_sample_size(weights) if on_device else super().effective_sample_size(weights)

    def raised(self, weights: Any, missed: Any, right: float, wrong: float) -> Any:
        """Multiply weights by one factor for rows that are right and another for rows that were missed."""
        raised = CudaArray.empty(self.device, weights.shape, np.float64)
        work_on(weights).run(
            "multiply", state=weights, missed=missed, one=right, other=wrong, measured=raised
        )
        return raised

    def filter(self, state: Any, kind: type[KalmanFilter] = KalmanFilter, **settings: Any) -> KalmanFilter:
        """Return a filter; one with a transition or another measurement is the host's."""
        if kind is not KalmanFilter or settings.get("transition", 1.0) != 1.0:
            return super().filter(state, kind, **settings)
        return CudaFilter(state, 1.0, device=self.device, **settings)

    def measurer(self) -> Any:
        """Return what computes the paper's measurement and its error."""
        return CudaMeasurer(self.device, self.labels, self.base, len(self.classes))

    def bank(self, prior: Floats, n_filters: int) -> Any:
        """Return a bank of filters without measurements."""
        return CudaBank(self.device, self.labels, self.base, prior, n_filters)

    def leaf_votes(self, tree: Any, shrinkages: Floats) -> Any:
        """Return the vote of each leaf of a tree, for each of some shrinkages."""
        known = isinstance(tree, CudaTree)
        return tree.shrunken_shares(shrinkages) if known else super().leaf_votes(tree, shrinkages)

    def grower(self, settings: TreeSettings, table: BinnedTable, n_threads: int | None = None) -> Any:
        """Return a grower for the rows; growers of one table share its memory."""
        check_columns(len(table.n_bins))
        same = (each for each in self._tables if each.table is table and each.labels is self.labels)
        known = next(same, None)
        if known is None:
            known = CudaTable(self.device, table, self.labels, len(self.classes))
            self._tables[:] = [*self._tables[-1:], known]
        n_threads = self.n_threads if n_threads is None else n_threads
        return CudaGrower(known, settings.rules(len(table.n_bins), self.seed), n_threads)


def placed(rows: TrainingRows, device: str) -> TrainingRows:
    """Return the rows on the device for training: `device` is "cpu" or "cuda"."""
    if device == "cpu":
        return rows
    open_device()
    return CudaRows(*(getattr(rows, each.name) for each in fields(rows)))
