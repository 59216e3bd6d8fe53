"""Shrinkage of leaves: how far their votes move towards those of their ancestors.

The filter down each tree is compiled (`engine/trees/leaf_votes.pyx`). Its measurement noise, the shrinkage,
is given as a number, or estimated from a few trees by the rows that they have not seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.grower import Grower
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.leaf_votes import shrunken_shares
from kfhe.filter_bank import SHRINKAGES
from kfhe.rows import TrainingRows

Floats = NDArray[np.float64]

N_TREES = 20
ATTEMPT = 2  # key of the draws for these trees, used for nothing else


def soft_votes(tree: GrownTree, shrinkage: float) -> Floats:
    """Return the votes of a tree for the rows of its table: the shrunk class shares of their leaves."""
    return tree.share_votes() if shrinkage == 0 else tree.votes(_leaf_votes(tree, np.array([shrinkage]))[0])


def resolve(shrinkage: float | str, growers: list[Grower], rows: TrainingRows, *, alone: bool) -> float:
    """Turn the parameter ``shrinkage`` into a number.

    Parameters
    ----------
    shrinkage : float or "auto"
        The parameter.
    growers : list of Grower
        Grow the trees, in turn.
    rows : TrainingRows
        The training rows.
    alone : bool
        Whether a tree votes alone, or its votes are averaged with others.

    Returns
    -------
    float
        The number; for "auto", the one with the lowest Brier score on out-of-bag rows of some trees.
    """
    if isinstance(shrinkage, str):
        return float(SHRINKAGES[_scores(growers, rows, alone).argmin()])
    return float(shrinkage)


def _scores(growers: list[Grower], rows: TrainingRows, alone: bool) -> Floats:
    """Return the Brier score of each shrinkage: summed over the trees, or of their mean votes."""
    draws, scores = rows.draws(), np.zeros(len(SHRINKAGES))
    bank = _empty_bank(rows)
    for t in range(1, N_TREES + 1):
        counts = draws.draw(rows.base, t, ATTEMPT)
        tree = growers[t % len(growers)].grow(counts, True, 2 * t)
        bank = _empty_bank(rows) if alone else bank
        bank.update(tree.leaves, rows.leaf_votes(tree, SHRINKAGES), counts)
        scores += rows.exchange.sum(bank.brier_scores()) if alone else 0.0
    return scores if alone else rows.exchange.sum(bank.brier_scores())


def _empty_bank(rows: TrainingRows) -> Any:
    """Return a bank of filters without trees; rows that no tree has judged count equally in all of them."""
    prior = np.full(len(rows.classes), 1 / len(rows.classes))
    return rows.bank(prior, len(SHRINKAGES))


def _leaf_votes(tree: GrownTree, shrinkages: Floats) -> Floats:
    return shrunken_shares(tree.nodes, tree.leaf_weights, shrinkages)
