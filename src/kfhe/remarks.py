"""Remarks: what a table has that may be a mistake: copies of rows, columns that say nothing or too much."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kfhe.bank import PILOT
from kfhe.engine.trees.shrinkage import shrunken_shares
from kfhe.rows import TrainingRows
from kfhe.table import BinnedTable
from kfhe.tree_settings import TreeSettings

Floats = NDArray[np.float64]

UNIQUE = 0.95  # values of so many rows, per row, are said to be as many as rows
MAIN = 0.5  # share in the importances from which on a column may give the label away
GIVEN_AWAY = 0.02  # of the errors of the most frequent class: what a column may leave that gives it away
ATTEMPT = 3  # of draws, so that no other trees have these samples


class TableWarning(UserWarning):
    """Something about a table that may be a mistake: copies of rows, columns of no use, columns that leak."""


def remarks_on(rows: TrainingRows, table: BinnedTable) -> list[str]:
    """Return what there is to say of a table before anything is trained, in sentences."""
    remarks = []
    if rows.copies is not None:
        n_copies = rows.n_rows - len(rows.copies)
        remarks.append(
            f"{n_copies:,} of {rows.n_rows:,} rows are copies of others: copies are kept together, so that "
            "no row is judged by trees that have seen its copy. If they are observations of their own, say "
            "so by `groups`: a value of its own for each row"
        )
    n_different = rows.n_rows if rows.together is None else len(rows.together)
    names = table.schema.columns
    for j, n_values in table.left_out.items():
        if n_values >= UNIQUE * n_different:
            remarks.append(f"column {names[j]!r} has (nearly) as many values as rows: it is left out")
        else:
            remarks.append(
                f"column {names[j]!r}: its {n_values:,} values say nothing about the label: it is left out"
            )
    for k, j in enumerate(table.schema.feature_columns):
        if table.schema.names[k] == names[j] and table.is_constant(k):
            value = "is empty" if table.n_bins[k] == 1 else "has one value only"
            remarks.append(f"column {names[j]!r} {value}: it can't tell classes apart")
    return remarks


def leaking_column(
    rows: TrainingRows, table: BinnedTable, settings: TreeSettings, importances: Floats
) -> str | None:
    """Return the column that gives the label away by itself, judged by trees that have not seen a row.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    table : BinnedTable
        The table that the model was trained on.
    settings : TreeSettings
        How trees are grown.
    importances : ndarray of shape (n_columns,)
        Shares of the columns in the gains of the trees; only the main one is looked at.
    """
    j = int(importances.argmax())
    if importances[j] < MAIN or rows.n_present < 2 or len(table.schema.columns) < 2:
        return None
    alone = table.of_column(j)
    grower = rows.grower(replace(settings, max_features=None), alone)
    bank, draws = rows.bank(rows.class_units / rows.class_units.sum(), 1), rows.draws()
    for t in range(1, PILOT + 1):
        counts = draws.draw(rows.base, t, ATTEMPT)
        tree = grower.grow(counts, True, 2 * t)
        bank.update(tree.leaves, shrunken_shares(tree.nodes, tree.leaf_weights, np.zeros(1)), counts)
    wrong = rows.exact_sum(rows.map(weight_of_wrong, bank.state(0), rows.labels, rows.base))
    by_guess = 1 - rows.class_units.max() / rows.class_units.sum()
    return table.schema.columns[j] if wrong <= GIVEN_AWAY * by_guess else None


def weight_of_wrong(scores: Floats, labels: NDArray[np.int32], base: Floats) -> Floats:
    """Return the base weight of each row whose label does not have the highest score, 0 for the others."""
    return base * (scores.argmax(axis=1) != labels)


def of_leak(column: str) -> str:
    """Say that a column gives the label away."""
    return (
        f"column {column!r} tells the label nearly always, by itself: if it is only known once the label is, "
        "leave it out"
    )
