"""Training rows whose trees are grown on a GPU."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from kfhe.cuda.device import open_device
from kfhe.cuda.grower import CudaGrower, CudaTable
from kfhe.rows import TrainingRows
from kfhe.tables.binned import BinnedTable
from kfhe.tree_settings import TreeSettings, check_columns


@dataclass(frozen=True)
class CudaRows(TrainingRows):
    """Training rows of which the bins are on a GPU as well, which grows the trees."""

    _last: list[CudaTable] = field(default_factory=list, compare=False, repr=False)

    def grower(self, settings: TreeSettings, table: BinnedTable, n_threads: int | None = None) -> Any:
        """Return what grows trees on the rows."""
        check_columns(len(table.n_bins))
        known = next(
            (each for each in self._last if each.table is table and each.labels is self.labels), None
        )
        if known is None:
            known = CudaTable(open_device(), table, self.labels, len(self.classes))
            self._last[:] = [*self._last[-1:], known]
        n_threads = self.n_threads if n_threads is None else n_threads
        return CudaGrower(known, settings.rules(len(table.n_bins), self.seed), n_threads)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what lives on a GPU."""
        return {**self.__dict__, "_last": []}


def placed(rows: TrainingRows, device: str) -> TrainingRows:
    """Return the rows where they are to be trained on: `device` is "cpu" or "cuda"."""
    if device == "cpu":
        return rows
    open_device()
    return CudaRows(**{each.name: getattr(rows, each.name) for each in fields(rows)})
