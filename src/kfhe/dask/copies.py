"""Copies among rows on a cluster: hashes of rows, as on one machine, computed on the workers."""

from __future__ import annotations

from operator import getitem

import numpy as np
from numpy.typing import NDArray

from kfhe.copies import Hashes, RowHashes, different, is_unique, many_repeat, row_hashes
from kfhe.dask.tables import PartedTable
from kfhe.tables.columns import Columns
from kfhe.tables.schema import number_columns

ROWS_AT_ONCE = 2**24  # rows whose distinct hashes one task counts


class HashesOfParts(RowHashes):
    """Hashes of the rows of a partitioned table.

    Workers find out whether many rows are equal. Only then are the hashes collected, 8 bytes per row.

    Parameters
    ----------
    table : PartedTable
        The table.
    """

    def __init__(self, table: PartedTable) -> None:
        self._table = table
        self.n_columns = len(table.names)
        self._is_id: dict[int, bool] = {}  # by column, where it has been asked for

    def of(self, some: range) -> Hashes:
        """Return the hashes of all rows, by some columns."""
        table = self._table
        return np.concatenate(table.workers.result(table.each(hashed, some, table.is_text, self._ids(some))))

    def many_are_equal(self) -> bool:
        """Whether many rows are equal: first by a few columns, then by all."""
        return self._many_repeat(self.first) and self._many_repeat(range(self.n_columns))

    def _many_repeat(self, some: range) -> bool:
        """Whether many rows are equal in some columns."""
        return many_repeat(self._table.n_rows, self._n_different(some, self._ids(some)))

    def _ids(self, some: range) -> list[int]:
        """Return which of some columns are ids: unique columns of text."""
        for j in some:
            if j not in self._is_id:
                n_values = self._n_different(range(j, j + 1), []) if self._table.is_text[j] else 0
                self._is_id[j] = is_unique(self._table.n_rows, n_values)
        return [j for j in some if self._is_id[j]]

    def _n_different(self, some: range, ids: list[int]) -> int:
        """Return the number of distinct rows by some columns.

        Equal hashes are in the same share of all hashes.
        """
        table, workers = self._table, self._table.workers
        n_shares = -(-table.n_rows // ROWS_AT_ONCE)
        shared = table.each(in_shares, some, table.is_text, ids, n_shares)
        counts = [
            workers.run(n_different, list(workers.each(getitem, shared, share))) for share in range(n_shares)
        ]
        return sum(workers.result(counts))


# ---------------------------------------------------------------- on the workers


def hashed(columns: Columns, some: range, is_text: NDArray[np.bool_], ids: list[int]) -> Hashes:
    """Return the hashes of the rows of a part, by some columns."""
    return row_hashes(number_columns(columns), some, is_text, ids)


def in_shares(
    columns: Columns, some: range, is_text: NDArray[np.bool_], ids: list[int], n_shares: int
) -> list[Hashes]:
    """Return the distinct hashes of a part, divided into shares by value."""
    found = different(hashed(columns, some, is_text, ids))
    shares = found % np.uint64(n_shares)
    return [found[shares == share] for share in range(n_shares)]


def n_different(parts: list[Hashes]) -> int:
    """Return the number of distinct hashes in all parts."""
    return len(different(np.concatenate(parts)))
