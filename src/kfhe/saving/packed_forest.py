"""Forests as a few small arrays for model files, and back.

Nodes are in depth-first order: a split, then everything on its left, then everything on its right. One bit
per node, split or leaf, determines the shape of all trees. Ends of trees, positions of children and numbers
of leaves are not stored, so they can't be wrong. Everything else is stored per split or leaf, in this order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.forest import CATEGORICAL, LEAF, MISSING_LEFT, NODE_DTYPE, NUMERIC, Forest
from kfhe.tables.schema import Schema

Arrays = dict[str, NDArray[Any]]

MOST = 2**31 - 1  # maximum of numbers that compiled code stores with 32 bits
UNSIGNED = ("u1", "u2", "u4")

# Name, types and number of dimensions of each array.
LAYOUT: dict[str, tuple[tuple[str, ...], int]] = {
    "is_split": (("u1",), 1),  # bits, per node
    "feature": (("u1", "u2"), 1),  # per split, as the next two
    "missing_left": (("u1",), 1),  # bits
    "gain": (("f8",), 1),
    "cut": (("u1",), 1),  # per numeric split, as the next one
    "threshold": (UNSIGNED, 1),  # position in thresholds
    "thresholds": (("f8",), 1),
    "category_sets": (("u1",), 1),  # bits, per categorical split: as many bytes as the feature's bins need
    "leaf_weights": (UNSIGNED, 2),
}


def pack(forest: Forest) -> Arrays:
    """Return the arrays from which `unpack` makes the same forest."""
    is_split = forest.nodes["kind"] != LEAF
    trees = np.repeat(np.arange(len(forest)), np.diff(forest.tree_nodes))
    places = _visited_splits(forest, is_split, trees)
    splits, first_nodes = forest.nodes[places], forest.tree_nodes[trees[places]]

    # A left child that is a leaf follows its split; any other left child follows as the next split.
    left = first_nodes + splits["left"]
    leaves_before = forest.tree_leaves[trees[places]] + forest.nodes["left"][left]
    leaves_before = np.where(is_split[left], len(forest.leaf_weights), leaves_before)
    leaves_before = np.minimum.accumulate(leaves_before[::-1])[::-1]
    visits = np.zeros(len(is_split), dtype=bool)
    visits[np.arange(len(splits)) + leaves_before] = True

    categorical = (splits["kind"] & CATEGORICAL) != 0
    bits = np.ascontiguousarray(splits["threshold"][~categorical]).view(np.uint64)  # -0.0 is not 0.0
    table, positions = np.unique(bits, return_inverse=True)
    sets = forest.category_sets.astype("<u8").view(np.uint8).reshape(-1, 32)
    return {
        "is_split": np.packbits(visits, bitorder="little"),
        "feature": _narrow(splits["feature"]),
        "missing_left": np.packbits((splits["kind"] & MISSING_LEFT) != 0, bitorder="little"),
        "gain": forest.gains[places],
        "cut": splits["cut"][~categorical],
        "threshold": _narrow(positions.reshape(-1)),
        "thresholds": table.view(np.float64),
        "category_sets": sets[_set_bytes(forest.schema, splits["feature"][categorical])],
        "leaf_weights": _narrow(forest.leaf_weights),
    }


def unpack(
    arrays: Arrays, schema: Schema, classes: NDArray[Any], steps: NDArray[np.float64], *, soft: bool
) -> Forest:
    """Create a forest from packed arrays; raise ValueError if they are invalid."""
    _check_layout(arrays)
    feature, leaf_weights = arrays["feature"], arrays["leaf_weights"]
    n_splits, n_nodes = len(feature), len(feature) + len(leaf_weights)
    _require(n_nodes <= MOST, "it has too many nodes")
    is_split = _bits(arrays, "is_split", n_nodes)
    tree_nodes, places = _shape(is_split, n_splits)
    _require(len(tree_nodes) == len(steps) + 2, "its trace is of another number of components")
    tree_leaves = np.append(0, np.cumsum(~is_split))[tree_nodes]
    trees = np.repeat(np.arange(len(tree_nodes) - 1), np.diff(tree_nodes))
    _check_leaf_weights(leaf_weights, tree_leaves, len(classes))

    _require(bool((feature < len(schema.names)).all()), "a split uses an unknown feature")
    categorical = np.array([bins is not None for bins in schema.categories], dtype=bool)[feature]
    missing_left = _bits(arrays, "missing_left", n_splits)
    # A gain is at most the weight of a tree, so that sums stay finite.
    _require(bool((np.abs(arrays["gain"]) <= MOST).all()), "a split's gain is more than a tree can have")
    splits, leaves = places[is_split], places[~is_split]
    ranks = np.arange(n_splits) - (tree_nodes - tree_leaves)[trees[is_split]]
    set_numbers = np.append(0, np.cumsum(categorical))
    tree_sets = set_numbers[tree_nodes - tree_leaves]

    thresholds = np.empty(n_splits)
    thresholds[categorical] = np.arange(tree_sets[-1]) - tree_sets[trees[is_split][categorical]]
    thresholds[~categorical] = _thresholds(arrays, n_splits - int(tree_sets[-1]))
    nodes = np.zeros(n_nodes, dtype=NODE_DTYPE)
    nodes["threshold"][splits] = thresholds
    nodes["left"][splits] = 2 * ranks + 1
    nodes["left"][leaves] = np.arange(len(leaves)) - tree_leaves[trees[~is_split]]
    nodes["feature"][splits] = feature
    nodes["kind"][splits] = np.where(categorical, CATEGORICAL, NUMERIC) + MISSING_LEFT * missing_left
    nodes["cut"][splits[~categorical]] = arrays["cut"]
    gains = np.zeros(n_nodes)
    gains[splits] = arrays["gain"]
    sets = _category_sets(arrays["category_sets"], schema, feature[categorical], missing_left[categorical])
    return Forest(
        schema,
        classes,
        soft,
        steps,
        nodes,
        gains,
        leaf_weights.astype(np.int32),
        sets,
        tree_nodes,
        tree_leaves,
        tree_sets,
    )


def _visited_splits(
    forest: Forest, is_split: NDArray[np.bool_], trees: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the positions of the splits in this order; the children of a tree's k-th are at 2k + 1."""
    first_splits = np.append(0, np.cumsum(is_split))[forest.tree_nodes]
    found = np.flatnonzero(is_split)
    places = np.empty_like(found)
    places[first_splits[trees[found]] + forest.nodes["left"][found] // 2] = found
    return places


def _shape(is_split: NDArray[np.bool_], n_splits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the offsets of the trees, and the position of each node in the forest."""
    n_nodes = len(is_split)
    steps = np.where(is_split, 1, -1)
    open_after = np.cumsum(steps)  # right children that are still to come; each tree ends one lower
    lowest = np.minimum.accumulate(np.append(0, open_after))
    tree_nodes = np.append(0, np.flatnonzero(open_after < lowest[:-1]) + 1)
    _require(
        int(is_split.sum()) == n_splits and int(tree_nodes[-1]) == n_nodes and n_nodes > 0,
        "its nodes don't make up whole trees",
    )
    # The right child of a split is the next node with the same number of open ones.
    order = np.argsort(open_after - steps, kind="stable")
    following = np.empty(n_nodes, dtype=np.int64)
    following[order[:-1]] = order[1:]
    splits = np.flatnonzero(is_split)
    first_nodes = np.repeat(tree_nodes[:-1], np.diff(tree_nodes))
    first_splits = np.append(0, np.cumsum(is_split))[first_nodes]
    left = (first_nodes - 2 * first_splits)[splits] + 2 * np.arange(n_splits) + 1
    places = first_nodes
    places[splits + 1] = left
    places[following[splits]] = left + 1
    return tree_nodes, places


def _check_layout(arrays: Arrays) -> None:
    for name, (types, n_dimensions) in LAYOUT.items():
        _require(name in arrays, f"it lacks the array {name!r}")
        array = arrays[name]
        _require(
            array.dtype.str[1:] in types and array.ndim == n_dimensions,
            f"array {name!r} is of type {array.dtype} with {array.ndim} dimensions",
        )
    _require(len(arrays["gain"]) == len(arrays["feature"]), "the numbers of splits and gains differ")


def _check_leaf_weights(leaf_weights: NDArray[Any], tree_leaves: NDArray[np.int64], n_classes: int) -> None:
    _require(leaf_weights.shape[1] == n_classes, "its leaves are for another number of classes")
    totals = leaf_weights.sum(axis=1, dtype=np.int64)
    _require(bool((totals > 0).all()), "a leaf has no weight")
    _require(bool((np.add.reduceat(totals, tree_leaves[:-1]) <= MOST).all()), "a tree weighs too much")


def _thresholds(arrays: Arrays, n_numeric: int) -> NDArray[np.float64]:
    table, positions = arrays["thresholds"], arrays["threshold"]
    _require(
        len(positions) == n_numeric and len(arrays["cut"]) == n_numeric,
        "the numbers of numeric splits and thresholds differ",
    )
    _require(
        bool((table > -np.inf).all()), "a threshold is not a number"
    )  # infinite: only missing values go right
    _require(bool((positions < len(table)).all()), "a split uses an unknown threshold")
    thresholds: NDArray[np.float64] = table[positions]
    return thresholds


def _category_sets(
    packed: NDArray[np.uint8], schema: Schema, features: NDArray[Any], missing_left: NDArray[np.bool_]
) -> NDArray[np.uint64]:
    """Return the sets of bins that go left; unused bins go where missing values go."""
    stored = _set_bytes(schema, features)
    _require(len(packed) == np.count_nonzero(stored), "the numbers of categorical splits and sets differ")
    sets = np.repeat(np.where(missing_left, np.uint8(255), np.uint8(0)), 32).reshape(-1, 32)
    sets[stored] = packed
    return sets.view("<u8").astype(np.uint64)


def _set_bytes(schema: Schema, features: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each set which of its 32 bytes belong to used bins."""
    n_bins = np.array([max(bins.values()) + 1 if bins else 0 for bins in schema.categories])
    stored: NDArray[np.bool_] = 8 * np.arange(32) < n_bins[features][:, np.newaxis]
    return stored


def _bits(arrays: Arrays, name: str, count: int) -> NDArray[np.bool_]:
    packed = arrays[name]
    _require(len(packed) == (count + 7) // 8, f"array {name!r} is too short or too long")
    return np.unpackbits(packed, count=count, bitorder="little").astype(bool)


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers in the smallest type that holds them."""
    return np.ascontiguousarray(values, dtype=np.min_scalar_type(int(values.max(initial=0))))


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
