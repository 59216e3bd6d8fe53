"""Nodes: their names and the features that they draw are those of the plain twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kfhe.engine.trees.splitter import child_key, drawn_features

from . import twin

uint64 = st.integers(0, 2**64 - 1)


@given(key=uint64, side=st.sampled_from([0, 1]))
def test_a_child_is_named_as_the_twin_names_it(key, side):
    assert child_key(key, side) == twin.child_key(key, side)


def test_nodes_on_different_paths_have_different_names():
    keys = generation = {1}
    for _ in range(12):
        generation = {child_key(key, side) for key in generation for side in (0, 1)}
        keys = keys | generation
    assert len(keys) == 2**13 - 1


@given(n_features=st.integers(1, 40), seed=uint64, tree=st.integers(0, 1000), key=uint64)
def test_features_are_drawn_in_the_order_of_the_twin(n_features, seed, tree, key):
    drawn = drawn_features(n_features, seed, tree, key)
    assert drawn.tolist() == twin.shuffled(n_features, seed, tree, key)
    np.testing.assert_array_equal(np.sort(drawn), np.arange(n_features))
