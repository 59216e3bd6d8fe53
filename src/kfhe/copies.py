"""Copies: records that stand in a table twice or more often, told from rows that are equal by chance.

A row is judged by components that have not seen it, and that says little if they have seen its copy. So
copies have to be drawn together. But in a table of few different rows, equal rows are observations of their
own: left out together, they would take along what is known of rows like them. Three things tell:

- Rows that are equal by chance come with near misses: where columns have few values, there are rows that
  differ in one column only. Copies come without.
- Rows that are equal by chance come in threes as well. Whatever the chances of the different rows are, if
  they are drawn independently, the number of rows that stand three times is at least two thirds of the square
  of the number of those that stand twice, divided by the number of those that stand once (by the inequality
  of Cauchy and Schwarz). If all rows stand twice, none of them stands alone.
- Copies have the same label, right or wrong. If some rows of such a table stand twice by design, those that
  stand twice agree in their labels more often than those that stand more often, by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
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

LEAST = 0.01  # share of the rows that have to repeat others before anything is done about it,
FEWEST = 10  # and how many: of fewer nobody can say why they are equal
FEW_COLUMNS = 4  # by which most tables show that all their rows are different
BLOCKS = 16  # of columns; rows that differ in one of them only are near misses
ASKED = 500  # equal rows whose near misses are looked for
ALONE = 0.5  # share of these that have no near miss, from which on they are copies
SURE = 0.001  # chance of so few groups of three, below which rows are copies,
UNLIKELY = 0.01  # and of labels that agree so much more often where rows stand twice


def row_hashes(
    columns: Columns, some: range | None = None, is_text: NDArray[np.bool_] | None = None
) -> Hashes:
    """Return a number for each row, by its values in some columns: equal for equal rows.

    The numbers by disjoint columns add up to that by all of them. Of a part of a table it has to be said
    which columns of the whole table are text.
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
            bits = np.array([*map(_text_bits, texts), 1], dtype=np.uint64)[codes]  # gaps are -1
        else:
            bits = _bits(columns.numbers(j))
        hashes += _mixed(bits, np.uint64(j))
    return hashes


def _bits(numbers: NDArray[np.float64]) -> Hashes:
    """Return numbers as their bits; 0 has none, whatever its sign."""
    return np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.uint64)


def _text_bits(value: Hashable) -> int:
    return int.from_bytes(blake2b(repr(plain(value)).encode(), digest_size=8).digest(), "little")


def _mixed(bits: Hashes, j: Any) -> Hashes:
    """Scramble the bits of a column's values, those of each column in another way; no bits stay none."""
    mixed = bits * (np.uint64(2) * j + np.uint64(0x9E3779B97F4A7C15))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


class RowHashes:
    """Numbers for the rows of a table, by which equal ones are found.

    Rows that live elsewhere (`kfhe.dask`) are a subclass.

    Parameters
    ----------
    columns : Columns
        The table.

    Attributes
    ----------
    n_columns : int
        How many columns there are.
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = number_columns(columns)
        self.n_columns = columns.n_columns

    @property
    def first(self) -> range:
        """The first columns."""
        return range(min(FEW_COLUMNS, self.n_columns))

    def of(self, some: range) -> Hashes:
        """Return the numbers by the values in some columns."""
        return row_hashes(self._columns, some)

    @cached_property
    def _by_first(self) -> Hashes:
        return self.of(self.first)

    @cached_property
    def whole(self) -> Hashes:
        """The numbers by all values."""
        return self._by_first + self.of(range(self.first.stop, self.n_columns))

    def many_are_equal(self) -> bool:
        """Whether so many rows are equal that it matters; most often the first columns tell that not."""
        return _many_repeat(self._by_first) and _many_repeat(self.whole)

    @cached_property
    def equal(self) -> Groups | None:
        """Which rows are equal; None if too few are to matter."""
        return Groups.of(self.whole) if self.many_are_equal() else None


def _many_repeat(hashes: Hashes) -> bool:
    return many_repeat(len(hashes), len(different(hashes)))


def different(hashes: Hashes) -> Hashes:
    """Return the different numbers, in order; if nearly all are, `np.unique` takes far longer."""
    ordered = np.sort(hashes)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def many_repeat(n_rows: int, n_different: int) -> bool:
    """Whether so many rows repeat others that it matters."""
    return n_rows - n_different >= max(FEWEST, LEAST * n_rows)


def share_alone(rows: RowHashes, groups: Groups) -> float:
    """Return the share of some equal rows to which no other row comes near: they are equal by design."""
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
        # A near miss is like one of them in all other columns, but of another group
        kinds = np.unique(np.stack([others[near], groups.numbers[near].astype(np.uint64)]), axis=1)[0]
        alone &= np.searchsorted(kinds, mine, "right") - np.searchsorted(kinds, mine, "left") < 2
    return float(alone.mean())


def in_threes(sizes: NDArray[np.intp]) -> bool:
    """Whether there are as many groups of three rows as chance would have made, by those of one and two.

    These two numbers are chance as well: each is taken two standard deviations to the side of chance.
    """
    from scipy.stats import poisson

    once, twice, thrice = (int((sizes == size).sum()) for size in (1, 2, 3))
    at_least, at_most = max(twice - 2 * twice**0.5, 0.0), once + 2 * once**0.5 + 4
    return bool(poisson.cdf(thrice, 2 * at_least**2 / (3 * at_most)) >= SURE)


def twins_agree(groups: Groups, labels: NDArray[np.int32]) -> bool:
    """Whether rows that stand twice agree in their labels more often than others that are equal."""
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
    """Return groups cut into groups of a size, rows with the same label together as far as can be."""
    order = np.lexsort((labels, groups.numbers))
    numbers = np.empty_like(groups.numbers)
    numbers[order] = np.arange(len(order)) // size
    return Groups(numbers, one_record=True)


def find_copies(rows: RowHashes, labels_of_all: Callable[[], NDArray[np.int32]]) -> Groups | None:
    """Find out whether rows that are equal are copies; None if there are none, or hardly any.

    Parameters
    ----------
    rows : RowHashes
        Numbers for the rows.
    labels_of_all : callable
        Returns the rows' classes (int32); it is asked only if rows may be copies.

    Returns
    -------
    Groups or None
        Each row with its copies.
    """
    groups = rows.equal
    if groups is None:
        return None
    times = int(np.gcd.reduce(groups.sizes))
    if times > 1 and len(groups) >= FEWEST:  # each row stands so many times; others may be equal by chance
        return cut(groups, labels_of_all(), times)
    if share_alone(rows, groups) >= ALONE or not in_threes(groups.sizes):
        return replace(groups, one_record=True)
    return groups if twins_agree(groups, labels_of_all()) else None


def labels_overlap(rows: RowHashes, labels_of_all: Callable[[], NDArray[np.int32]]) -> bool:
    """Whether so many rows are equal to one of another label that it matters: nothing can tell these apart.

    It takes what `find_copies` takes.
    """
    groups = rows.equal
    if groups is None:
        return False
    labels = labels_of_all()
    differ = np.zeros(len(groups), dtype=bool)
    differ[groups.numbers[labels != labels[groups.first_rows]]] = True
    return bool(groups.sizes[differ].sum() >= max(FEWEST, LEAST * len(labels)))
