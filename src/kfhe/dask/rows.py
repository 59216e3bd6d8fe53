"""Training rows that are read partition by partition, and placed on the workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.copies import find_copies, labels_overlap
from kfhe.dask.copies import HashesOfParts
from kfhe.dask.encoding import TargetOfParts, grouped, numbered
from kfhe.dask.session import Share
from kfhe.dask.tables import Bins, PartedTable, recut
from kfhe.dask.workers import Parts, Workers
from kfhe.engine.draws import ROWS_OF_BLOCK
from kfhe.exchange import Exchange
from kfhe.groups import Groups
from kfhe.rows import TrainingRows
from kfhe.tree_settings import TreeSettings

Labels = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PartedRows:
    """The training rows, as known to the client.

    Attributes
    ----------
    table : PartedTable
        The lazy table.
    labels, base : Parts
        Labels and base weights.
    classes : ndarray
        The class labels, sorted.
    seed : int
        The seed of all random numbers.
    max_samples : int, float, "auto" or None
        Number of rows in a sample.
    token : str
        A token of the data: equal for equal data.
    groups, copies : Groups, optional
        Groups given by the user, or copies.
    overlap : bool
        Whether many rows are equal to a row of another label without being copies.
    n_threads : int
        Number of threads on this machine.
    """

    table: PartedTable
    labels: Parts
    classes: NDArray[Any]
    base: Parts
    seed: int
    max_samples: int | float | str | None
    token: str
    groups: Groups | None = None
    copies: Groups | None = None
    overlap: bool = False
    n_threads: int = 1

    @property
    def workers(self) -> Workers:
        """The workers."""
        return self.table.workers

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.table.n_rows

    @property
    def n_blocks(self) -> int:
        """The number of blocks of rows."""
        return -(-self.n_rows // ROWS_OF_BLOCK)

    @property
    def together(self) -> Groups | None:
        """Rows that are drawn together, and judged only by components that have seen none of them."""
        return self.copies if self.groups is None else self.groups

    def with_copies(self) -> PartedRows:
        """Return the rows with copies grouped; if there are none, with a note on whether labels overlap."""
        hashes = HashesOfParts(self.table)
        copies = find_copies(hashes, self.labels_of_all)
        return replace(
            self, copies=copies, overlap=copies is None and labels_overlap(hashes, self.labels_of_all)
        )

    def labels_of_all(self) -> Labels:
        """Return the labels of all rows."""
        return np.concatenate(self.workers.result(self.labels))

    def binned(self, settings: TreeSettings) -> Bins:
        """Return the binned table."""
        return self.table.binned(settings, self._target() if settings.honest_categories else None)

    def _target(self) -> TargetOfParts:
        """Return the labels, for encoding columns of many categories."""
        workers, together, first_rows = self.workers, self.together, self.table.first_rows
        weights = workers.each(np.multiply, self.base, workers.effective_sample_size(self.base, self.n_rows))
        if together is None:
            rows = workers.each(numbered, self.labels, weights, Parts(first_rows[:-1]))
        else:
            sizes = np.stack([together.sizes[together.numbers], together.first_rows])
            rows = workers.each(
                grouped, self.labels, weights, Parts(np.split(sizes, first_rows[1:-1], axis=1))
            )
        return TargetOfParts(rows, self.classes, self.seed)

    def placed(self, bins: Bins, shares: list[Share], *further: Parts) -> list[tuple[Any, ...]]:
        """Place the rows on the workers; return each worker's arguments: those of `rows_here`, and others."""
        after = [min(share.first_block * ROWS_OF_BLOCK, self.n_rows) for share in shares] + [self.n_rows]
        homes = [share.address for share in shares]
        before = list(self.table.first_rows)
        parts = [
            recut(self.workers, each, before, after, homes)
            for each in (bins.codes(self.workers), self.labels, self.base, *further)
        ]
        told = {
            "X": bins.table,
            **{
                name: getattr(self, name)
                for name in ("classes", "seed", "max_samples", "groups", "copies", "overlap")
            },
        }
        return [
            (told, share.n_threads, *own) for share, own in zip(shares, zip(*parts, strict=True), strict=True)
        ]

    def differences(self, other: PartedRows) -> str:
        """Name what differs in other rows: "" if nothing does."""
        return "" if self.token == other.token else "data"


# ---------------------------------------------------------------- on the workers


def rows_here(
    exchange: Exchange,
    told: dict[str, Any],
    n_threads: int,
    codes: NDArray[np.uint8],
    labels: Labels,
    base: Floats,
) -> TrainingRows:
    """Return the training rows of a worker."""
    own = {"X": replace(told["X"], codes=codes), "labels": labels, "base": base}
    return TrainingRows(**{**told, **own}, n_threads=n_threads, exchange=exchange)
