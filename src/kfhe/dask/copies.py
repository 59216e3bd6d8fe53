"""Copies among rows that are spread: the same numbers of rows as on one machine, made where the rows are."""

from __future__ import annotations

from operator import getitem

import numpy as np
from numpy.typing import NDArray

from kfhe.copies import Hashes, RowHashes, different, many_repeat, row_hashes
from kfhe.dask.tables import PartedTable
from kfhe.tables.columns import Columns
from kfhe.tables.schema import number_columns

ROWS_AT_ONCE = 2**24  # of which one task counts the different ones


class HashesOfParts(RowHashes):
    """Numbers for the rows of a table of partitions.

    They are brought here, 8 bytes a row, only if many rows are equal; whether they are the workers find out.

    Parameters
    ----------
    table : PartedTable
        The table.
    """

    def __init__(self, table: PartedTable) -> None:
        self._table = table
        self.n_columns = len(table.names)

    def of(self, some: range) -> Hashes:
        """Return the numbers of all rows, by their values in some columns."""
        table = self._table
        return np.concatenate(table.workers.result(table.each(hashed, some, table.is_text)))

    def many_are_equal(self) -> bool:
        """Whether many rows are equal: if they are in the first columns, it is asked of all columns."""
        return self._many_repeat(self.first) and self._many_repeat(range(self.n_columns))

    def _many_repeat(self, some: range) -> bool:
        """Whether many rows repeat others in some columns: equal numbers are in the same share of them."""
        table, workers = self._table, self._table.workers
        n_shares = -(-table.n_rows // ROWS_AT_ONCE)
        shared = table.each(in_shares, some, table.is_text, n_shares)
        counts = [
            workers.run(n_different, list(workers.each(getitem, shared, share))) for share in range(n_shares)
        ]
        return many_repeat(table.n_rows, sum(workers.result(counts)))


# ---------------------------------------------------------------- what workers do


def hashed(columns: Columns, some: range, is_text: NDArray[np.bool_]) -> Hashes:
    """Return a number for each row of a part, by its values in some columns."""
    return row_hashes(number_columns(columns), some, is_text)


def in_shares(columns: Columns, some: range, is_text: NDArray[np.bool_], n_shares: int) -> list[Hashes]:
    """Return the different numbers of the rows of a part, each in the share that is its own."""
    found = different(hashed(columns, some, is_text))
    shares = found % np.uint64(n_shares)
    return [found[shares == share] for share in range(n_shares)]


def n_different(parts: list[Hashes]) -> int:
    """Return how many different numbers there are in all parts."""
    return len(different(np.concatenate(parts)))
