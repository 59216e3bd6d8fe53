"""Nodes: what workers do with their rows of them, and what is decided by sums over all workers."""

from __future__ import annotations

from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfhe.dask.top import Family, Found, Round, Top
from kfhe.dask.trees import TreeArrays, WalkedTree, finished, first_leaves_of
from kfhe.dask.workers import added_up
from kfhe.engine.trees.grower import Grower
from kfhe.engine.trees.grown_tree import GrownTree, leaves_of_codes
from kfhe.engine.trees.histogram import class_histograms, count_histograms
from kfhe.engine.trees.partitioner import cut, partition, sides
from kfhe.engine.trees.splitter import best_split, cut_numbers, drawn_features
from kfhe.tables.binned import BinnedTable
from kfhe.tables.schema import Schema
from kfhe.tree_settings import TreeSettings

if TYPE_CHECKING:
    from kfhe.engine.trees.splitter import Split

Integers = NDArray[np.int64]


class Described(NamedTuple):
    """What all tasks know of a table and its trees."""

    n_bins: NDArray[np.int32]
    categorical: NDArray[np.uint8]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_classes: int
    settings: TreeSettings
    seed: int


class OpenNode(NamedTuple):
    """The rows of a node in one part."""

    rows: NDArray[np.uint32]
    classes: NDArray[np.uint16]
    weights: NDArray[np.int32]

    def copy(self) -> OpenNode:
        """Return rows that may be changed."""
        return OpenNode(self.rows.copy(), self.classes.copy(), self.weights.copy())


OpenNodes = dict[int, OpenNode]


def opened(weights: NDArray[np.int32], labels: NDArray[np.int32]) -> OpenNodes:
    """Return the root: the rows of positive weight."""
    rows = np.flatnonzero(weights > 0)
    return {0: OpenNode(rows.astype(np.uint32), labels[rows].astype(np.uint16), weights[rows])}


def totals_of(weights: NDArray[np.int32], labels: NDArray[np.int32], n_classes: int) -> Integers:
    """Return the weight of each class, and the number of rows of positive weight."""
    totals = np.bincount(labels, weights=weights, minlength=n_classes)
    return np.append(totals, (weights > 0).sum()).astype(np.int64)


class Histograms(NamedTuple):
    """Of some nodes: the weight of each class in each bin, and the number of rows, if that is another."""

    weights: NDArray[np.int32]
    counts: NDArray[np.int32] | None

    def __add__(self, other: Any) -> Histograms:
        """Return the histograms of two parts together."""
        counts = None if self.counts is None else self.counts + other.counts
        return Histograms(self.weights + other.weights, counts)


def parted(nodes: OpenNodes, codes: NDArray[np.uint8], described: Described, now: Round) -> OpenNodes:
    """Part nodes between two children each, which may be parted next; keep those that are still of use."""
    after = {**nodes}
    for i, left, feature, goes_left in now.partings:
        rows, classes, weights = nodes[i].copy() if i in nodes else after[i]
        n_left, _ = partition(codes[feature], goes_left, rows, classes, weights, described.n_classes)
        for child, some in ((left, slice(n_left)), (left + 1, slice(n_left, None))):
            after[child] = OpenNode(rows[some], classes[some], weights[some])
    return {i: after[i] for i in now.kept}


def built_in(
    nodes: OpenNodes, codes: NDArray[np.uint8], described: Described, now: Round, counts: bool
) -> Histograms | None:
    """Return the histograms of some nodes, if there are any to be built."""
    if not now.built:
        return None
    n_bins, some = described.n_bins, [nodes[i] for i in now.built]
    built = np.stack([class_histograms(codes, n_bins, *node, described.n_classes) for node in some])
    counted = None if counts else np.stack([count_histograms(codes, n_bins, node.rows) for node in some])
    return Histograms(built, counted)


def completed(addends: list[Histograms], families: list[Family], rounds: dict[int, Histograms]) -> Histograms:
    """Return the histograms of children; the larger one has what the smaller leaves of the parent's."""
    small: Histograms = added_up(addends)
    wanted: list[list[Any]] = [[], []]
    for i, (with_small, with_large, (number, place)) in enumerate(families):
        for each, built in zip(wanted, small, strict=True):
            if built is not None and with_small:
                each.append(built[i])
        if with_large:
            for each, built, parents in zip(wanted, small, rounds[number], strict=True):
                if built is not None and parents is not None:
                    each.append(parents[place] - built[i])
    return Histograms(np.stack(wanted[0]), np.stack(wanted[1]) if wanted[1] else None)


def decided(
    addends: list[Histograms],
    families: list[Family],
    rounds: dict[int, Histograms],
    described: Described,
    number: int,
    keys: list[int],
) -> list[Found | None]:
    """Return the best split of each node, by histograms that are completed first.

    A task of its own does so too, for the next round: to wait for it would take longer.
    """
    return _splits_of(completed(addends, families, rounds), described, number, keys)


