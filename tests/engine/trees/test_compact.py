"""Compact trees: rows fall into the same leaves as in the trees that they were made of."""

import numpy as np
import pytest

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.engine.trees.compact import compact
from kfhe.engine.trees.predictor import add_trees
from kfhe.forest import NODE_DTYPE


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(400, 5)), 1)
    y = (X[:, 0] + X[:, 1] > 0).astype(int) + (rng.random(400) < 0.2)
    return KFHEClassifier(n_estimators=9, random_state=0).fit(X, y)


def scores(forest, X, n_threads, compact_trees, *, plain=True, factors=None):
    found = np.zeros((len(X), len(forest.classes)))
    starts = forest.tree_nodes, forest.tree_leaves, forest.tree_sets
    votes = forest.leaf_classes, forest.leaf_votes()
    trees = forest.nodes, forest.category_sets, *votes, *starts, forest.weights, 0, len(forest)
    add_trees(*trees, plain, X, found, n_threads, compact_trees, factors)
    return found


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n_rows", [1, 15, 16, 17, 32, 33, 511, 513, 4000])
def test_scores_are_the_same_bits(model, n_rows, n_threads):
    forest = model.estimators_
    X = np.random.default_rng(n_rows).choice([-9.0, 0.0, -0.0, 0.1, 9.0], size=(n_rows, 5))
    on_thresholds = np.random.default_rng(1).random(n_rows) < 0.5
    splits = forest.nodes[forest.nodes["kind"] != 0]
    for j in range(5):
        own = splits["threshold"][splits["feature"] == j]
        X[on_thresholds, j] = np.resize(own, on_thresholds.sum())  # a value at a threshold goes left
    expected = scores(forest, X, 1, None)
    np.testing.assert_array_equal(scores(forest, X, n_threads, forest.compact()), expected)


def test_rows_with_gaps_take_the_form_that_is_for_them(model):
    X = with_gaps(np.random.default_rng(5).normal(size=(4000, 5)), 5)
    forest = model.estimators_
    expected = scores(forest, X, 1, None, plain=False)
    np.testing.assert_array_equal(model.estimators_.scores(X, 2), np.minimum(expected, 1))
    assert "compact_for_gaps" in forest.__dict__


