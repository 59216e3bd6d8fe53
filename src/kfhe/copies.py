"""Copies: records that occur more than once in a table, as opposed to rows that are equal by chance.

Rows are judged by components that have not seen them. That says little if the components have seen a copy, so
copies must be drawn together. But in a table of few distinct rows, equal rows are separate observations.
Drawing them together would discard what is known about such rows. Three properties tell the cases apart:

- Rows that are equal by chance have near misses: where columns have few values, other rows differ in a single
  column. Copies have none.
- Rows that are equal by chance also occur in threes. If rows are drawn independently, with whatever
  probabilities, the number of rows that occur three times is at least two thirds of the square of the number
  that occur twice, divided by the number that occur once (by the Cauchy-Schwarz inequality). If all rows
  occur twice, none occurs once.
- Copies have the same label, right or wrong. If some rows of such a table were copied, rows that occur twice
  agree in their labels more often than rows that occur more often by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.groups import Groups
from kfhe.tables.columns import Columns, SparseColumns
from kfhe.tables.schema import number_columns
from kfhe.target_encoding import plain

Hashes = NDArray[np.uint64]

LEAST = 0.01  # minimum share of rows that are equal to others,
FEWEST = 10  # and minimum number; with fewer, the reason can't be found out
UNIQUE = 0.95  # distinct values per row from which a column counts as unique
FEW_COLUMNS = 4  # enough in most tables to see that all rows are distinct
BLOCKS = 16  # of columns; near misses differ in one of them only
ASKED = 500  # equal rows that are searched for near misses
ALONE = 0.5  # minimum share without a near miss, if they are copies
SURE = 0.001  # p-value of the number of threes, below which rows are copies,
UNLIKELY = 0.01  # and p-value of the agreement of labels in rows that occur twice


def row_hashes(
    columns: Columns,
    some: range | None = None,
    is_text: NDArray[np.bool_] | None = None,
    ids: Collection[int] | None = None,
) -> Hashes:
    """Return a hash of each row by some columns, which is equal for equal rows.

    Hashes of disjoint sets of columns add up to the hash of all. Unique columns of text are ids, and ignored.
    For a part of a table, the text columns of the whole table and the ids among them must be given.
    """
    hashes = np.zeros(columns.n_rows, dtype=np.uint64)
    some = range(columns.n_columns) if some is None else some
    if isinstance(columns, SparseColumns):
        values, rows, starts = columns.stored(some)
        of_columns = np.repeat(np.arange(some.start, some.stop, dtype=np.uint64), np.diff(starts))
        np.add.at(hashes, rows, _mixed(_bits(values), of_columns))
        return hashes
    for j in some:
        if columns.is_text(j) if is_text is None else is_text[j]:
            codes, texts = columns.factorize(j)
            bits = np.array([*map(_text_bits, texts), 1], dtype=np.uint64)[codes]  # missing values are -1
            if is_unique(len(bits), len(different(bits))) if ids is None else j in ids:
                continue
        else:
            bits = _bits(columns.numbers(j))
        hashes += _mixed(bits, np.uint64(j))
    return hashes


def _bits(numbers: NDArray[np.float64]) -> Hashes:
    """Return the bits of numbers; 0 of either sign has none."""
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.uint64)


def _text_bits(value: Hashable) -> int:
    return int.from_bytes(blake2b(repr(plain(value)).encode(), digest_size=8).digest(), "little")


def _mixed(bits: Hashes, j: Any) -> Hashes:
    """Scramble the bits of a column's values, differently for each column; zero stays zero."""
    mixed = bits * (np.uint64(2) * j + np.uint64(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


class RowHashes:
    """Hashes of the rows of a table, to find equal ones.

    `kfhe.dask` has a subclass for rows on other machines.

    Parameters
    ----------
    columns : Columns
        The table.

    Attributes
    ----------
    n_columns : int
        The number of columns.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = number_columns(columns)
        self.n_columns = columns.n_columns

    @property
    def first(self) -> range:
        """The first columns."""
        return range(min(FEW_COLUMNS, self.n_columns))

    def of(self, some: range) -> Hashes:
        """Return the hashes by some columns."""
        return row_hashes(self._columns, some)

    @cached_property
    def _by_first(self) -> Hashes:
        return self.of(self.first)

    @cached_property
    def whole(self) -> Hashes:
        """The hashes by all columns."""
        return self._by_first + self.of(range(self.first.stop, self.n_columns))

    def many_are_equal(self) -> bool:
        """Whether enough rows are equal to matter; usually a few columns suffice to rule it out."""
        return _many_repeat(self._by_first) and _many_repeat(self.whole)

    @cached_property
    def equal(self) -> Groups | None:
        """Groups of equal rows; None if there are too few to matter."""
        return Groups.of(self.whole) if self.many_are_equal() else None


def _many_repeat(hashes: Hashes) -> bool:
    return many_repeat(len(hashes), len(different(hashes)))


def different(hashes: Hashes) -> Hashes:
    """Return the sorted distinct hashes. `np.unique` is far slower if nearly all are distinct."""
    ordered = np.sort(hashes)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def many_repeat(n_rows: int, n_different: int) -> bool:
    """Whether enough rows repeat others to matter."""
    return n_rows - n_different >= max(FEWEST, LEAST * n_rows)


def is_unique(n_rows: int, n_different: int) -> bool:
    """Whether (nearly) all values of a column are distinct."""
    return n_different >= UNIQUE * n_rows


def share_alone(rows: RowHashes, groups: Groups) -> float:
    """Return the share of some equal rows that have no near miss."""
    several = np.flatnonzero(groups.sizes > 1)
    asked = several[:: -(-len(several) // ASKED)]
    row_of = np.unique(groups.numbers, return_index=True)[1]
    edges = np.linspace(0, rows.n_columns, min(BLOCKS, rows.n_columns) + 1).astype(int)
    blocks = [range(start, stop) for start, stop in pairwise(edges.tolist())]
    alone = np.ones(len(asked), dtype=bool)
    for block in blocks:
        others = rows.whole - rows.of(block)
        mine = others[row_of[asked]]
        near = np.flatnonzero(np.isin(others, mine))
        # A near miss is equal in all other columns, but in another group
        kinds = np.unique(np.stack([others[near], groups.numbers[near].astype(np.uint64)]), axis=1)[0]
        alone &= np.searchsorted(kinds, mine, "right") - np.searchsorted(kinds, mine, "left") < 2
    return float(alone.mean())


def in_threes(sizes: NDArray[np.intp]) -> bool:
    """Whether the number of threes is as high as chance predicts from the rows that occur once or twice.

    Both numbers are random, too, so each is shifted by two standard deviations in favour of chance.
    """
    from scipy.stats import poisson

    once, twice, thrice = (int((sizes == size).sum()) for size in (1, 2, 3))
    at_least, at_most = max(twice - 2 * twice**0.5, 0.0), once + 2 * once**0.5 + 4
    return bool(poisson.cdf(thrice, 2 * at_least**2 / (3 * at_most)) >= SURE)


def twins_agree(groups: Groups, labels: NDArray[np.int32]) -> bool:
    """Whether rows that occur twice agree in their labels more often than other equal rows."""
    from scipy.stats import fisher_exact

    order, sizes = np.argsort(groups.numbers, kind="stable"), groups.sizes
    first = (sizes.cumsum() - sizes)[sizes > 1]
    agree, twice = labels[order[first]] == labels[order[first + 1]], sizes[sizes > 1] == 2
    table = [
        [(agree & twice).sum(), (~agree & twice).sum()],
        [(agree & ~twice).sum(), (~agree & ~twice).sum()],
    ]
    return bool(fisher_exact(table, "greater").pvalue < UNLIKELY)


def cut(groups: Groups, labels: NDArray[np.int32], size: int) -> Groups:
    """Return groups split into groups of a given size, rows with the same label together where possible."""
    order = np.lexsort((labels, groups.numbers))
    numbers = np.empty_like(groups.numbers)
    numbers[order] = np.arange(len(order)) // size
    return Groups(numbers, one_record=True)


def find_copies(rows: RowHashes, labels_of_all: Callable[[], NDArray[np.int32]]) -> Groups | None:
    """Find out whether equal rows are copies; None if there are none, or too few to matter.

    Parameters
    ----------
    rows : RowHashes
        Hashes of the rows.
    labels_of_all : callable
        Returns the rows' classes (int32); called only if rows may be copies.

    Returns
    -------
    Groups or None
        The groups of copies.
    """
    groups = rows.equal
    if groups is None or len(groups) == 1:  # a single group: nothing tells rows apart, except for ids
        return None
    times = int(np.gcd.reduce(groups.sizes))
    if times > 1 and len(groups) >= FEWEST:  # each row occurs this often; more may be equal by chance
        return cut(groups, labels_of_all(), times)
    if share_alone(rows, groups) >= ALONE or not in_threes(groups.sizes):
        return replace(groups, one_record=True)
    return groups if twins_agree(groups, labels_of_all()) else None


def labels_overlap(rows: RowHashes, labels_of_all: Callable[[], NDArray[np.int32]]) -> bool:
    """Whether many rows are equal to a row of another label. No classifier can tell such rows apart.

    Parameters are those of `find_copies`.
    """
    groups = rows.equal
    if groups is None:
        return False
    labels = labels_of_all()
    differ = np.zeros(len(groups), dtype=bool)
    differ[groups.numbers[labels != labels[groups.first_rows]]] = True
    return bool(groups.sizes[differ].sum() >= max(FEWEST, LEAST * len(labels)))