def advanced(
    top: Top, sums: Histograms | None, addends: list[Histograms], described: Described, number: int
) -> tuple[Top, Round, Histograms | None]:
    """Split nodes by the histograms of all parts: every part does, and comes to the same top.

    Return it, what is next, and the sums of the histograms; those of the last round are given.
    """
    if top.is_complete:
        return top, top.from_root, None
    histograms = completed(addends, top.round.families, {top.n_rounds - 1: sums} if sums else {})
    after = top.copy()
    if sums is None:
        bins = slice(described.n_bins[0])
        totals = histograms.weights[0, bins].sum(axis=0, dtype=np.int64)
        rows = totals if histograms.counts is None else histograms.counts[0, bins]
        after.set_root(totals, int(rows.sum()))
    keys = [top.nodes[i].key for i in top.round.searched]
    after.take(_splits_of(histograms, described, number, keys))
    return after, after.from_root, histograms


def _splits_of(
    histograms: Histograms, described: Described, number: int, keys: list[int]
) -> list[Found | None]:
    """Return the best split of each node."""
    counts = histograms.counts
    return [
        _best_found(histogram, None if counts is None else counts[i], described, number, key)
        for i, (histogram, key) in enumerate(zip(histograms.weights, keys, strict=True))
    ]


def _best_found(
    histogram: NDArray[np.int32],
    counts: NDArray[np.int32] | None,
    described: Described,
    number: int,
    key: int,
) -> Found | None:
    n_bins = described.n_bins
    starts = np.append(0, np.cumsum(n_bins))
    split = _searched(histogram, counts, described, number, key, starts)
    if split is None:
        return None
    feature = split["feature"]
    low, high, bins = described.low[feature], described.high[feature], slice(*starts[feature : feature + 2])
    goes_left = sides(split, n_bins[feature], low, high)
    last, threshold = (0, 0.0) if split["categorical"] else cut(split, n_bins[feature], low, high)
    totals = histogram[bins].sum(axis=0, dtype=np.int64)
    left = histogram[bins][goes_left.astype(bool)].sum(axis=0, dtype=np.int64)
    weight, squares = int(totals.sum()), int((totals * totals).sum())
    n_left = left.sum() if counts is None else counts[bins][goes_left.astype(bool)].sum()
    return Found(split, last, threshold, goes_left, split["score"] - squares / weight, left, int(n_left))


def _searched(
    histogram: NDArray[np.int32],
    counts: NDArray[np.int32] | None,
    described: Described,
    number: int,
    key: int,
    starts: Integers,
) -> Split | None:
    """Return the best split of all features; or of those that the node draws, and more until there is one."""
    n_bins, settings = described.n_bins, described.settings
    n_features = len(n_bins)
    wanted, numbers = settings.features_per_split(n_features), None
    if settings.splitter == "random":
        numbers = cut_numbers(n_features, described.seed, number, key)
    if wanted >= n_features:
        return best_split(
            histogram, n_bins, described.categorical, settings.min_samples_leaf, counts, numbers
        )
    drawn = drawn_features(n_features, described.seed, number, key)
    for some in (np.sort(drawn[:wanted]), *(drawn[i : i + 1] for i in range(wanted, n_features))):
        bins = np.concatenate([np.arange(starts[f], starts[f + 1]) for f in some])
        split = best_split(
            histogram[bins],
            n_bins[some],
            described.categorical[some],
            settings.min_samples_leaf,
            None if counts is None else counts[bins],
            None if numbers is None else numbers[some],
        )
        if split is not None:
            return {**split, "feature": int(some[split["feature"]])}
    return None


class Bundle(NamedTuple):
    """Rows of some nodes, which are sent to a worker that grows what is below."""

    top: Top
    roots: list[int]
    rows: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]  # bins, classes, weights


def packed_rows(
    nodes: OpenNodes, codes: NDArray[np.uint8], top: Top, n_groups: int
) -> tuple[list[Bundle], list[NDArray[np.uint32]]]:
    """Return the rows of nodes, to be sent: for each group of nodes a bundle; and which rows these are."""
    groups = top.groups(n_groups)
    bundles = [Bundle(top, group, [_packed(nodes[i], codes) for i in group]) for group in groups]
    return bundles, [nodes[i].rows for group in groups for i in group]


