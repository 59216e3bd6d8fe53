"""Shrinkage of leaves: how much their votes give way to their ancestors', and which amount is right.

The filter down each tree itself is compiled (`engine/trees/shrinkage.pyx`). Its measurement noise, the
shrinkage, is a number, or found out by pilot trees: the rows that a tree has not seen tell what its leaves
are worth.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kfhe.bank import SHRINKAGES
from kfhe.engine.arrays import exact_sum
from kfhe.engine.trees.growing import Grower
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.shrinkage import shrunken_shares
from kfhe.forest import NODE_DTYPE
from kfhe.rows import TrainingRows

Floats = NDArray[np.float64]

PILOT_TREES = 20
PILOT = 2  # their attempt, so that no other trees have their samples


def soft_votes(tree: GrownTree, shrinkage: float) -> Floats:
    """Return what a tree votes for the rows of its table: the shares in their leaves, shrunken."""
    return tree.share_votes() if shrinkage == 0 else _leaf_votes(tree, np.array([shrinkage]))[0][tree.leaves]


def resolve(shrinkage: float | str, growers: list[Grower], rows: TrainingRows, *, alone: bool) -> float:
    """Turn the parameter ``shrinkage`` into a number.

    Parameters
    ----------
    shrinkage : float or "auto"
        The parameter.
    growers : list of Grower
        What grows the trees that it is for, in turn.
    rows : TrainingRows
        The training rows.
    alone : bool
        Whether a tree is to vote alone, instead of having its votes averaged with others'.

    Returns
    -------
    float
        The number; of "auto", the one with the lowest Brier score on rows that pilot trees have not seen.
    """
    if isinstance(shrinkage, str):
        return float(SHRINKAGES[_pilot_scores(growers, rows, alone).argmin()])
    return float(shrinkage)


def _pilot_scores(growers: list[Grower], rows: TrainingRows, alone: bool) -> Floats:
    """Return the Brier score of each shrinkage: the sum of single trees', or that of their mean votes."""
    pilots = _pilots(growers, rows)
    if alone:
        return np.sum([_brier_scores(votes, unseen, rows) for votes, unseen in pilots], axis=0)
    n_rows, n_classes = len(rows.labels), len(rows.classes)
    totals, n_read = np.zeros((len(SHRINKAGES), n_rows, n_classes)), np.zeros(n_rows)
    for votes, unseen in pilots:
        totals += votes * unseen[:, np.newaxis]
        n_read += unseen
    return _brier_scores(totals / n_read.clip(1)[:, np.newaxis], n_read > 0, rows)


def _pilots(growers: list[Grower], rows: TrainingRows) -> Iterator[tuple[Floats, NDArray[np.bool_]]]:
    """Yield the votes of each pilot tree under each shrinkage, and which rows it has not seen."""
    draws = rows.draws()
    for t in range(1, PILOT_TREES + 1):
        counts = draws.draw(rows.base, t, PILOT)
        tree = growers[t % len(growers)].grow(counts, True, 2 * t)
        yield _leaf_votes(tree, SHRINKAGES)[:, tree.leaves], counts == 0


def _brier_scores(votes: Floats, judged: NDArray[np.bool_], rows: TrainingRows) -> Floats:
    """Return the weighted squared error of each shrinkage's votes for the rows that are judged."""
    right = np.eye(len(rows.classes))[rows.labels]
    weights = rows.base * judged
    return np.array([exact_sum(weights * ((each - right) ** 2).sum(axis=1)) for each in votes])


def _leaf_votes(tree: GrownTree, shrinkages: Floats) -> Floats:
    return shrunken_shares(tree.nodes.view(NODE_DTYPE), tree.leaf_weights, shrinkages)
