"""Traversal: rows fall into the leaves they were grown into, scores are weighted sums of leaf votes."""

import numpy as np
import pytest

from kfhe.engine.trees.leaf_votes import leaf_classes
from kfhe.engine.trees.predictor import add_trees, apply
from kfhe.engine.trees.tree_store import TreeStore
from kfhe.forest import NODE_DTYPE
from kfhe.tables.binned import BinnedTable

from .rows import Rows
from .twin import Settings

N_TREES, N_CLASSES = 4, 3


@pytest.fixture(scope="module", params=[1, 7, 300, 6000])
def forest(request):
    """Trees on a table with gaps; its values, the stored arrays, and the leaf of each row in each tree."""
    rng = np.random.default_rng(request.param)
    n = request.param
    X = np.round(rng.normal(size=(n, 3)), 1)
    labels = ((X[:, 0] > 0) + rng.integers(2, size=n)).astype(np.int32)
    X[rng.random(size=X.shape) < 0.1] = np.nan
    rows = Rows(BinnedTable.from_table(X, None, 255, 1), labels, N_CLASSES, None, True)
    grower = rows.grower(Settings(min_samples_leaf=1))
    store, leaves = TreeStore(N_CLASSES), []
    for t in range(N_TREES):
        weights = rng.integers(3, size=n, dtype=np.int32)
        weights[0] = 1
        grown = grower.grow(weights, True, t)
        store.append(grown)
        leaves.append(grown.leaves)
    arrays = store.arrays()
    arrays["nodes"] = arrays["nodes"].view(NODE_DTYPE)
    return X, arrays, leaves


@pytest.mark.parametrize("n_threads", [1, 2])
def test_rows_fall_into_the_leaves_that_growing_has_told(forest, n_threads):
    X, arrays, leaves = forest
    for t in range(N_TREES):
        first, end = arrays["tree_nodes"][t : t + 2]
        found = apply(arrays["nodes"][first:end], arrays["category_sets"], X, n_threads)
        np.testing.assert_array_equal(found, leaves[t])


@pytest.mark.parametrize("n_soft", range(N_TREES + 1))
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_first_trees_vote_by_what_is_handed_in_and_the_others_for_a_class(forest, n_soft, n_threads):
    X, arrays, leaves = forest
    rng = np.random.default_rng(0)
    classes = leaf_classes(arrays["leaf_weights"])
    votes = rng.normal(size=(arrays["tree_leaves"][n_soft], N_CLASSES))
    weights = rng.normal(size=N_TREES)
    scores = np.zeros((len(X), N_CLASSES))
    expected = scores.copy()
    for t in range(1, N_TREES):  # h_0 is left out: any part of the trees can be asked for
        leaf = arrays["tree_leaves"][t] + leaves[t]
        expected += weights[t] * (votes[leaf] if t < n_soft else np.eye(N_CLASSES)[classes[leaf]])
    add_trees(
        arrays["nodes"],
        arrays["category_sets"],
        classes,
        votes,
        arrays["tree_nodes"],
        arrays["tree_leaves"],
        arrays["tree_sets"],
        weights,
        1,
        N_TREES,
        False,
        X,
        scores,
        n_threads,
    )
    np.testing.assert_array_equal(scores, expected)
