"""Imbalance: each class keeps less than the one before, and none is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfhe.noise import thin_classes


def test_each_class_keeps_a_share_of_what_the_one_before_keeps():
    y = np.repeat(["a", "b", "c", "d"], 80)
    kept = thin_classes(y, 0.5, random_state=0)
    assert sorted(np.unique(y[kept], return_counts=True)[1].tolist()) == [10, 20, 40, 80]


def test_any_class_may_become_the_rare_one():
    y = np.repeat([0, 1, 2], 20)
    rarest = {int(np.bincount(y[thin_classes(y, 0.8, random_state=seed)]).argmin()) for seed in range(30)}
    assert rarest == {0, 1, 2}


@given(
    y=st.lists(st.sampled_from("abcd"), min_size=1),
    rate=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_rows_are_kept_once_in_their_order_and_no_class_is_lost(y, rate, seed):
    labels = np.array(y)
    kept = thin_classes(labels, rate, random_state=seed)
    assert (np.diff(kept) > 0).all()
    assert set(labels[kept]) == set(y)
    np.testing.assert_array_equal(kept, thin_classes(labels, rate, random_state=seed))
    if rate == 0:
        assert len(kept) == len(y)


def test_a_rate_beyond_1_is_refused():
    with pytest.raises(ValueError, match="rate must be a number from 0 to 1, got 2"):
        thin_classes([0, 1], 2, random_state=0)
