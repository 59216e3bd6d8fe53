"""The memory that training on a cluster takes, estimated from the size of the table."""

from __future__ import annotations

from typing import NamedTuple

import dask
from distributed import Client, Worker

from kfhe.filter_bank import SHRINKAGES

WITHOUT_ROWS = 280_000_000  # bytes of a worker's process after imports
PARTS_OF_DATE = 3  # possible features of a date, in addition to days
READ_TIMES = 4  # copies of a part while it is read: stored, table, numbers, and the next part
SHARE_OF_LEAVES = 0.1  # leaves per row in the robust classifier's trees, with a tenth of wrong labels


class TableSize(NamedTuple):
    """The size of a table."""

    n_rows: int
    n_columns: int
    n_dates: int  # number of date columns
    n_classes: int
    part_bytes: int  # of the largest part in memory


def bytes_of_row(table: TableSize, *, robust: bool) -> int:
    """Return how many bytes per row training takes.

    Parameters
    ----------
    table : TableSize
        The table.
    robust : bool
        Whether it is the robust classifier, with its bank of filters.

    Examples
    --------
    >>> from kfhe.dask.memory import TableSize, bytes_of_row
    >>> table = TableSize(n_rows=10**9, n_columns=100, n_dates=0, n_classes=2, part_bytes=0)
    >>> bytes_of_row(table, robust=False), bytes_of_row(table, robust=True)
    (312, 464)
    """
    bins, scores = table.n_columns + PARTS_OF_DATE * table.n_dates, 8 * table.n_classes
    always = 4 + 4 + 4 + 4 * 8  # label, count in the sample, leaf; weights: given, current, measured and next
    growing = 2 * (4 + 2 + 4)  # a row in a node: number, class and count, before and after a split
    sent = bins  # rows of small nodes that are sent to another worker
    states = 3 * scores  # before, measured and after
    if robust:  # each filter of the bank, and how many trees have not seen a row; before and after
        states = 2 * (len(SHRINKAGES) * scores + 4)
    return bins + always + growing + sent + states


def bytes_of_votes(table: TableSize) -> float:
    """Return how many bytes the votes of the robust classifier's trees take on every worker."""
    leaves = SHARE_OF_LEAVES * table.n_rows
    return 2 * leaves * len(SHRINKAGES) * 8 * table.n_classes  # as sent and as received


class Need(NamedTuple):
    """The memory that training needs per worker, and the smallest limit."""

    bytes: int
    limit: int | None  # None if no worker has a limit
    n_workers: int

    @property
    def usable(self) -> int | None:
        """The share of the limit that can be used before Dask spills to disk."""
        return (
            None
            if self.limit is None
            else int(self.limit * (dask.config.get("distributed.worker.memory.spill") or 1))
        )


def needed(client: Client, table: TableSize, *, robust: bool) -> Need:
    """Return the memory that training needs per worker of a cluster.

    Parameters
    ----------
    client : Client
        The cluster.
    table : TableSize
        The table.
    robust : bool
        Whether it is the robust classifier.
    """
    threads, limits = client.nthreads(), client.run(memory_limit)
    share = table.n_rows * max(threads.values()) / sum(threads.values())
    reading = READ_TIMES * table.part_bytes * max(threads.values())
    training = share * bytes_of_row(table, robust=robust)
    total = WITHOUT_ROWS + reading + training + (bytes_of_votes(table) if robust else 0)
    known = [limit for limit in limits.values() if limit]
    return Need(int(total), min(known, default=None), len(threads))


def memory_limit(dask_worker: Worker) -> int | None:
    """Return the memory limit of a worker."""
    limit: int | None = dask_worker.memory_manager.memory_limit
    return limit


def in_words(n_bytes: float) -> str:
    """Return a size with its unit."""
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"
