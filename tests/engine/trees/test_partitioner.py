"""Partitioning: rows go to the side of their bin, and stay in their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfhe.engine.trees.partitioner import cut, partition, sides

from .rows import random_rows


def split(**parts):
    nothing = dict.fromkeys(("score", "left_weight", "feature", "last_left", "first_right"), 0)
    return {**nothing, "categorical": False, "missing_left": False, "left_bins": [0] * 4, **parts}


@given(rows=random_rows(), seed=st.integers(0, 99), n_threads=st.integers(1, 4))
def test_rows_are_parted_by_their_bins_and_both_sides_keep_their_order(rows, seed, n_threads):
    rng = np.random.default_rng(seed)
    column, goes_left = rows.table.codes[0], rng.integers(2, size=256, dtype=np.uint8)
    mixed = rng.permutation(len(rows.present[0]))
    before = [array[mixed] for array in rows.present]
    numbers, classes, weights = (array.copy() for array in before)
    n_left, totals = partition(column, goes_left, numbers, classes, weights, rows.n_classes, n_threads)
    left = goes_left[column[before[0]]] == 1
    assert n_left == left.sum()
    for array, untouched in zip((numbers, classes, weights), before, strict=True):
        np.testing.assert_array_equal(array, np.concatenate([untouched[left], untouched[~left]]))
    expected = np.zeros(rows.n_classes, dtype=int)
    np.add.at(expected, before[1][left], before[2][left])
    np.testing.assert_array_equal(totals, expected)


def test_no_rows_are_parted_into_none_and_none():
    nothing = [np.empty(0, dtype=kind) for kind in (np.uint32, np.uint16, np.int32)]
    n_left, totals = partition(np.zeros(1, dtype=np.uint8), np.zeros(256, dtype=np.uint8), *nothing, 2)
    assert (n_left, totals.tolist()) == (0, [0, 0])


VALUES = np.array([1.0, 2.0, 4.0, 8.0])  # a bin each


@pytest.mark.parametrize(
    ("last_left", "first_right", "expected"),
    [
        (0, 1, (0, 1.5)),
        (0, 2, (1, 2.5)),  # the middle between neighbours in the node; bin 1 is not in it, and below
        (0, 3, (2, 4.5)),
        (2, 3, (2, 6.0)),
        (3, 4, (3, np.inf)),  # values left, missing ones right
        (1, 4, (3, np.inf)),
    ],
)
def test_the_cut_is_midway_between_neighbours_in_the_node(last_left, first_right, expected):
    assert cut(split(last_left=last_left, first_right=first_right), 5, VALUES, VALUES) == expected


def test_a_bin_of_several_values_is_never_cut_in_two():
    low, high = np.array([0.0, 3.0, 10.0]), np.array([0.0, 7.0, 10.0])
    found = cut(split(last_left=0, first_right=2), 4, low, high)
    assert found == (0, 1.5)  # 5 is the middle, and inside the bin between, which goes right


def test_a_threshold_is_below_the_value_on_its_right_whatever_the_rounding():
    values = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert cut(split(last_left=0, first_right=1), 3, values, values) == (0, 1.0)


@pytest.mark.parametrize("missing_left", [True, False])
def test_numbers_up_to_the_cut_go_left_and_gaps_where_they_are_sent(missing_left):
    found = sides(split(last_left=1, first_right=2, missing_left=missing_left), 5, VALUES, VALUES)
    assert found.tolist() == [1, 1, 0, 0, int(missing_left)]


def test_categories_go_to_the_side_of_their_bit():
    bins = {0, 63, 64, 130, 199}
    words = [sum(1 << b % 64 for b in bins if b // 64 == word) for word in range(4)]
    found = sides(split(categorical=True, left_bins=words), 200, VALUES, VALUES)
    assert set(np.flatnonzero(found).tolist()) == bins
