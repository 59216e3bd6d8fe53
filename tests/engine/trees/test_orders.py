"""Orders: rows by bin, and their sides, are those of a stable sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kfhe.engine.trees.orders import side_of_sorted, sorted_order

bins = st.sampled_from([0, 1, 2, 7, 63, 64, 127, 128, 191, 192, 254, 255])
codes = arrays(np.uint8, st.one_of(st.integers(1, 40), st.integers(60, 90)), elements=bins)


@given(codes=codes, seed=st.integers(0, 99))
def test_rows_are_sorted_by_bin_and_rows_of_a_bin_stay_in_order(codes, seed):
    rng = np.random.default_rng(seed)
    members = rng.permutation(len(codes))[: rng.integers(len(codes) + 1)].astype(np.uint16)
    order = sorted_order(codes, members, 256)
    expected = members[np.argsort(codes[members], kind="stable")]
    np.testing.assert_array_equal(order & 0xFFFF, expected)
    np.testing.assert_array_equal(order >> 16, codes[expected])


def test_the_last_row_that_16_bits_can_name_keeps_its_name():
    codes = np.zeros(2**16, dtype=np.uint8)
    codes[-1] = 255
    order = sorted_order(codes, np.array([2**16 - 1, 0], dtype=np.uint16), 256)
    assert order.tolist() == [0, 255 << 16 | 2**16 - 1]


@given(codes=codes, seed=st.integers(0, 99))
def test_a_side_of_a_sorted_order_is_the_order_of_that_side(codes, seed):
    side = np.random.default_rng(seed).integers(3, size=len(codes), dtype=np.uint8)
    members = np.arange(len(codes), dtype=np.uint16)
    order = sorted_order(codes, members, 256)
    for wanted in (0, 1):
        expected = sorted_order(codes, members[side == wanted], 256)
        np.testing.assert_array_equal(side_of_sorted(order, side, wanted), expected)