def test_a_forest_becomes_compact_once_enough_rows_have_come(model):
    forest = model.estimators_
    for known in ("compact_trees", "walks"):
        forest.__dict__.pop(known, None)
    X = np.random.default_rng(3).normal(size=(20, 5))
    first = model.predict_proba(X)
    assert "compact_trees" not in forest.__dict__
    for _ in range(len(forest.nodes) // (20 * len(forest)) + 1):
        model.predict_proba(X)
    assert "compact_trees" in forest.__dict__
    np.testing.assert_array_equal(model.predict_proba(X), first)


def with_gaps(X, seed):
    gaps = np.random.default_rng(seed).random(X.shape) < 0.2
    return np.where(gaps, np.nan, X)


@pytest.mark.parametrize("n_levels", [2, 7, 12])
def test_gaps_and_categories_are_no_other_bits(n_levels):
    rng = np.random.default_rng(n_levels)
    X = with_gaps(np.column_stack([rng.normal(size=2000), rng.integers(n_levels, size=(2000, 2))]), 1)
    y = (np.nan_to_num(X[:, 0]) > 0).astype(int) + (X[:, 1] % 3 == 0) + (rng.random(2000) < 0.3)
    model = KFHEClassifier(CARTClassifier(categorical_features=[1, 2]), n_estimators=9, random_state=0).fit(
        X, y
    )
    forest = model.estimators_
    assert len(forest.category_sets) > 20
    sides = forest.nodes["kind"][forest.nodes["kind"] != 0] & 4
    assert 0 < np.count_nonzero(sides) < len(sides)
    # Each category, and some that were never seen
    new = with_gaps(np.column_stack([rng.normal(size=4000), rng.integers(n_levels + 4, size=(4000, 2))]), 2)
    rows = forest.encoded(new)
    expected = scores(forest, rows, 1, None, plain=False)
    assert forest.compact(gaps=True) is not None
    np.testing.assert_array_equal(scores(forest, rows, 2, forest.compact(gaps=True)), expected)
    whole = ~np.isnan(rows).any(axis=1)
    assert whole.sum() > 50
    found = scores(forest, np.ascontiguousarray(rows[whole]), 2, forest.compact())
    np.testing.assert_array_equal(found, expected[whole])


def test_rows_of_nothing_but_gaps_fall_into_the_same_leaves(model):
    rows = np.full((40, 5), np.nan)
    forest = model.estimators_
    expected = scores(forest, rows, 1, None, plain=False)
    np.testing.assert_array_equal(scores(forest, rows, 1, forest.compact(gaps=True)), expected)


NO_SETS = np.empty((0, 4), dtype=np.uint64)


def compacted(nodes, starts, sets=NO_SETS):
    leaves, leaf_weights = np.zeros(len(starts), dtype=np.int64), np.ones((2, 1), dtype=np.int32)
    tree_sets, n_features = np.arange(len(starts)) * bool(len(sets)), int(nodes["feature"].max()) + 1
    return compact(nodes, sets, starts, tree_sets, leaves, leaf_weights, n_features, False, 2)


def test_a_forest_that_does_not_fit_has_no_compact_form():
    leaf = np.zeros(1, dtype=NODE_DTYPE)
    assert compacted(leaf, np.array([0, 1])) is None
    stumps = np.zeros(3 * 2049, dtype=NODE_DTYPE)
    stumps["kind"][::3], stumps["left"][::3], stumps["feature"][::3] = 1, 1, np.arange(2049)
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


def leaf_votes(nodes, starts, X, *, compact_trees=None):
    """The numbers of the leaves that each row falls into, summed by weights that tell trees apart."""
    n_leaves = np.diff(starts) // 2 + 1
    tree_leaves = np.append(0, np.cumsum(n_leaves))
    numbers = np.concatenate([np.arange(n, dtype=np.float64) for n in n_leaves])[:, None]
    weights = 0.37 ** np.arange(len(n_leaves))
    sets = np.zeros(len(starts), dtype=np.int64)
    found = np.zeros((len(X), 1))
    trees = nodes, NO_SETS, np.zeros(len(numbers), dtype=np.int32), numbers, starts, tree_leaves, sets
    add_trees(*trees, weights, 0, len(n_leaves), True, X, found, 1, compact_trees)
    return found


def grown(rng, n_splits, shape, draw_threshold):
    """A tree that has grown at random: chains split the last leaf, bushes any, at one of three features."""
    nodes, leaves = np.zeros(2 * n_splits + 1, dtype=NODE_DTYPE), [0]
    for i in range(n_splits):
        at = leaves.pop(-1 if shape == "chain" else rng.integers(len(leaves)))
        nodes[at] = draw_threshold(rng), 2 * i + 1, rng.integers(3), 1, 0
        leaves += [2 * i + 1, 2 * i + 2]
    nodes["left"][nodes["kind"] == 0] = np.arange(n_splits + 1)
    return nodes


def wild(rng):
    """Thresholds that no grid suits: far apart, close together, without end."""
    return rng.choice(
        [-1e308, 1e308, 1e-320, 0.0, 1.0, np.nextafter(1, 2), np.inf, rng.normal(), 1e-9 * rng.normal()]
    )


@pytest.mark.parametrize("draw_threshold", [lambda rng: rng.normal(), lambda rng: rng.normal() ** 9, wild])
@pytest.mark.parametrize("shape", ["chain", "bush"])
@pytest.mark.parametrize("weighed", [True, False])
def test_trees_of_any_size_and_shape_send_rows_to_the_same_leaves(shape, draw_threshold, weighed):
    rng = np.random.default_rng(0)
    trees = [grown(rng, n, shape, draw_threshold) for n in (0, 1, 2, 14, 15, 16, 17, 60, 500)]
    nodes, starts = np.concatenate(trees), np.cumsum([0, *map(len, trees)])
    tree_leaves = np.cumsum([0, *((len(tree) + 1) // 2 for tree in trees)])
    leaf_weights = rng.integers(1, 100, size=(tree_leaves[-1], 1), dtype=np.int32) * weighed
    small = nodes, NO_SETS, starts, np.zeros(len(starts), dtype=np.int64), tree_leaves, leaf_weights, 3, False
    own = nodes["threshold"][(nodes["kind"] != 0) & np.isfinite(nodes["threshold"])]
    values = np.concatenate(
        [own, np.nextafter(own, np.inf), np.nextafter(own, -np.inf), rng.normal(size=500)]
    )
    X = rng.choice(values[np.isfinite(values)], size=(1000, 3))
    found = leaf_votes(nodes, starts, X, compact_trees=compact(*small))
    np.testing.assert_array_equal(found, leaf_votes(nodes, starts, X))


@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("even", [True, False])
def test_votes_are_left_out_once_they_can_not_turn_the_highest_score(voting, n_classes, even):
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(3000, 4))
    y = (n_classes * (np.argsort(np.argsort(X[:, 0] + 0.3 * rng.normal(size=3000))) / 3000)).astype(int)
    model = KFHEClassifier(
        CARTClassifier(max_leaf_nodes=12), n_estimators=40, voting=voting, random_state=0
    ).fit(X, y)
    forest, factors = model.estimators_, np.ones(n_classes) if even else rng.uniform(0.3, 3, size=n_classes)
    found = scores(forest, X, 2, forest.compact(), factors=factors)
    leaves = model.apply(X)
    total, to_come = np.zeros_like(found), forest.weights.sum()
    stopped = np.zeros(len(X), dtype=int)  # after how many trees
    for t in range(len(forest)):
        total += forest.weights[t] * forest.tree_votes(t)[leaves[:, t]]
        to_come -= forest.weights[t]
        best = (total * factors).argmax(axis=1)[:, None]
        ahead = np.take_along_axis(total * factors, best, axis=1) > (total + to_come) * factors
        np.put_along_axis(ahead, best, True, axis=1)
        stopped[(stopped == 0) & (total == found).all(axis=1) & ahead.all(axis=1)] = t + 1
    assert (stopped > 0).all()
    np.testing.assert_array_equal((found * factors).argmax(axis=1), (total * factors).argmax(axis=1))
    assert np.mean(stopped < len(forest)) > 0.3
    assert set(np.unique(stopped)) <= {*range(8, len(forest), 8), len(forest)}


def test_classes_are_those_of_the_highest_probabilities(model):
    X = np.random.default_rng(2).normal(size=(4000, 5))
    model.predict(X)
    assert model.estimators_.compact() is not None
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
