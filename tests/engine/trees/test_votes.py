"""Votes: the heaviest class of a leaf, the first one of equals; or the share of each class."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from kfhe.engine.trees.leaf_votes import leaf_classes, leaf_shares

leaf_weights = arrays(
    np.int32, array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.sampled_from([0, 1, 2, 7, 2**28])
)


@given(weights=leaf_weights)
def test_a_leaf_votes_for_its_heaviest_class_and_for_the_first_of_equals(weights):
    found = leaf_classes(weights)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, weights.argmax(axis=1))


@given(weights=leaf_weights)
def test_shares_are_weights_over_their_sum(weights):
    weights[:, 0] += 1
    total = weights.sum(axis=1, keepdims=True, dtype=np.float64)
    np.testing.assert_array_equal(leaf_shares(weights), weights / total)


def test_a_leaf_may_weigh_as_much_as_a_tree_may():
    assert leaf_shares(np.array([[2**30, 2**30 - 1]], dtype=np.int32)).tolist() == [
        [2**30 / (2**31 - 1), (2**30 - 1) / (2**31 - 1)]
    ]


def test_no_leaves_have_no_votes():
    none = np.empty((0, 3), dtype=np.int32)
    assert leaf_classes(none).shape == (0,)
    assert leaf_shares(none).shape == (0, 3)
