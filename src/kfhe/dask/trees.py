"""Trees put together: what the client knows of the top, and what workers have grown below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.pruner import pruned
from kfhe.forest import CATEGORICAL, LEAF, MISSING_LEFT, NODE_DTYPE, NUMERIC

if TYPE_CHECKING:
    from kfhe.dask.top import TopNode


class WalkedTree(NamedTuple):
    """What workers need of a tree to find the leaves of rows, and their votes."""

    nodes: NDArray[np.uint8]
    category_sets: NDArray[np.uint64]
    leaf_weights: NDArray[np.int32]


class TreeArrays(NamedTuple):
    """A tree as `GrownTree` shows it, without rows."""

    nodes: NDArray[np.void]
    gains: NDArray[np.float64]
    leaf_weights: NDArray[np.int32]
    category_sets: NDArray[np.uint64]

    @classmethod
    def of(cls, tree: GrownTree) -> Self:
        """Take the arrays of a tree."""
        return cls(tree.nodes.view(NODE_DTYPE), tree.gains, tree.leaf_weights, tree.category_sets)

    @property
    def walked(self) -> WalkedTree:
        """What workers need of it."""
        return WalkedTree(self.nodes.view(np.uint8), self.category_sets, self.leaf_weights)


class _Writer:
    """Lays nodes out as the engine does: siblings are neighbours, what is left comes before what is right."""

    def __init__(self, n_nodes: int, n_leaves: int, n_sets: int, n_classes: int) -> None:
        self.tree = TreeArrays(
            np.zeros(n_nodes, dtype=NODE_DTYPE),
            np.zeros(n_nodes),
            np.empty((n_leaves, n_classes), dtype=np.int32),
            np.empty((n_sets, 4), dtype=np.uint64),
        )
        self.n_nodes, self.n_leaves, self.n_sets = 1, 0, 0

    def leaf(self, place: int, totals: NDArray[np.int64]) -> None:
        """Write a leaf."""
        self.tree.nodes[place] = (0.0, self.n_leaves, 0, LEAF, 0)
        self.tree.leaf_weights[self.n_leaves] = totals
        self.n_leaves += 1

    def split(self, place: int, node: TopNode) -> int:
        """Write a split, and return the place of its left child."""
        assert node.found is not None
        split, kind, threshold = node.found.split, NUMERIC, node.found.threshold
        if split["categorical"]:
            kind, threshold = CATEGORICAL, float(self.n_sets)
            self.tree.category_sets[self.n_sets] = split["left_bins"]
            self.n_sets += 1
        if split["missing_left"]:
            kind |= MISSING_LEFT
        self.tree.nodes[place] = (threshold, self.n_nodes, split["feature"], kind, node.found.cut)
        self.tree.gains[place] = node.found.gain
        self.n_nodes += 2
        return self.n_nodes - 2

    def below(self, place: int, tree: TreeArrays) -> None:
        """Write a whole tree; its root has a place, all else comes next."""
        rest = slice(self.n_nodes, self.n_nodes + len(tree.nodes) - 1)
        nodes, gains = self.tree.nodes, self.tree.gains
        nodes[place], nodes[rest] = tree.nodes[0], tree.nodes[1:]
        gains[place], gains[rest] = tree.gains[0], tree.gains[1:]
        for some in (nodes[place : place + 1], nodes[rest]):  # moved where they are: new memory takes longer
            leaves = some["kind"] == LEAF
            some["left"] += np.where(leaves, np.int32(self.n_leaves), np.int32(self.n_nodes - 1))
            if len(tree.category_sets):
                some["threshold"] += np.where(some["kind"] & CATEGORICAL, self.n_sets, 0)
        for target, source, first in (
            (self.tree.leaf_weights, tree.leaf_weights, self.n_leaves),
            (self.tree.category_sets, tree.category_sets, self.n_sets),
        ):
            target[first : first + len(source)] = source
        self.n_nodes += len(tree.nodes) - 1
        self.n_leaves += len(tree.leaf_weights)
        self.n_sets += len(tree.category_sets)


def _reached(top: list[TopNode]) -> list[int]:
    """Return the nodes of the top in the order in which they are written; the first is the root."""
    reached, stack = [], [0]
    while stack:
        reached.append(stack.pop())
        node = top[reached[-1]]
        if node.found is not None:
            stack += [node.left + 1, node.left]
    return reached


def first_leaves_of(top: list[TopNode]) -> dict[int, int]:
    """Return the number of the first leaf below each node that has a tree below it."""
    first_leaves, n_leaves = {}, 0
    for i in _reached(top):
        tree = top[i].below
        if tree is not None:
            first_leaves[i] = n_leaves
        n_leaves += len(tree.leaf_weights) if tree is not None else top[i].found is None
    return first_leaves


def joined(top: list[TopNode], n_classes: int) -> TreeArrays:
    """Return the whole tree; the first node of the top is the root."""
    reached = _reached(top)
    own = [top[i] for i in reached if top[i].below is None]
    below = [top[i].below for i in reached if top[i].below is not None]
    writer = _Writer(
        len(own) + sum(len(tree.nodes) for tree in below if tree),
        sum(node.found is None for node in own) + sum(len(tree.leaf_weights) for tree in below if tree),
        sum(node.found is not None and node.found.split["categorical"] for node in own)
        + sum(len(tree.category_sets) for tree in below if tree),
        n_classes,
    )
    places = {0: 0}
    for i in reached:
        node = top[i]
        if node.below is not None:
            writer.below(places[i], node.below)
        elif node.found is None:
            writer.leaf(places[i], node.totals)
        else:
            left = writer.split(places[i], node)
            places[node.left], places[node.left + 1] = left, left + 1
    return writer.tree


def finished(top: list[TopNode], n_classes: int, max_leaf_nodes: int, cp: float) -> TreeArrays:
    """Return the whole tree, without what the settings don't let stand."""
    tree = joined(top, n_classes)
    return cut_back(tree, max_leaf_nodes, cp) if max_leaf_nodes or cp else tree