def _packed(node: OpenNode, codes: NDArray[np.uint8]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the bins, classes and weights of a node's rows, to be sent."""
    return codes.take(node.rows, axis=1), _in_few_bytes(node.classes), _in_few_bytes(node.weights)


def _in_few_bytes(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as those of the shortest kind that holds them."""
    return values.astype(np.min_scalar_type(values.max(initial=0)))


def item(items: Any, i: int) -> Any:
    """Return one of several things, which alone is sent then."""
    return items[i]


class Grown(NamedTuple):
    """What was grown below some nodes."""

    top: Top
    roots: list[int]
    trees: list[TreeArrays]


def grown_below(
    bundles: list[Bundle], described: Described, number: int
) -> tuple[Grown, list[list[NDArray[np.int32]]]]:
    """Grow what is below nodes, of which each bundle has some rows; return also the leaves of these."""
    settings, (top, roots, _) = described.settings, bundles[0]
    trees, leaves = [], []
    for i, root in enumerate(roots):
        key, depth = top.nodes[root].key, top.nodes[root].depth
        codes, classes, weights = (
            joined_rows([bundle.rows[i][part] for bundle in bundles]) for part in range(3)
        )
        grower = Grower(
            codes,
            described.n_bins,
            described.categorical,
            described.low,
            described.high,
            classes.astype(np.int32),
            described.n_classes,
            {
                **settings.rules(len(described.n_bins), described.seed),
                "max_depth": settings.max_depth - depth if settings.max_depth else 0,
                "max_leaf_nodes": 0,
                "cp": 0.0,
            },
        )
        tree = grower.grow(weights.astype(np.int32), top.counts, number, key)
        trees.append(TreeArrays.of(tree))
        leaves.append(np.split(tree.leaves, np.cumsum([len(bundle.rows[i][1]) for bundle in bundles])[:-1]))
    return Grown(top, roots, trees), leaves


def joined_rows(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Put rows together, which are along the last axis."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=-1)


# ---------------------------------------------------------------- trees of a single part


class WholeGrower:
    """Grows whole trees, the next one where the last one was: so one at a time, whoever asks."""

    def __init__(self, grower: Grower) -> None:
        self._grower, self._lock = grower, Lock()

    def __reduce__(self) -> Any:
        return WholeGrower, (self._grower,)

    def grow(self, weights: NDArray[np.int32], counts: bool, number: int) -> GrownTree:
        """Grow a tree, once nobody else does: a fit that was given up may still be at it."""
        with self._lock:
            return self._grower.grow(weights, counts, number)


def grower_of(codes: NDArray[np.uint8], labels: NDArray[np.int32], described: Described) -> WholeGrower:
    """Return what grows whole trees."""
    table = BinnedTable(
        Schema.of_columns([], [], ()),
        codes,
        described.n_bins,
        described.categorical,
        described.low,
        described.high,
    )
    return WholeGrower(described.settings.grower(table, labels, described.n_classes, described.seed, 1))


def grown_whole(
    grower: WholeGrower, weights: NDArray[np.int32], counts: bool, number: int, name: str
) -> TreeArrays:
    """Grow a whole tree, and remember the leaf of each row."""
    tree = grower.grow(weights, counts, number)
    remember(tree.leaves, name, 0)
    return TreeArrays.of(tree)


# ---------------------------------------------------------------- leaves of rows

_remembered: dict[tuple[str, int], NDArray[np.int32]] = {}  # of the last two trees, by name and part


def remember(leaves: NDArray[np.int32], name: str, part: int) -> None:
    """Remember the leaf of each row of a part. Nothing depends on it: it only saves time, if it is there."""
    names = [*dict.fromkeys(each for each, _ in _remembered.copy())]
    for key in [key for key in _remembered.copy() if key[0] not in (*names[-1:], name)]:
        _remembered.pop(key, None)
    _remembered[name, part] = leaves


def with_below(grown: list[Grown]) -> Top:
    """Return the top of a tree with all that was grown below it."""
    top = grown[0].top.copy()
    for _, roots, trees in grown:
        for i, tree in zip(roots, trees, strict=True):
            top.nodes[i].below = tree
    return top


def found_ahead(
    grown: list[tuple[Grown, list[list[NDArray[np.int32]]]]],
    described: Described,
    kept: tuple[int, float],
    codes: NDArray[np.uint8],
    rows: list[NDArray[np.uint32]],
    name: str,
    part: int,
) -> None:
    """Find the leaf of each row of a part while the tree is still on its way to the client and back.

    What is below some nodes was grown by workers, which know the leaves of the rows that were sent to them.
    """
    top = with_below([each for each, _ in grown])
    if not top.is_complete:
        return
    leaves = np.full(codes.shape[1], -1, dtype=np.int32)
    if not any(kept):
        first_leaves, roots = first_leaves_of(top.nodes), chain(*(each.roots for each, _ in grown))
        for i, some, found in zip(roots, rows, chain(*(leaves for _, leaves in grown)), strict=True):
            leaves[some] = found[part] + first_leaves[i]
    tree = finished(top.nodes, described.n_classes, *kept)
    nodes = np.ascontiguousarray(tree.nodes).view(np.uint8)
    remember(leaves_of_codes(nodes, tree.category_sets, codes, described.n_bins, leaves), name, part)


def leaves_in(
    tree: WalkedTree, codes: NDArray[np.uint8], n_bins: NDArray[np.int32], name: str, part: int
) -> NDArray[np.int32]:
    """Return the leaf of each row; unless it is remembered, it is found by the bins."""
    remembered = _remembered.pop((name, part), None)
    if remembered is not None:
        return remembered
    return leaves_of_codes(tree.nodes, tree.category_sets, codes, n_bins)
