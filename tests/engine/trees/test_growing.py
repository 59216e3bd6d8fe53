"""Growing: the engine grows the very trees of the plain twin, whichever way it goes about it."""

from dataclasses import asdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from kfhe.engine.trees.growing import Grower
from kfhe.forest import CATEGORICAL, LEAF, MISSING_LEFT, NODE_DTYPE
from kfhe.table import BinnedTable
from kfhe.validation import integer_weights

from .twin import Settings, Twin


class Rows:
    """A binned table with labels and weights."""

    def __init__(self, table, labels, n_classes, weights, counts):
        self.table, self.labels, self.n_classes = table, labels, n_classes
        self.weights, self.counts = weights, counts

    def __repr__(self):
        return f"Rows({self.table.codes.tolist()}, {self.labels.tolist()}, {self.weights.tolist()})"

    def grow(self, settings=None, *, cp=0.0, max_leaf_nodes=0, hard=True, **threads):
        """Grow one tree; return its arrays and its votes."""
        options = asdict(settings or Settings())
        tree = options.pop("tree")
        options["max_features"] = options["max_features"] or len(self.table.n_bins)
        grower = Grower(
            self.table.codes,
            self.table.n_bins,
            self.table.categorical,
            self.table.low,
            self.table.high,
            self.labels,
            self.n_classes,
            cp=cp,
            max_leaf_nodes=max_leaf_nodes,
            **options,
            **({"n_threads": 1} | threads),
        )
        grown = grower.grow(self.weights, self.counts, tree)
        return as_tree(grown), grown.class_votes() if hard else grown.share_votes()


def as_tree(grown):
    names = ("gains", "leaf_weights", "category_sets", "leaves")
    return {"nodes": grown.nodes.view(NODE_DTYPE)} | {name: getattr(grown, name) for name in names}


def numeric_column(rng, n):
    """Few distinct values, far apart, close together, or all different; some missing."""
    scale = rng.choice([1.0, 1e-9, 1e300])
    column = scale * rng.choice(rng.normal(size=rng.integers(1, 12)), size=n)
    if rng.random() < 0.3:
        column = scale * rng.normal(size=n)
    column[rng.random(n) < rng.choice([0, 0, 0.2, 0.9])] = np.nan
    return column


def categorical_column(rng, n):
    column = rng.integers(rng.integers(1, 15), size=n).astype(float)
    column[rng.random(n) < rng.choice([0, 0, 0.2])] = np.nan
    return column


def weights_of(rng, n, kind):
    if kind == "counts":
        weights = rng.integers(0, 4, size=n, dtype=np.int32)
        weights[rng.integers(n)] = 1
        return weights, True
    if kind == "whole":
        return integer_weights(rng.integers(1, 6, size=n).astype(float))
    if kind == "real":
        return integer_weights(rng.exponential(size=n))
    if kind == "extreme":
        return integer_weights(10.0 ** rng.uniform(-12, 0, size=n))
    return integer_weights(np.ones(n))


WEIGHTS = ["ones", "counts", "whole", "real", "extreme"]