def cut_back(tree: TreeArrays, max_leaf_nodes: int, cp: float) -> TreeArrays:
    """Cut off what the settings don't let stand."""
    nodes, is_leaf = tree.nodes, tree.nodes["kind"] == LEAF
    n_nodes, first_leaf = len(nodes), np.empty(len(nodes), dtype=np.int64)
    totals = np.zeros((n_nodes, tree.leaf_weights.shape[1]), dtype=np.int64)
    for i in range(n_nodes - 1, -1, -1):  # children come after their parents
        left = nodes["left"][i]
        totals[i] = tree.leaf_weights[left] if is_leaf[i] else totals[left] + totals[left + 1]
        first_leaf[i] = left if is_leaf[i] else first_leaf[left]
    left = np.where(is_leaf, -1, nodes["left"]).astype(np.int32)
    kept_left = pruned(left, tree.gains, totals, max_leaf_nodes=max_leaf_nodes, cp=cp)
    kept = np.zeros(n_nodes, dtype=bool)
    kept[0] = True
    kept[kept_left[kept_left >= 0]] = kept[kept_left[kept_left >= 0] + 1] = True
    leaves = np.flatnonzero(kept & (kept_left < 0))
    leaves = leaves[np.argsort(first_leaf[leaves])]
    places = np.cumsum(kept) - 1
    after = np.where(kept_left >= 0, nodes, np.zeros(1, dtype=NODE_DTYPE))
    after["left"][kept_left >= 0] = places[kept_left[kept_left >= 0]]
    after["left"][leaves] = np.arange(len(leaves))
    categorical = np.flatnonzero((after["kind"] & CATEGORICAL) > 0)
    categorical = categorical[np.argsort(after["threshold"][categorical])]
    sets = tree.category_sets[after["threshold"][categorical].astype(np.int64)]
    after["threshold"][categorical] = np.arange(len(categorical))
    gains = np.where(kept_left >= 0, tree.gains, 0.0)
    return TreeArrays(after[kept], gains[kept], totals[leaves].astype(np.int32), sets)
