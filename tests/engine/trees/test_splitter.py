"""Splitter: the best split is that of the plain twin, whatever it is looked for in."""

from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfhe.engine.trees.histogram import class_histograms, count_histograms
from kfhe.engine.trees.partitioner import cut, sides
from kfhe.engine.trees.splitter import best_split
from kfhe.tables.binned import BinnedTable

from .rows import Rows, random_rows, weights_of
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


# ---------------------------------------------------------------- nodes of some hundred rows


def stumps(n_rows, n_classes, seed, **settings):
    """One split of rows in many bins, looked for as in nodes of few rows and of many."""
    rng = np.random.default_rng(seed)
    X = rng.integers(60, size=(n_rows, 2)).astype(float)
    labels = (X[:, 0] * n_classes // 60 + rng.integers(n_classes, size=n_rows)).astype(np.int32) % n_classes
    X[rng.random(X.shape) < rng.choice([0, 0.1, 0.9])] = np.nan
    rows = Rows(
        BinnedTable.from_table(X, None, 255, 1),
        labels,
        n_classes,
        *weights_of(rng, n_rows, settings.pop("kind")),
    )
    limits = Settings(min_samples_leaf=1 + seed % 9, max_depth=2, **settings)
    ways = ({}, {"n_threads": 2, "force_parallel": True})
    return [rows.grow(limits, **way)[0] for way in ways]


@pytest.mark.parametrize("kind", ["counts", "real"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"max_features": 1}, {"random_cuts": True}])
def test_sorted_and_tallied_rows_have_the_split_of_the_histogram(n_classes, kind, settings):
    """All features tried: in sorted order. One drawn: tallied by bin, if rows of two classes are counted."""
    for seed in range(40):
        n_rows = int(np.random.default_rng(seed).integers(2, 700))
        few, many = stumps(n_rows, n_classes, seed, kind=kind, **settings)
        np.testing.assert_array_equal(few["nodes"], many["nodes"])
        np.testing.assert_array_equal(few["gains"], many["gains"])


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
