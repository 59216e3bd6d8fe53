"""Growing: the engine grows the very trees of the plain twin, whichever way it goes about it."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from kfhe.forest import CATEGORICAL, LEAF, MISSING_LEFT, NODE_DTYPE
from kfhe.tables.binned import BinnedTable

from .rows import Rows, as_tree, random_rows, tree_settings
from .twin import Settings, Twin


def assert_same_tree(tree, expected):
    """The splits first: they say most when something is wrong."""
    for name in NODE_DTYPE.names:
        np.testing.assert_array_equal(tree["nodes"][name], expected["nodes"][name], err_msg=name)
    for name in expected.keys() - {"nodes"}:
        np.testing.assert_array_equal(tree[name], expected[name], err_msg=name)


@settings(max_examples=150)
@given(rows=random_rows(), settings=tree_settings)
def test_the_engine_and_the_twin_agree_split_by_split(rows, settings):
    expected = Twin(rows.table, rows.labels, rows.n_classes, rows.weights, rows.counts, settings).arrays()
    serial, _ = rows.grow(settings)
    assert_same_tree(serial, expected)
    by_histograms, _ = rows.grow(settings, n_threads=2, force_parallel=True)
    assert_same_tree(by_histograms, expected)


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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_few_heavy_rows_are_the_smaller_child(n_classes):
    """Sorted orders have room for the child of fewer rows; here, again and again, it weighs more."""
    n, n_heavy = 300, 20
    X = np.arange(n, dtype=float)[:, None].repeat(2, axis=1)
    labels = (np.arange(n) % n_classes).astype(np.int32)
    weights = np.ones(n, dtype=np.int32)
    weights[-n_heavy:] = 4 ** np.arange(12, 12 - n_heavy, -1).clip(5)[::-1]
    table = BinnedTable.from_table(X, None, 255, 1)
    rows = Rows(table, labels, n_classes, weights, True)
    for _ in range(3):
        tree, _ = rows.grow()
        assert_same_tree(tree, Twin(table, labels, n_classes, weights, True, Settings()).arrays())


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


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("limits", [{}, {"max_features": 2}, {"max_features": 2, "random_cuts": True}])
@pytest.mark.parametrize("max_leaf_nodes", [0, 20])
def test_threads_that_share_rows_give_the_same_tree_with_few_rows_and_many(n_classes, limits, max_leaf_nodes):
    rng = np.random.default_rng(n_classes)
    n = 20_000
    X = rng.normal(size=(n, 5))
    X[:, 4] = rng.integers(9, size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    labels = (
        (X[:, 0] > 0) + 2 * (X[:, 1] > X[:, 2]) + (X[:, 4] % 2 == 0) + (rng.random(n) < 0.1)
    ) % n_classes
    table = BinnedTable.from_table(X, [4], 30, 1)
    few = rng.integers(1, 4, size=n) * (rng.random(n) < 0.05)  # one in twenty: all nodes are far apart
    for weights in (few, rng.integers(3, size=n)):
        classes = (labels % n_classes).astype(np.int32)
        rows = Rows(table, classes, n_classes, weights.astype(np.int32), True)
        expected, _ = rows.grow(Settings(**limits), max_leaf_nodes=max_leaf_nodes)
        for threads in ({"n_threads": 2}, {"n_threads": 3, "force_parallel": True}):
            options = {"max_leaf_nodes": max_leaf_nodes, **threads}
            assert_same_tree(rows.grow(Settings(**limits), **options)[0], expected)


@settings(max_examples=50)
@given(rows=random_rows(), settings=tree_settings, cp=st.sampled_from([0.0, 0.05]))
def test_every_row_votes_as_its_leaf_does_even_those_of_no_weight(rows, settings, cp):
    tree, votes = rows.grow(settings, cp=cp)
    _, shares = rows.grow(settings, cp=cp, hard=False)
    leaves = [leaf_of(tree, rows.table, i) for i in range(len(rows.labels))]
    np.testing.assert_array_equal(tree["leaves"], leaves)
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


# ---------------------------------------------------------------- one grower, many trees


@settings(max_examples=30)
@given(rows=random_rows(weights=["real"]), settings=tree_settings, parallel=st.booleans())
def test_a_grower_remembers_nothing_of_the_trees_before(rows, settings, parallel):
    threads = {"n_threads": 2, "force_parallel": True} if parallel else {}
    grower = rows.grower(settings, **threads)
    for tree, weights in enumerate((rows.weights > 0, rows.weights % 3)):  # weights that are counts
        if weights.any():
            grower.grow(weights.astype(np.int32), True, tree)
    expected, _ = rows.grow(settings, **threads)
    assert_same_tree(as_tree(grower.grow(rows.weights, rows.counts, settings.tree)), expected)


def test_a_grower_comes_back_from_a_pickle():
    rows = noise(3)
    copy = pickle.loads(pickle.dumps(rows.grower(Settings(max_features=1, seed=4))))
    expected, _ = rows.grow(Settings(max_features=1, seed=4))
    assert_same_tree(as_tree(copy.grow(rows.weights, rows.counts, 0)), expected)


@pytest.mark.parametrize("n_classes", [2, 300])  # the more classes, the larger the nodes that are sorted
@pytest.mark.parametrize("max_features", [0, 1])
def test_more_rows_than_16_bits_count_make_the_same_tree_on_any_number_of_threads(n_classes, max_features):
    rng = np.random.default_rng(n_classes)
    n = 70_000
    X = rng.normal(size=(n, 2))
    labels = ((X[:, 0] > 0) + 2 * (X[:, 1] > X[:, 0]) + rng.integers(n_classes, size=n)) % n_classes
    table = BinnedTable.from_table(X, None, 255, 1)
    weights = rng.integers(3, size=n, dtype=np.int32)
    rows = Rows(table, labels.astype(np.int32), n_classes, weights, True)
    limits = Settings(max_depth=3, max_features=max_features)
    tree, votes = rows.grow(limits)
    for threads in ({"n_threads": 2}, {"n_threads": 2, "force_parallel": True}):
        other, other_votes = rows.grow(limits, **threads)
        assert_same_tree(other, tree)
        np.testing.assert_array_equal(other_votes, votes)
    totals = np.zeros_like(tree["leaf_weights"])
    np.add.at(totals, (tree["leaves"], labels), weights)
    np.testing.assert_array_equal(tree["leaf_weights"], totals)
    assert len(totals) == 8


@pytest.mark.parametrize("max_features", [0, 1])
def test_rows_of_tasks_are_copied_together_from_all_over_a_long_table(max_features):
    """One in forty is drawn: a single thread leaves them where they are, two copy them, strip by strip."""
    rng = np.random.default_rng(0)
    n = 800_000
    X = rng.normal(size=(n, 2)).astype(np.float32)
    labels = ((X[:, 0] > X[:, 1]) ^ (rng.random(n) < 0.2)).astype(np.int32)
    weights = rng.integers(1, 4, size=n, dtype=np.int32) * (rng.random(n) < 0.025)
    rows = Rows(BinnedTable.from_table(X, None, 255, 2), labels, 2, weights.astype(np.int32), True)
    limits = Settings(max_features=max_features)
    tree, votes = rows.grow(limits)
    other, other_votes = rows.grow(limits, n_threads=2, force_parallel=True)
    assert_same_tree(other, tree)
    np.testing.assert_array_equal(other_votes, votes)


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
