"""Odd rows: duplicates, nearly equal rows with other labels, and outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from kfhe.copies import row_hashes
from kfhe.groups import Groups
from kfhe.tables.columns import Columns, open_columns
from kfhe.tables.schema import number_columns
from kfhe.validation import check_same_length, encode_labels, readable_table

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

NEAR = 0.01  # maximum difference of nearly equal numbers, in ranks of the column
BY_CHANCE = 0.01  # maximum share of rows that would have such a neighbour by chance
MANY_VALUES = 20  # distinct values from which on a numeric column is continuous
NEIGHBOURS = 5  # number of neighbours that are examined, nearest first
SEARCHED = 16  # columns in the search for neighbours; the others are checked afterwards
OUTER = 200  # one in so many values at each end of a column is ignored for its width


@dataclass(frozen=True)
class RowFindings:
    """Odd rows: arrays with one value per row, in the order of the rows.

    Attributes
    ----------
    duplicate_of : int array of shape (n,)
        The first row with the same values in every column; -1 for that row itself and for rows without
        duplicates.
    conflicts_with : int array of shape (n,)
        An equal or nearly equal row with another label; -1 if there is none.
    outlying : array of str of shape (n,)
        The column where the row's number is far from all others; empty if there is none.
    """

    duplicate_of: Rows
    conflicts_with: Rows
    outlying: NDArray[Any]

    def __repr__(self) -> str:
        return f"RowFindings: {self.summary()}"

    def summary(self) -> str:
        """Return the number of rows of each kind."""
        return (
            f"{(self.duplicate_of >= 0).sum():,} duplicates, {(self.conflicts_with >= 0).sum():,} conflicts, "
            f"{(self.outlying != '').sum():,} outliers"
        )

    def notes(self, rows: Sequence[Any] | NDArray[Any], labels: NDArray[Any]) -> list[str]:
        """Return a note on each row, which is empty for most.

        Parameters
        ----------
        rows : sequence of length n
            Names of the rows, such as their numbers in a file.
        labels : array of shape (n,)
            The given labels.
        """
        notes: list[list[str]] = [[] for _ in range(len(self.outlying))]
        for row in np.flatnonzero(self.duplicate_of >= 0):
            notes[row].append(f"same as row {rows[self.duplicate_of[row]]}")
        for row in np.flatnonzero(self.conflicts_with >= 0):
            other = self.conflicts_with[row]
            notes[row].append(f"like row {rows[other]}, which is {labels[other]}")
        for row in np.flatnonzero(self.outlying != ""):
            notes[row].append(f"{self.outlying[row]} is far from all others")
        return ["; ".join(note) for note in notes]


def row_findings(X: Any, y: Any, *, n_threads: int = 1) -> RowFindings:
    """Find duplicates, nearly equal rows with other labels, and outliers.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
        The rows.
    y : array-like of shape (n,)
        Their labels.
    n_threads : int, default=1
        Number of threads.

    Returns
    -------
    RowFindings
        The findings.

    Notes
    -----
    Rows are duplicates if all their values are equal, including missing ones. They are nearly equal if
    categories, missing values and numbers of few distinct values are equal, and all other numbers differ by
    less than a hundredth of the ranks of their column. In tables of few columns the limit is lower, so that
    at most one row in a hundred would have such a neighbour by chance if columns were independent. A number
    is far from all others if the gap to the next one is wider than the middle 99 % of its column.

    Examples
    --------
    >>> import pandas as pd
    >>> from kfhe.audit import row_findings
    >>> X = pd.DataFrame({"age": [31, 44, 31, 52, 999, 28, 60, 37], "town": list("abacbcab")})
    >>> found = row_findings(X, ["yes", "no", "no", "yes", "yes", "no", "no", "yes"])
    >>> found
    RowFindings: 1 duplicates, 2 conflicts, 1 outliers
    >>> found.notes(X.index, ["yes", "no", "no", "yes", "yes", "no", "no", "yes"])[2]
    'same as row 0; like row 0, which is yes'
    """
    _, labels = encode_labels(y, "row_findings")
    X = readable_table(X, "row_findings")
    check_same_length(X, labels)
    columns = number_columns(open_columns(X))
    equal = Groups.of(row_hashes(columns, ids=()))
    first = equal.first_rows
    conflicts = _conflicts_among_equals(np.where(equal.sizes[equal.numbers] > 1, equal.numbers, -1), labels)
    once = np.flatnonzero(first == np.arange(len(first)))
    variety, outlying = _survey(columns)
    nearby = _near_of_another_label(columns, variety, labels, once, n_threads)
    conflicts = np.where(conflicts < 0, nearby, conflicts)
    repeated = np.where(first < np.arange(len(first)), first, -1)
    return RowFindings(repeated, conflicts, outlying)


# ---------------------------------------------------------------- equal rows


def _conflicts_among_equals(groups: Rows, labels: NDArray[np.int32]) -> Rows:
    """Return, for each row, the first equal row with another label; -1 if there is none."""
    conflicts = np.full(len(groups), -1)
    rows = np.flatnonzero(groups >= 0)
    # The first row of each label in a group; the partner of a row is the first of them with another label
    n_labels = int(labels.max()) + 1
    kinds, place = np.unique(groups[rows] * n_labels + labels[rows], return_index=True)
    firsts = rows[place]
    firsts = firsts[np.lexsort((firsts, kinds // n_labels))]
    start = np.searchsorted(groups[firsts], groups[rows])
    for offset in (1, 0):  # the first label of the group, or the next one if the row has the first
        partner = firsts[np.minimum(start + offset, len(firsts) - 1)] if len(firsts) else firsts
        fits = (groups[partner] == groups[rows]) & (labels[partner] != labels[rows])
        conflicts[rows[fits]] = partner[fits]
    return conflicts


# ---------------------------------------------------------------- nearly equal rows


def _places(columns: Columns, j: int, rows: Rows) -> Floats:
    """Return positions of values: numbers by rank from 0 to 1, others at least 1 apart."""
    if columns.is_text(j):
        return np.asarray(columns.factorize(j)[0], dtype=np.float64)[rows]
    numbers = columns.numbers(j)
    _, which, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum() - counts / 2) / len(numbers)  # ties get their mean rank
    return np.where(np.isnan(numbers), 3.0, ranks[which.reshape(-1)])[rows]


def _near_of_another_label(
    columns: Columns, variety: Rows, labels: NDArray[np.int32], rows: Rows, n_threads: int
) -> Rows:
    """Return, for some distinct rows, a nearly equal one with another label."""
    found = np.full(columns.n_rows, -1)
    n_measured = int((variety >= MANY_VALUES).sum())
    if not n_measured:
        return found
    near = min(NEAR, (BY_CHANCE / columns.n_rows) ** (1 / n_measured) / 2)
    searched = np.sort(np.argsort(-variety, kind="stable")[:SEARCHED])
    places = np.column_stack([_places(columns, j, rows) for j in searched.tolist()])
    tree = cKDTree(places, balanced_tree=False, compact_nodes=False)
    _, neighbours = tree.query(
        places, k=NEIGHBOURS + 1, p=np.inf, distance_upper_bound=near, workers=n_threads
    )
    row, rank = np.nonzero(neighbours < len(rows))
    row, other = rows[row], rows[neighbours[row, rank]]
    kept = labels[row] != labels[other]
    for j in set(range(columns.n_columns)) - set(searched.tolist()):
        row, other, kept = row[kept], other[kept], kept[kept]
        if not len(row):
            return found
        here, there = np.split(_places(columns, j, np.concatenate([row, other])), 2)
        kept = np.abs(here - there) < near
    row, other = row[kept][::-1], other[kept][::-1]  # the nearest one is assigned last
    found[row] = other
    return found


# ---------------------------------------------------------------- outliers


def _survey(columns: Columns) -> tuple[Rows, NDArray[Any]]:
    """Examine the numbers of each column.

    Returns the number of distinct values, 0 for categories; and for each row the first column where its
    number is far from all others, or an empty string.
    """
    variety = np.zeros(columns.n_columns, dtype=np.int64)
    outlying = np.full(columns.n_rows, "", dtype=object)
    for j in range(columns.n_columns):
        if columns.is_text(j):
            continue
        numbers = columns.numbers(j)
        ordered = np.sort(numbers[~np.isnan(numbers)])
        variety[j] = np.count_nonzero(np.diff(ordered)) + bool(len(ordered))
        low, high = _bounds(ordered)
        far = np.flatnonzero((numbers < low) | (numbers > high))
        outlying[far[outlying[far] == ""]] = columns.names[j]
    return variety, outlying


def _bounds(numbers: Floats) -> tuple[float, float]:
    """Return the range of sorted numbers without values beyond a gap as wide as nearly all of them."""
    outer = max(1, len(numbers) // OUTER)
    if len(numbers) <= 4 * outer:
        return -np.inf, np.inf
    width = numbers[-1 - outer] - numbers[outer]
    gaps = np.diff(numbers) > width if width else np.zeros(len(numbers) - 1, dtype=bool)
    below, above = np.flatnonzero(gaps[:outer]), np.flatnonzero(gaps[-outer:])
    low = numbers[below[-1] + 1] if len(below) else -np.inf
    high = numbers[len(numbers) - 1 - outer + above[0]] if len(above) else np.inf
    return float(low), float(high)
