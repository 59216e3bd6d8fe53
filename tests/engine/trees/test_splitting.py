"""Splitting: the best split from histograms, and along sorted orders, is that of the plain twin."""

from time import perf_counter

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kfhe.engine.trees.histograms import class_histograms, count_histograms
from kfhe.engine.trees.orders import sorted_order
from kfhe.engine.trees.partitioning import cut, sides
from kfhe.engine.trees.splitting import best_split
from kfhe.engine.trees.sweeping import best_sorted_split

from .rows import random_rows
from .twin import Settings, Twin

least_rows = st.sampled_from([1, 1, 2, 7])


def histograms_of(rows, numbers):
    """Histograms of some rows, and their counts unless the weights are counts."""
    table = rows.table
    classes, weights = rows.labels[numbers].astype(np.uint16), rows.weights[numbers]
    histograms = class_histograms(table.codes, table.n_bins, numbers, classes, weights, rows.n_classes)
    return histograms, None if rows.counts else count_histograms(table.codes, table.n_bins, numbers)


def assert_same_split(split, expected, table):
    """Score, feature, sides and threshold are those that the twin has found."""
    if expected.score == 0:
        assert split is None
        return
    feature = expected.feature
    assert (split["score"], split["feature"]) == (expected.score, feature)
    assert split["missing_left"] == expected.missing_left
    bins = int(table.n_bins[feature]), table.low[feature], table.high[feature]
    assert sides(split, *bins).tolist() == [b in expected.left_bins for b in range(bins[0])]
    if not table.categorical[feature]:
        assert cut(split, *bins) == (expected.cut, expected.threshold)


@settings(max_examples=200)
@given(rows=random_rows(), min_samples_leaf=least_rows)
def test_the_best_split_of_all_features_is_that_of_the_twin(rows, min_samples_leaf):
    limits = Settings(min_samples_leaf=min_samples_leaf)
    twin = Twin(rows.table, rows.labels, rows.n_classes, rows.weights, rows.counts, limits)
    histograms, counts = histograms_of(rows, rows.present[0])
    split = best_split(histograms, rows.table.n_bins, rows.table.categorical, min_samples_leaf, counts)
    assert_same_split(split, twin.best_split(twin.rows, key=1), rows.table)
    if split:
        left = [i for i in twin.rows if sides_of(split, rows.table)[rows.table.codes[split["feature"], i]]]
        assert split["left_weight"] == rows.weights[left].sum()


def sides_of(split, table):
    feature = split["feature"]
    return sides(split, int(table.n_bins[feature]), table.low[feature], table.high[feature])


@given(rows=random_rows(), min_samples_leaf=least_rows, seed=st.integers(0, 99))
def test_histograms_summed_over_blocks_of_rows_give_the_split_of_all_rows(rows, min_samples_leaf, seed):
    numbers = rows.present[0]
    block = np.random.default_rng(seed).integers(3, size=len(numbers))
    parts = [histograms_of(rows, numbers[block == b]) for b in range(3)]
    summed = sum(part[0] for part in parts)
    counts = None if rows.counts else sum(part[1] for part in parts)
    whole, whole_counts = histograms_of(rows, numbers)
    table = rows.table
    expected = best_split(whole, table.n_bins, table.categorical, min_samples_leaf, whole_counts)
    assert best_split(summed, table.n_bins, table.categorical, min_samples_leaf, counts) == expected


@settings(max_examples=200)
@given(rows=random_rows(), min_samples_leaf=least_rows)
def test_a_sorted_order_has_the_split_of_the_histogram(rows, min_samples_leaf):
    table, numbers = rows.table, rows.present[0].astype(np.uint16)
    numeric = np.flatnonzero(table.categorical == 0)
    assume(len(numeric))
    limits = Settings(min_samples_leaf=min_samples_leaf)
    twin = Twin(table, rows.labels, rows.n_classes, rows.weights, rows.counts, limits)
    for feature in numeric:
        n_bins = int(table.n_bins[feature])
        order = sorted_order(table.codes[feature], numbers, n_bins)
        split = best_sorted_split(
            order, rows.labels, rows.weights, n_bins, rows.n_classes, min_samples_leaf, rows.counts
        )
        expected = twin.split_numbers(twin.rows, int(feature))
        assert_same_split(split and {**split, "feature": int(feature)}, expected, table)


def test_of_features_with_equal_splits_the_first_one_is_taken():
    useless, useful = [[5, 5], [0, 0], [0, 0]], [[5, 0], [0, 5], [0, 0]]
    split = best_split(
        np.array(useless + useful + useful, dtype=np.int32),
        np.full(3, 3, dtype=np.int32),
        np.zeros(3, dtype=np.uint8),
        1,
    )
    assert split["feature"] == 1


def least_time(histogram, *, categorical):
    """The shortest of some times that it takes to split a feature."""
    arguments = np.array([len(histogram)], dtype=np.int32), np.array([categorical], dtype=np.uint8), 1
    times = []
    for _ in range(5):
        start = perf_counter()
        best_split(histogram, *arguments)
        times.append(perf_counter() - start)
    return min(times)


def test_categories_take_no_time_for_classes_that_the_node_has_no_rows_of():
    histogram = np.zeros((30, 1000), dtype=np.int32)
    histogram[:, [3, 500, 999]] = np.random.default_rng(0).integers(9, size=(30, 3))
    assert least_time(histogram, categorical=True) < 20 * least_time(histogram, categorical=False)


def test_categories_with_a_class_each_take_less_time_than_those_with_all_classes():
    one_each, all_in_all = np.eye(250, dtype=np.int32), np.ones((250, 250), dtype=np.int32)
    assert least_time(one_each, categorical=True) < 0.7 * least_time(all_in_all, categorical=True)
