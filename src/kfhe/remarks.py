"""Remarks: possible mistakes in a table, such as copies of rows, or columns that say nothing or too much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kfhe.copies import is_unique
from kfhe.display.text import some
from kfhe.rows import TrainingRows
from kfhe.tables.binned import BinnedTable
from kfhe.tree_settings import TreeSettings

Floats = NDArray[np.float64]

COPIES, LEAK = "copies", "leak"  # topics of remarks that come with advice
MAIN = 0.5  # minimum share of the importances for a column that may give the label away
GIVEN_AWAY = 0.02  # maximum error of such a column, relative to predicting the most frequent class
TREES = 5  # number of trees that judge a single column
ATTEMPT = 3  # key of their draws, used for nothing else


class TableWarning(UserWarning):
    """A possible mistake in a table: copies of rows, useless columns, columns that give the label away."""


class Remark(str):
    """A sentence on a possible mistake in a table.

    Parameters
    ----------
    found : str
        What was found.
    advice : str
        Advice, for Python.
    topic : str
        The topic: one of the constants of this module.
    column : str or None
        The column, if the advice needs its name.
    """

    __slots__ = ("column", "found", "topic")

    found: str
    topic: str
    column: str | None

    def __new__(cls, found: str, advice: str = "", topic: str = "", column: str | None = None) -> Remark:
        """Join the finding and the advice."""
        remark = super().__new__(cls, found + advice)
        remark.found, remark.topic, remark.column = found, topic, column
        return remark

    def __reduce__(self) -> tuple[type[Remark], tuple[str, str, str, str | None]]:
        return Remark, (self.found, self.removeprefix(self.found), self.topic, self.column)


def remarks_on(rows: TrainingRows, table: BinnedTable) -> list[Remark]:
    """Return the remarks that need no training, as sentences."""
    remarks = []
    if rows.copies is not None:
        remarks.append(of_copies(rows.n_rows - len(rows.copies), rows.n_rows))
    n_different = rows.n_rows if rows.copies is None else len(rows.copies)
    names = table.schema.columns
    unique = [j for j, n_values in table.left_out.items() if is_unique(n_different, n_values)]
    silent = {names[j]: n_values for j, n_values in table.left_out.items() if j not in unique}
    if unique:
        columns, several = _named([names[j] for j in unique]), len(unique) > 1
        remarks.append(
            Remark(f"{columns} {_have(several)} (nearly) as many values as rows: {_left_out(several)}")
        )
    if silent:
        columns = _named(list(silent), [f" ({n_values:,} values)" for n_values in silent.values()])
        several = len(silent) > 1
        says = "say" if several else "says"
        remarks.append(Remark(f"{columns} {says} nothing about the label: {_left_out(several)}"))
    n_gaps = rows.exchange.sum(np.array([table.n_gaps(k) for k in range(len(table.n_bins))]))
    constant = [
        (names[j], table.n_bins[k] == 1)
        for k, j in enumerate(table.schema.feature_columns)
        if table.schema.names[k] == names[j]
        and (table.n_bins[k] == 1 or (table.n_bins[k] == 2 and not n_gaps[k]))
    ]
    for is_empty in (True, False):
        if found := [name for name, empty in constant if empty == is_empty]:
            several = len(found) > 1
            state = (
                ("are" if several else "is") + " empty" if is_empty else f"{_have(several)} one value only"
            )
            remarks.append(
                Remark(f"{_named(found)} {state}: {'they' if several else 'it'} can't tell classes apart")
            )
    return remarks


def of_copies(n_copies: int, n_rows: int) -> Remark:
    """Return the remark on copies of rows."""
    return Remark(
        f"{n_copies:,} of {n_rows:,} rows are copies of others: copies are kept together, so that "
        "no row is judged by trees that have seen its copy",
        ". If they are separate observations, pass `groups` with a different value for each row",
        COPIES,
    )


def _named(columns: list[str], besides: list[str] | None = None) -> str:
    """Return the first few columns with their notes, and the number of others."""
    besides = besides or [""] * len(columns)
    shown = [f"{name!r}{more}" for name, more in zip(columns, besides, strict=True)]
    return f"column{'s' * (len(columns) > 1)} {some(shown)}"


def _have(several: bool) -> str:
    return "have" if several else "has"


def _left_out(several: bool) -> str:
    return "they are left out" if several else "it is left out"


def leaking_column(
    rows: TrainingRows, table: BinnedTable, settings: TreeSettings, importances: Floats
) -> str | None:
    """Return the column that gives the label away on its own, judged by trees that have not seen a row.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    table : BinnedTable
        The binned training table.
    settings : TreeSettings
        How trees are grown.
    importances : ndarray of shape (n_columns,)
        Feature importances; only the most important column is tested.
    """
    j = int(importances.argmax())
    if importances[j] < MAIN or rows.n_present < 2 or len(table.schema.columns) < 2:
        return None
    alone = table.of_column(j)
    grower = rows.grower(replace(settings, max_features=None), alone)
    bank, draws = rows.bank(rows.class_units / rows.class_units.sum(), 1), rows.draws()
    for t in range(1, TREES + 1):
        counts = draws.draw(rows.base, t, ATTEMPT)
        tree = grower.grow(counts, True, 2 * t)
        bank.update(tree.leaves, rows.leaf_votes(tree, np.zeros(1)), counts)
    missed, judged = (
        rows.exact_sum(weighed(rows.base, np.asarray(bank.state(0)), rows.labels, bank.n_read, right))
        for right in (False, None)
    )
    by_guess = 1 - rows.class_units.max() / rows.class_units.sum()
    return table.schema.columns[j] if missed <= GIVEN_AWAY * by_guess * judged else None


def weighed(
    base: Floats, scores: Floats, labels: NDArray[np.int32], n_read: NDArray[np.int32], right: bool | None
) -> Floats:
    """Return the base weight of the rows that some tree has judged: of all, right or wrong ones."""
    some = n_read > 0
    return base * (some if right is None else some & ((scores.argmax(axis=1) == labels) == right))


def of_leak(column: str) -> Remark:
    """Return the remark on a column that gives the label away."""
    return Remark(
        f"column {column!r} predicts nearly all labels on its own",
        ": if it is only known after the label, leave it out",
        LEAK,
        column,
    )
