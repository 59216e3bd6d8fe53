"""Pruning: the subtrees that go are those of the plain twin, and what stays is the cheapest tree."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfhe.engine.trees.pruner import pruned
from kfhe.forest import LEAF
from kfhe.tables.binned import BinnedTable

from .rows import Rows, random_rows, tree_settings
from .twin import Settings


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


def arrays_of(tree):
    """Left children, gains and class totals of all nodes, as `pruned` takes them."""
    nodes = tree["nodes"]
    left = np.where(nodes["kind"] == LEAF, -1, nodes["left"]).astype(np.int32)
    totals = np.zeros((len(nodes), tree["leaf_weights"].shape[1]), dtype=np.int64)
    for i in reversed(range(len(nodes))):  # children come after their parents
        children = totals[left[i] : left[i] + 2].sum(axis=0)
        totals[i] = children if left[i] >= 0 else tree["leaf_weights"][nodes["left"][i]]
    return left, tree["gains"], totals


def outline_of(left, totals, i=0):
    """Class totals of the nodes that are left, as `Branch.outline` has them."""
    children = [outline_of(left, totals, left[i] + side) for side in (0, 1)] if left[i] >= 0 else []
    return (totals[i].tolist(), *children)


@settings(max_examples=100)
@given(
    rows=random_rows(max_rows=60),
    cp=st.sampled_from([0.0, 0.01, 0.1, 1.0]),
    max_leaf_nodes=st.sampled_from([0, 2, 3, 6]),
)
def test_a_tree_pruned_alone_is_the_one_that_the_grower_prunes(rows, cp, max_leaf_nodes):
    left, gains, totals = arrays_of(rows.grow()[0])
    kept = pruned(left, gains, totals, cp=cp, max_leaf_nodes=max_leaf_nodes)
    expected, _ = rows.grow(cp=cp, max_leaf_nodes=max_leaf_nodes)
    assert outline_of(kept, totals) == Branch(expected).outline()
    assert ((kept == left) | (kept == -1)).all()


def test_what_is_below_a_cut_is_cut_too():
    left = np.array([1, 3, -1, -1, -1], dtype=np.int32)  # the root, a split on its left, three leaves
    totals = np.array([[8, 8], [4, 4], [4, 4], [2, 2], [2, 2]])
    assert pruned(left, np.ones(5), totals).tolist() == left.tolist()
    assert pruned(left, np.ones(5), totals, cp=0.1).tolist() == [-1] * 5
    assert pruned(left, np.ones(5), totals, max_leaf_nodes=2).tolist() == [1, -1, -1, -1, -1]


def test_nodes_may_come_in_any_order():
    left = np.array([1, 5, 3, -1, -1, -1, -1], dtype=np.int32)  # the right child's children come first
    totals = np.array([[8, 8], [6, 2], [2, 6], [0, 6], [2, 0], [6, 0], [0, 2]])
    gains = np.array([9.0, 1.0, 2.0, 0, 0, 0, 0])
    assert pruned(left, gains, totals).tolist() == left.tolist()
    assert pruned(left, gains, totals, max_leaf_nodes=3).tolist() == [1, -1, 3, -1, -1, -1, -1]


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


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_values=st.integers(2, 6),
    n_classes=st.integers(2, 3),
    max_leaf_nodes=st.integers(2, 12),
    max_features=st.sampled_from([0, 2]),
    counts=st.booleans(),
    threads=st.sampled_from([{}, {"n_threads": 2, "force_parallel": True}]),
)
def test_few_leaves_are_grown_as_the_whole_tree_would_be_cut_back(
    seed, n_values, n_classes, max_leaf_nodes, max_features, counts, threads
):
    # Many rows of few distinct values, so that leaves are few; four parts of the table, each with classes of
    # its own, are alike, so that splits gain the same.
    rng = np.random.default_rng(seed)
    part = rng.integers(n_values, size=(60, 4)).repeat(4, axis=0).astype(float)
    part[rng.random(part.shape) < 0.1] = np.nan
    X = np.column_stack([np.repeat(np.arange(4.0), len(part)), np.tile(part, (4, 1))])
    labels = (
        np.tile(rng.integers(n_classes, size=len(part)), 4) + np.repeat(np.arange(4), len(part)) * n_classes
    )
    weights = np.tile(rng.integers(3, size=len(part), dtype=np.int32), 4)
    table = BinnedTable.from_table(X, [1, 2], 255, 1)
    rows = Rows(table, labels.astype(np.int32), 4 * n_classes, weights, counts)
    limits = Settings(max_features=max_features, seed=seed % 100)
    left, gains, totals = arrays_of(rows.grow(limits)[0])
    kept = pruned(left, gains, totals, max_leaf_nodes=max_leaf_nodes)
    grown, votes = rows.grow(limits, max_leaf_nodes=max_leaf_nodes, **threads)
    assert outline_of(kept, totals) == Branch(grown).outline()
    np.testing.assert_array_equal(votes, grown["leaf_weights"][grown["leaves"]].argmax(axis=1))
