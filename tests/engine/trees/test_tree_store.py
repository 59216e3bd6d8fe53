"""Storage: trees come out as they went in, the last ones can be dropped, arrays are handed over uncopied."""

import pickle

import numpy as np
import pytest

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.tree_store import TreeStore, gains_of_features
from kfhe.forest import LEAF, NODE_DTYPE

NAMES = ("nodes", "gains", "leaf_weights", "category_sets")


def tree(seed, n_classes=3):
    """A tree whose arrays have random contents: the store doesn't look into them."""
    rng = np.random.default_rng(seed)
    n_leaves, n_sets = rng.integers(1, 6), rng.integers(0, 3)
    return GrownTree.from_arrays(
        rng.integers(256, size=16 * (2 * n_leaves - 1), dtype=np.uint8),
        rng.normal(size=2 * n_leaves - 1),
        rng.integers(9, size=(n_leaves, n_classes), dtype=np.int32),
        rng.integers(2**63, size=(n_sets, 4), dtype=np.uint64),
        rng.integers(n_leaves, size=7, dtype=np.int32),
    )


@pytest.mark.parametrize("n_nodes", [10, 40_000])
def test_gains_are_added_up_by_tree_and_feature_in_the_order_of_the_nodes(n_nodes):
    rng = np.random.default_rng(0)
    nodes = np.zeros(2 * n_nodes, dtype=NODE_DTYPE)
    nodes["kind"], nodes["feature"] = rng.integers(3, size=2 * n_nodes), rng.integers(5, size=2 * n_nodes)
    gains, starts = rng.normal(size=2 * n_nodes), np.array([0, n_nodes, 2 * n_nodes])
    found = gains_of_features(nodes, gains, starts, 5, 3)
    for t in range(2):
        some = np.arange(starts[t], starts[t + 1])
        some = some[nodes["kind"][some] != LEAF]
        expected = np.bincount(nodes["feature"][some], gains[some].clip(min=0), 5)
        np.testing.assert_array_equal(found[t], expected)


def test_large_trees_are_copied_by_several_threads():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30_000, 2)), rng.integers(3, size=30_000)
    kinds = [
        KFHEClassifier(
            CARTClassifier(min_samples_split=2, min_samples_leaf=1), n_estimators=2, random_state=0, n_jobs=n
        )
        for n in (1, 3)
    ]
    first, second = (model.fit(X, y) for model in kinds)
    assert first.estimators_.nodes.nbytes > 2**19
    assert first.fingerprint() == second.fingerprint()


def store_of(seeds, n_classes=3):
    store = TreeStore(n_classes)
    for seed in seeds:
        store.append(tree(seed, n_classes))
    return store


def assert_holds(store, seeds):
    trees = [tree(seed) for seed in seeds]
    arrays = store.arrays()
    assert len(store) == len(trees)
    for name in NAMES if trees else ():
        np.testing.assert_array_equal(arrays[name], np.concatenate([getattr(t, name) for t in trees]))
    for name, part in (("nodes", "gains"), ("leaves", "leaf_weights"), ("sets", "category_sets")):
        lengths = [len(getattr(t, part)) for t in trees]
        np.testing.assert_array_equal(arrays[f"tree_{name}"], np.cumsum([0, *lengths]))


def test_a_tree_shows_the_arrays_it_was_made_of():
    rng = np.random.default_rng(0)
    arrays = {
        "nodes": rng.integers(256, size=48, dtype=np.uint8),
        "gains": rng.normal(size=3),
        "leaf_weights": np.array([[3, 1], [0, 2]], dtype=np.int32),
        "category_sets": rng.integers(2**63, size=(1, 4), dtype=np.uint64),
        "leaves": np.array([0, 1, 1, 0], dtype=np.int32),
    }
    made = GrownTree.from_arrays(*arrays.values())
    for name, array in arrays.items():
        np.testing.assert_array_equal(getattr(made, name), array)
    assert made.class_votes().tolist() == [0, 1, 1, 0]
    assert made.share_votes().tolist() == [[0.75, 0.25], [0, 1], [0, 1], [0.75, 0.25]]


@pytest.mark.parametrize("n_bytes", [0, 32, 47])
def test_a_tree_has_a_gain_for_each_node(n_bytes):
    with pytest.raises(ValueError, match=f"3 gains take 48 bytes of nodes, got {n_bytes}"):
        GrownTree.from_arrays(
            np.zeros(n_bytes, dtype=np.uint8),
            np.zeros(3),
            np.ones((2, 2), dtype=np.int32),
            np.empty((0, 4), dtype=np.uint64),
            np.zeros(5, dtype=np.int32),
        )


@pytest.mark.parametrize("n_trees", [0, 1, 2, 50])
def test_trees_are_stored_one_after_the_other(n_trees):
    assert_holds(store_of(range(n_trees)), range(n_trees))


def test_one_tree_can_be_taken_out():
    store = store_of(range(5))
    for t in range(5):
        for found, name in zip(store.tree(t), ("nodes", "leaf_weights", "category_sets"), strict=True):
            np.testing.assert_array_equal(found, getattr(tree(t), name))
    with pytest.raises(IndexError, match="there are 5 trees, got 5"):
        store.tree(5)


@pytest.mark.parametrize("n_kept", [0, 1, 4, 5, 9])
def test_all_trees_but_the_first_ones_are_dropped_and_others_take_their_place(n_kept):
    store = store_of(range(5))
    store.keep(n_kept)
    assert_holds(store, range(min(n_kept, 5)))
    store.append(tree(77))
    assert_holds(store, [*range(min(n_kept, 5)), 77])


@pytest.mark.parametrize("name", NAMES)
def test_a_store_that_was_handed_over_can_not_change_while_somebody_looks_at_it(name):
    store = store_of(range(3))
    arrays = store.arrays(copy=False)[name]  # one of them is enough
    with pytest.raises(BufferError, match="handed over"):
        store.append(tree(3))
    with pytest.raises(BufferError, match="handed over"):
        store.keep(1)
    assert_holds(store, range(3))
    del arrays
    store.append(tree(3))
    assert_holds(store, range(4))


def test_arrays_that_are_handed_over_are_no_copy():
    store = store_of(range(3))
    first, second = (store.arrays(copy=False) for _ in range(2))
    for name in NAMES:
        assert np.shares_memory(first[name], second[name])
        assert not np.shares_memory(first[name], store.arrays()[name])


def test_a_copy_stays_as_it_is_when_the_store_changes():
    store = store_of(range(3))
    before = store.arrays()
    store.keep(0)
    store.append(tree(9))
    for name, array in store_of(range(3)).arrays().items():
        np.testing.assert_array_equal(before[name], array)


def test_a_store_comes_back_from_its_arrays_and_from_a_pickle():
    store = store_of(range(4))
    for copy in (TreeStore.from_arrays(store.arrays()), pickle.loads(pickle.dumps(store))):
        assert_holds(copy, range(4))
        copy.append(tree(4))
        assert_holds(copy, range(5))
    assert_holds(store, range(4))


def test_an_empty_store_comes_back_too():
    assert_holds(pickle.loads(pickle.dumps(TreeStore(3))), [])


def test_a_tree_for_other_classes_is_refused():
    with pytest.raises(ValueError, match="the trees are for 3 classes, got one for 2"):
        TreeStore(3).append(tree(0, n_classes=2))
