"""Compact trees: rows fall into the same leaves as in the trees that they were made of."""

import numpy as np
import pytest

from kfhe import KFHEClassifier
from kfhe.engine.trees.compact import compact
from kfhe.engine.trees.traversal import add_trees
from kfhe.forest import NODE_DTYPE


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 5)), 1)
    y = (X[:, 0] + X[:, 1] > 0).astype(int) + (rng.random(400) < 0.2)
    return KFHEClassifier(n_estimators=9, random_state=0).fit(X, y)


def scores(forest, X, n_threads, compact_trees, *, plain=True):
    found = np.zeros((len(X), len(forest.classes)))
    starts = forest.tree_nodes, forest.tree_leaves, forest.tree_sets
    votes = forest.leaf_classes, forest.leaf_votes
    trees = forest.nodes, forest.category_sets, *votes, *starts, forest.weights, 0, len(forest)
    add_trees(*trees, plain, X, found, n_threads, compact_trees)
    return found


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n_rows", [1, 15, 16, 17, 600, 4000])
def test_scores_are_the_same_bits(model, n_rows, n_threads):
    forest = model.estimators_
    X = np.random.default_rng(n_rows).choice([-9.0, 0.0, -0.0, 0.1, 9.0], size=(n_rows, 5))
    on_thresholds = np.random.default_rng(1).random(n_rows) < 0.5
    splits = forest.nodes[forest.nodes["kind"] != 0]
    for j in range(5):
        own = splits["threshold"][splits["feature"] == j]
        X[on_thresholds, j] = np.resize(own, on_thresholds.sum())  # a value at a threshold goes left
    expected = scores(forest, X, 1, None)
    np.testing.assert_array_equal(scores(forest, X, n_threads, forest.compact), expected)


def test_rows_with_gaps_take_the_form_that_is_for_them(model):
    X = with_gaps(np.random.default_rng(5).normal(size=(4000, 5)), 5)
    forest = model.estimators_
    expected = scores(forest, X, 1, None, plain=False)
    np.testing.assert_array_equal(model.estimators_.scores(X, 2), np.minimum(expected, 1))
    assert "compact_for_gaps" in forest.__dict__


def test_a_forest_becomes_compact_once_enough_rows_have_come(model):
    forest = model.estimators_
    for known in ("compact", "walks"):
        forest.__dict__.pop(known, None)
    X = np.random.default_rng(3).normal(size=(20, 5))
    first = model.predict_proba(X)
    assert "compact" not in forest.__dict__
    for _ in range(len(forest.nodes) // (20 * len(forest)) + 1):
        model.predict_proba(X)
    assert "compact" in forest.__dict__
    np.testing.assert_array_equal(model.predict_proba(X), first)


def with_gaps(X, seed):
    gaps = np.random.default_rng(seed).random(X.shape) < 0.2
    return np.where(gaps, np.nan, X)


@pytest.mark.parametrize("n_levels", [2, 7, 12])
def test_gaps_and_categories_are_no_other_bits(n_levels):
    rng = np.random.default_rng(n_levels)
    X = with_gaps(np.column_stack([rng.normal(size=2000), rng.integers(n_levels, size=(2000, 2))]), 1)
    y = (np.nan_to_num(X[:, 0]) > 0).astype(int) + (X[:, 1] % 3 == 0) + (rng.random(2000) < 0.3)
    model = KFHEClassifier(n_estimators=9, categorical_features=[1, 2], random_state=0).fit(X, y)
    forest = model.estimators_
    assert len(forest.category_sets) > 20
    sides = forest.nodes["kind"][forest.nodes["kind"] != 0] & 4
    assert 0 < np.count_nonzero(sides) < len(sides)
    # Each category, and some that were never seen
    new = with_gaps(np.column_stack([rng.normal(size=4000), rng.integers(n_levels + 4, size=(4000, 2))]), 2)
    rows = forest.encoded(new)
    expected = scores(forest, rows, 1, None, plain=False)
    assert forest.compact_for_gaps is not None
    np.testing.assert_array_equal(scores(forest, rows, 2, forest.compact_for_gaps), expected)
    whole = ~np.isnan(rows).any(axis=1)
    assert whole.sum() > 50
    found = scores(forest, np.ascontiguousarray(rows[whole]), 2, forest.compact)
    np.testing.assert_array_equal(found, expected[whole])


def test_rows_of_nothing_but_gaps_fall_into_the_same_leaves(model):
    rows = np.full((40, 5), np.nan)
    forest = model.estimators_
    expected = scores(forest, rows, 1, None, plain=False)
    np.testing.assert_array_equal(scores(forest, rows, 1, forest.compact_for_gaps), expected)


NO_SETS = np.empty((0, 4), dtype=np.uint64)


def compacted(nodes, starts, sets=NO_SETS):
    return compact(nodes, sets, starts, np.arange(len(starts)) * bool(len(sets)), False)


def test_a_forest_that_does_not_fit_has_no_compact_form():
    leaf = np.zeros(1, dtype=NODE_DTYPE)
    assert compacted(leaf, np.array([0, 1])) is None
    stumps = np.zeros(3 * 4097, dtype=NODE_DTYPE)
    stumps["kind"][::3], stumps["left"][::3], stumps["feature"][::3] = 1, 1, np.arange(4097)
    starts = np.arange(0, len(stumps) + 1, 3)
    assert compacted(stumps, starts) is None
    assert compacted(stumps[:-3], starts[:-1]) is not None
    stumps = np.resize(stumps[:3], 3 * 65535)  # of one feature, each with a threshold of its own
    stumps["threshold"][::3] = np.arange(65535)
    starts = np.arange(0, len(stumps) + 1, 3)
    assert compacted(stumps, starts) is None
    assert compacted(stumps[:-3], starts[:-1]) is not None


def test_sets_of_categories_here_and_there_are_too_many_for_a_compact_form():
    stump = np.zeros(3, dtype=NODE_DTYPE)
    stump["kind"][0], stump["left"][0] = 2, 1
    starts = np.array([0, 3])
    together = np.array([[0b111000, 0, 0, 0]], dtype=np.uint64)
    every_other = np.full((1, 4), 0x5555555555555555, dtype=np.uint64)
    assert compacted(stump, starts, together) is not None
    assert compacted(stump, starts, every_other) is None
