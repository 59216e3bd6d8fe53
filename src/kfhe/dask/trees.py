"""The trees of a training, in the order in which they are grown; known trees are not grown again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.grower import Grower
from kfhe.engine.trees.grown_tree import GrownTree, leaves_of_codes
from kfhe.tables.binned import BinnedTable


class TreeArrays(NamedTuple):
    """A tree as arrays, with the interface of `GrownTree`, without rows."""

    nodes: NDArray[np.uint8]
    gains: NDArray[np.float64]
    leaf_weights: NDArray[np.int32]
    category_sets: NDArray[np.uint64]


class Trees:
    """The trees of a training. If it was interrupted, it is repeated with the known trees.

    Parameters
    ----------
    known : list of TreeArrays
        The first trees.

    Attributes
    ----------
    new : list of TreeArrays
        New trees since the last call of `take`.
    """

    def __init__(self, known: list[TreeArrays]) -> None:
        self._known, self._n_grown = known, 0
        self.new: list[TreeArrays] = []

    def grower(self, grower: Grower, table: BinnedTable) -> Any:
        """Return a grower that uses the known trees first."""
        return Remembering(self, grower, table)

    def next(self, grower: Grower, table: BinnedTable, sample: tuple[Any, ...]) -> GrownTree:
        """Return the next tree."""
        self._n_grown += 1
        if self._n_grown <= len(self._known):
            tree = self._known[self._n_grown - 1]
            leaves = leaves_of_codes(tree.nodes, tree.category_sets, table.codes, table.n_bins)
            return GrownTree.from_arrays(*tree, leaves)
        grown = grower.grow(*sample)
        self.new.append(TreeArrays(grown.nodes, grown.gains, grown.leaf_weights, grown.category_sets))
        return grown

    def taken(self) -> list[TreeArrays]:
        """Return the new trees, and clear the list."""
        new, self.new = self.new, []
        return new


class Remembering:
    """A grower that uses and records the trees of a training.

    Parameters
    ----------
    trees : Trees
        The trees.
    grower : Grower
        Grows unknown trees.
    table : BinnedTable
        The table.
    """

    def __init__(self, trees: Trees, grower: Grower, table: BinnedTable) -> None:
        self._trees, self._grower, self._table = trees, grower, table

    def grow(self, weights: NDArray[np.int32], counts: bool, number: int) -> GrownTree:
        """Return the next tree."""
        return self._trees.next(self._grower, self._table, (weights, counts, number))
