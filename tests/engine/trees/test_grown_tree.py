"""Grown trees: rows that walk down by their bins end in the leaves that growing has put them in."""

import numpy as np
import pytest

from kfhe.engine.arrays import class_totals
from kfhe.engine.trees.grown_tree import leaves_of_codes
from kfhe.tree_settings import TreeSettings


@pytest.mark.parametrize("n", [1, 700, 5000])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("categorical", [None, [1, 3]])
def test_rows_walk_to_the_leaves_that_growing_knows(n, gaps, categorical, rng):
    X = rng.integers(0, 9, size=(n, 4)).astype(float)
    X[:, :2] *= rng.integers(1, 40, size=(n, 2)) if categorical is None else 1
    X[rng.random(X.shape) < gaps] = np.nan
    labels = rng.integers(0, 3, size=n).astype(np.int32)
    settings = TreeSettings(min_samples_split=2, min_samples_leaf=1, categorical_features=categorical)
    table = settings.binned(X, 1)
    counts = rng.poisson(1.0, size=n).astype(np.int32)
    counts[0] = 1
    tree = settings.grower(table, labels, 3, 0, 1).grow(counts, True, 1)
    leaves = leaves_of_codes(tree.nodes, tree.category_sets, table.codes, table.n_bins)
    np.testing.assert_array_equal(leaves, tree.leaves)
    known = np.where(counts > 0, leaves, -1).astype(np.int32)
    leaves = leaves_of_codes(tree.nodes, tree.category_sets, table.codes, table.n_bins, known)
    np.testing.assert_array_equal(leaves, tree.leaves)
    assert n < 700 or len(tree.leaf_weights) > 50


def test_weights_of_classes_are_summed():
    labels, weights = np.array([[2, 0, 2, 1], [5, 0, 7, 1]], dtype=np.int32)
    np.testing.assert_array_equal(class_totals(labels, weights, 4), [0, 1, 12, 0])