@st.composite
def random_rows(draw, max_rows=40, weights=WEIGHTS):
    kinds = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    n = draw(st.integers(1, max_rows))
    n_classes = draw(st.integers(2, 5))
    weighting = draw(st.sampled_from(weights))
    max_bins = draw(st.sampled_from([255, 2, 3, 6]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = [categorical_column(rng, n) if kind else numeric_column(rng, n) for kind in kinds]
    table = BinnedTable.from_table(np.column_stack(columns), np.array(kinds), max_bins, 1)
    # Labels that depend on the columns, so that trees are not all noise.
    signal = sum(np.nan_to_num(column / np.nanmax(np.abs(column), initial=1e-300)) for column in columns)
    labels = (np.abs(signal * 3).astype(int) + (rng.random(n) < 0.3)) % n_classes
    return Rows(table, labels.astype(np.int32), n_classes, *weights_of(rng, n, weighting))


tree_settings = st.builds(
    Settings,
    max_depth=st.sampled_from([0, 0, 1, 3]),
    min_samples_split=st.sampled_from([2, 2, 5, 20]),
    min_samples_leaf=st.sampled_from([1, 1, 2, 7]),
    max_features=st.sampled_from([0, 0, 1, 2]),
    seed=st.integers(0, 2**64 - 1),
    tree=st.integers(0, 300),
)


def assert_same_tree(tree, expected):
    """The splits first: they say most when something is wrong."""
    for name in NODE_DTYPE.names:
        np.testing.assert_array_equal(tree["nodes"][name], expected["nodes"][name], err_msg=name)
    for name in ("category_sets", "leaf_weights", "gains"):
        np.testing.assert_array_equal(tree[name], expected[name], err_msg=name)


@settings(max_examples=150)
@given(rows=random_rows(), settings=tree_settings)
def test_the_engine_and_the_twin_agree_split_by_split(rows, settings):
    twin = Twin(rows.table, rows.labels, rows.n_classes, rows.weights, rows.counts, settings)
    serial, _ = rows.grow(settings)
    assert_same_tree(serial, twin.arrays())
    by_histograms, _ = rows.grow(settings, n_threads=2, force_parallel=True)
    assert_same_tree(by_histograms, twin.arrays())


def test_a_split_is_found_where_one_side_weighs_next_to_nothing():
    numbers = [18, 7, 16, 9, 14, 5, 18, 17, 13, 8, 4, 11, 15, 0, 1, 12, 2, 3, 6, 10, 18]
    others = [4, 1, 2, 5, 5, 0, 2, 4, 2, 4, 1, 7, 3, 3, 0, 7, 7, 2, 2, 7, 6]
    labels = [0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 1]
    weights = [15, 1, 1, 1, 114668876, 46, 1, 944048166, 423858, 9, 76, 1, 5, 1, 3, 1, 15560, 14295810, 147]
    weights += [289249, 2]
    X = np.array([numbers, others], dtype=float).T
    X[X == 18] = np.nan
    table = BinnedTable.from_table(X, None, 255, 1)
    rows = Rows(table, np.array(labels, dtype=np.int32), 2, np.array(weights, dtype=np.int32), False)
    tree, _ = rows.grow()
    assert_same_tree(tree, Twin(table, rows.labels, 2, rows.weights, False, Settings()).arrays())


@settings(max_examples=60)
@given(
    rows=random_rows(max_rows=150),
    settings=tree_settings,
    cp=st.sampled_from([0.0, 0.0, 0.02]),
    max_leaf_nodes=st.sampled_from([0, 0, 4]),
    hard=st.booleans(),
)
def test_the_parallel_path_gives_the_same_arrays_and_votes(rows, settings, cp, max_leaf_nodes, hard):
    options = {"cp": cp, "max_leaf_nodes": max_leaf_nodes, "hard": hard}
    tree, votes = rows.grow(settings, **options)
    for n_threads in (2, 3):
        other, other_votes = rows.grow(settings, n_threads=n_threads, force_parallel=True, **options)
        assert_same_tree(other, tree)
        np.testing.assert_array_equal(other_votes, votes)


@settings(max_examples=50)
@given(rows=random_rows(), settings=tree_settings, cp=st.sampled_from([0.0, 0.05]))
def test_every_row_votes_as_its_leaf_does_even_those_of_no_weight(rows, settings, cp):
    tree, votes = rows.grow(settings, cp=cp)
    _, shares = rows.grow(settings, cp=cp, hard=False)
    leaves = [leaf_of(tree, rows.table, i) for i in range(len(rows.labels))]
    weights = tree["leaf_weights"][leaves]
    np.testing.assert_array_equal(votes, weights.argmax(axis=1))
    np.testing.assert_array_equal(shares, weights / weights.sum(axis=1, keepdims=True, dtype=float))
    total = np.zeros_like(tree["leaf_weights"])
    np.add.at(total, (leaves, rows.labels), rows.weights)
    np.testing.assert_array_equal(total, tree["leaf_weights"])


def leaf_of(tree, table, row):
    node = tree["nodes"][0]
    while node["kind"] != LEAF:
        code = int(table.codes[node["feature"], row])
        if node["kind"] & CATEGORICAL:
            left = int(tree["category_sets"][int(node["threshold"]), code // 64]) >> code % 64 & 1
        elif code == table.n_bins[node["feature"]] - 1:
            left = node["kind"] & MISSING_LEFT
        else:
            left = code <= node["cut"]
        node = tree["nodes"][node["left"] + (not left)]
    return node["left"]


# ---------------------------------------------------------------- pruning and best-first growing


class Branch:
    """A tree as nested objects, with each node's place in the full tree."""

    def __init__(self, tree, place=0):
        node = tree["nodes"][place]
        self.place, self.gain, self.children = place, tree["gains"][place], []
        if node["kind"] == LEAF:
            self.totals = tree["leaf_weights"][node["left"]].astype(int)
        else:
            self.children = [Branch(tree, node["left"]), Branch(tree, node["left"] + 1)]
            self.totals = sum(child.totals for child in self.children)

    @property
    def misses(self):
        return int(self.totals.sum() - self.totals.max())

    def outline(self, cut=frozenset()):
        """Class totals of all nodes, in order, without what is below the nodes of a cut."""
        below = [] if self.place in cut else [child.outline(cut) for child in self.children]
        return (self.totals.tolist(), *below)

    def prunings(self):
        """All ways to prune the tree: pairs of its misses and its number of leaves, with the outline."""
        yield self.misses, 1, (self.totals.tolist(),)
        if self.children:
            for left_misses, left_leaves, left in self.children[0].prunings():
                for right_misses, right_leaves, right in self.children[1].prunings():
                    outline = (self.totals.tolist(), left, right)
                    yield left_misses + right_misses, left_leaves + right_leaves, outline


@settings(max_examples=100)
@given(
    rows=random_rows(max_rows=60, weights=["ones", "counts", "whole"]),
    cp=st.sampled_from([1 / 64, 1 / 16, 1 / 8, 1 / 4, 1.0]),  # sums of these are exact
)
def test_pruning_leaves_the_cheapest_tree_and_the_largest_of_equals(rows, cp):
    settings = Settings(max_depth=4)
    full = Branch(rows.grow(settings)[0])
    price = Fraction(cp) * full.misses
    _, _, expected = min(full.prunings(), key=lambda pruning: (pruning[0] + price * pruning[1], -pruning[1]))
    pruned, _ = rows.grow(settings, cp=cp)
    assert Branch(pruned).outline() == expected


@given(rows=random_rows())
def test_cp_of_next_to_nothing_cuts_off_no_subtree_that_saves_anything(rows):
    tree = Branch(rows.grow(cp=1e-12)[0])
    full = Branch(rows.grow()[0])

    def leaf_misses(branch):
        return sum(map(leaf_misses, branch.children)) if branch.children else branch.misses

    assert leaf_misses(tree) == leaf_misses(full)


def monks_1():
    """All 432 cases of the first of the monk's problems."""
    sizes = (3, 3, 2, 3, 4, 2)
    X = np.stack(np.meshgrid(*[np.arange(1, size + 1) for size in sizes], indexing="ij"), -1).reshape(-1, 6)
    return X, ((X[:, 0] == X[:, 1]) | (X[:, 4] == 1)).astype(np.int32)


@pytest.mark.parametrize("categorical", [True, False])
def test_monks_1_survives_pruning_though_few_single_splits_help(categorical):
    X, y = monks_1()
    table = BinnedTable.from_table(X, np.full(6, categorical), 255, 1)
    # Without the rows of a5 = 1 no single split lowers the misclassification.
    hard_part = (X[:, 4] != 1).astype(np.int32)
    for weights in (np.ones(len(y), dtype=np.int32), hard_part):
        rows = Rows(table, y, 2, weights, True)
        tree, votes = rows.grow(cp=0.01)
        np.testing.assert_array_equal(votes[weights > 0], y[weights > 0])
        assert len(tree["leaf_weights"]) > 3


@settings(max_examples=100)
@given(rows=random_rows(max_rows=60), settings=tree_settings, max_leaf_nodes=st.integers(2, 8))
def test_max_leaf_nodes_makes_the_splits_of_the_highest_gain_first(rows, settings, max_leaf_nodes):
    full = Branch(rows.grow(settings)[0])
    frontier = [full]
    while len(frontier) < max_leaf_nodes and any(branch.children for branch in frontier):
        best = max((b for b in frontier if b.children), key=lambda branch: (branch.gain, -branch.place))
        frontier.remove(best)
        frontier += best.children
    limited, _ = rows.grow(settings, max_leaf_nodes=max_leaf_nodes)
    assert Branch(limited).outline() == full.outline(cut={branch.place for branch in frontier})


def test_of_two_splits_of_equal_gain_the_left_one_is_made_first():
    X = np.array([[a, b] for a in (0, 1) for b in (0, 1)] * 3)
    labels = (2 * X[:, 0] + X[:, 1]).astype(np.int32)
    rows = Rows(BinnedTable.from_table(X, None, 255, 1), labels, 4, np.ones(12, dtype=np.int32), True)
    tree, _ = rows.grow(max_leaf_nodes=3)
    assert tree["leaf_weights"].tolist() == [[3, 0, 0, 0], [0, 3, 0, 0], [0, 0, 3, 3]]


# ---------------------------------------------------------------- the features that a node draws


def noise(n_features, n=200, seed=0):
    rng = np.random.default_rng(seed)
    table = BinnedTable.from_table(rng.normal(size=(n, n_features)), None, 255, 1)
    return Rows(table, rng.integers(2, size=n, dtype=np.int32), 2, np.ones(n, dtype=np.int32), True)


def test_drawn_features_depend_on_the_seed_and_on_the_tree():
    rows = noise(8)
    trees = [
        rows.grow(Settings(max_features=2, seed=seed, tree=tree))[0]["nodes"].tobytes()
        for seed in range(3)
        for tree in range(3)
    ]
    assert len(set(trees)) == 9


def test_drawn_features_of_a_node_do_not_depend_on_what_else_is_grown():
    rows = noise(8)
    deep, shallow = (
        rows.grow(Settings(max_features=2, seed=1, max_depth=max_depth))[0] for max_depth in (0, 3)
    )

    def splits(tree, place=0, path=""):
        node = tree["nodes"][place]
        if node["kind"] == LEAF or len(path) == 3:
            return {}
        children = [splits(tree, node["left"] + side, path + "LR"[side]) for side in (0, 1)]
        return {path: (node["feature"], node["threshold"])} | children[0] | children[1]

    assert splits(deep) == splits(shallow)


def test_every_feature_is_drawn_about_as_often_as_the_others():
    rows = noise(6)
    roots = [
        int(rows.grow(Settings(max_features=1, max_depth=1, seed=5, tree=tree))[0]["nodes"]["feature"][0])
        for tree in range(600)
    ]
    assert chisquare(np.bincount(roots, minlength=6)).pvalue > 0.001


def test_drawn_features_that_do_not_vary_are_passed_over():
    X = np.zeros((40, 30))
    X[:, 17] = np.arange(40)
    labels = (np.arange(40) >= 20).astype(np.int32)
    rows = Rows(BinnedTable.from_table(X, None, 255, 1), labels, 2, np.ones(40, dtype=np.int32), True)
    for seed in range(5):
        tree, _ = rows.grow(Settings(max_features=1, seed=seed))
        assert tree["nodes"]["feature"][0] == 17
        assert len(tree["nodes"]) == 3


# ---------------------------------------------------------------- depth


@pytest.mark.parametrize(
    ("n_columns", "threads", "depth"), [(12, {}, 1000), (1, {"n_threads": 2, "force_parallel": True}, 100)]
)
def test_a_tree_may_be_a_long_chain_of_splits(n_columns, threads, depth):
    # In each column one value per row of a block, 0 elsewhere; what a split can do is to take off one end.
    block = 250
    n = n_columns * block
    X = np.zeros((n, n_columns))
    X[np.arange(n), np.arange(n) // block] = np.arange(n) % block + 1
    labels = (np.arange(n) % 2).astype(np.int32)
    rows = Rows(BinnedTable.from_table(X, None, 255, 1), labels, 2, np.ones(n, dtype=np.int32), True)
    tree, votes = rows.grow(**threads)
    np.testing.assert_array_equal(votes, labels)
    depths = np.zeros(len(tree["nodes"]), dtype=int)
    for i in np.flatnonzero(tree["nodes"]["kind"] != LEAF):
        depths[tree["nodes"]["left"][i] : tree["nodes"]["left"][i] + 2] = depths[i] + 1
    assert depths.max() > depth
