"""Bins: exact where a column has few distinct values, else quantiles; the same on any number of threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.engine.bins import bin_columns, columns_of
from kfhe.engine.draws import Stream, random_numbers

SAMPLED = 70_000  # more rows than are looked at to find quantiles


def bin_column(column, max_bins=255):
    """Bin one column: its codes, its number of bins, and the range of each bin."""
    codes, n_bins, low, high = bin_all(np.asarray(column, dtype=float)[:, None], max_bins)
    return codes[0], n_bins[0], low[0, : n_bins[0]], high[0, : n_bins[0]]


def bin_all(X, max_bins=255, n_threads=1):
    columns = np.ascontiguousarray(X.T)
    codes = np.empty(columns.shape, dtype=np.uint8)
    low, high = np.empty((len(columns), 256)), np.empty((len(columns), 256))
    return codes, bin_columns(columns, 0, max_bins, codes, low, high, n_threads), low, high


@pytest.mark.parametrize("n_rows", [3, 5000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_are_the_rows_of_the_table_turned(n_rows, dtype, order):
    table = np.asarray(np.random.default_rng(0).normal(size=(n_rows, 30)), dtype=dtype, order=order)[:, 3:20]
    columns = columns_of(table, 3)
    assert columns.dtype == np.float64
    np.testing.assert_array_equal(columns, table.T)


numbers = st.floats(allow_infinity=False, allow_nan=True)


@given(column=arrays(np.float64, st.integers(1, 40), elements=numbers), max_bins=st.integers(2, 50))
def test_bins_keep_the_order_of_the_values_and_nan_has_the_last_one(column, max_bins):
    codes, n_bins, low, high = bin_column(column, max_bins)
    present = ~np.isnan(column)
    assert n_bins <= max_bins
    assert (codes[~present] == n_bins).all()
    assert set(codes[present].tolist()) == set(range(n_bins))
    order = np.argsort(column[present])
    assert (np.diff(codes[present][order].astype(int)) >= 0).all()
    for bin in range(n_bins):
        inside = column[codes == bin]
        assert (low[bin], high[bin]) == (inside.min(), inside.max())
    assert (high[:-1] < low[1:]).all()


@given(
    column=arrays(np.float64, st.integers(1, 60), elements=st.sampled_from([-1e300, -0.0, 0.0, 1e-300, 5]))
)
def test_few_distinct_values_have_a_bin_each(column):
    codes, n_bins, low, high = bin_column(column)
    values, expected = np.unique(column, return_inverse=True)
    assert n_bins == len(values)
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_array_equal(low, values)
    np.testing.assert_array_equal(high, values)


@pytest.mark.parametrize("n_values", [254, 255])
def test_up_to_max_bins_values_are_told_apart(n_values):
    column = np.random.default_rng(0).permutation(np.repeat(np.arange(n_values) ** 2.0, 3))
    codes, n_bins, *_ = bin_column(column)
    assert n_bins == n_values
    np.testing.assert_array_equal(codes, np.sqrt(column))


@pytest.mark.parametrize("n", [256, 1000, 30_000, SAMPLED])
def test_more_values_are_cut_into_bins_of_about_equal_size(n):
    codes, n_bins, *_ = bin_column(np.random.default_rng(n).normal(size=n))
    sizes = np.bincount(codes, minlength=n_bins)
    assert n_bins == 255
    if n <= 65536:
        assert sizes.max() <= -(-n // 255)
        assert sizes.min() >= n // 255
    else:  # quantiles of a sample
        assert sizes.max() < 1.5 * n / 255
        assert sizes.min() > 0.5 * n / 255


def sampled_rows(n, column):
    """The rows that the quantiles of a long column are found from."""
    numbers = [x for i in range(2**14) for x in random_numbers(0, Stream.BINS, i, column, 0, 0)]
    return [x * n >> 64 for x in numbers]


def greedy_starts(values, max_bins):
    """First value of each bin, in plain Python: bins of about equal size, heavy values alone."""
    distinct, sizes = np.unique(values, return_counts=True)
    heavy, left, bins_left = len(values) // max_bins, len(values), max_bins
    starts, size = [distinct[0]], 0
    for run, next_value, next_run in zip(sizes, distinct[1:], sizes[1:], strict=False):
        size += run
        if bins_left > 1 and (size * bins_left >= left or next_run > heavy):
            starts.append(next_value)
            left, bins_left, size = left - size, bins_left - 1, 0
    return starts


@pytest.mark.parametrize("n", [65_536, 65_537, SAMPLED])
def test_bins_of_a_long_column_are_those_of_a_sample_of_its_own(n):
    rng = np.random.default_rng(n)
    column = rng.exponential(size=n)
    column[rng.random(n) < 0.1] = 0.5  # fills more than a bin
    column[rng.random(n) < 0.1] = np.nan
    codes, n_bins, low, _ = bin_all(np.column_stack([column, column, column]))
    edges = set()
    for j in range(3):
        sample = column[sampled_rows(n, j)] if n > 65_536 else column
        starts = greedy_starts(sample[~np.isnan(sample)], 255)
        expected = (np.searchsorted(starts, column, side="right") - 1).clip(0)
        np.testing.assert_array_equal(codes[j], np.where(np.isnan(column), len(starts), expected))
        assert n_bins[j] == len(starts)
        edges.add(low[j, : n_bins[j]].tobytes())
    assert len(edges) == (3 if n > 65_536 else 1)  # each column has a sample of its own


def test_numbers_of_any_size_and_sign_are_binned_in_their_order():
    rng = np.random.default_rng(0)
    column = rng.choice([-1.0, 1.0], 10_000) * 10.0 ** rng.uniform(-300, 300, 10_000)
    column[:100] = 0.0
    column[100:200] = -0.0
    codes, low, high = np.empty((1, 10_000), np.uint8), np.empty((1, 256)), np.empty((1, 256))
    (n_bins,) = bin_columns(column[None], 0, 255, codes, low, high)
    assert n_bins == 255
    assert (np.diff(codes[0][np.argsort(column)].astype(int)) >= 0).all()
    assert (high[0, : n_bins - 1] < low[0, 1:n_bins]).all()


def test_a_value_that_fills_a_bin_has_it_for_itself():
    rng = np.random.default_rng(0)
    column = np.concatenate([rng.normal(size=3000), np.full(2000, 0.5), np.full(700, -0.25)])
    codes, n_bins, low, high = bin_column(rng.permutation(column), 20)
    for heavy in (0.5, -0.25):
        bin = np.flatnonzero(low == heavy)
        assert high[bin] == heavy
    others = np.bincount(codes)[low != high]
    assert n_bins <= 20
    assert others.max() < 2.5 * 3000 / 18


def test_rare_values_of_a_long_column_still_have_a_bin_each():
    n = SAMPLED
    column = np.zeros(n)
    column[:3] = [7, 5, 3]  # likely not in the sample
    column[n // 2 :] = 1
    column[3] = np.nan
    codes, n_bins, low, _ = bin_column(column)
    assert n_bins == 5
    np.testing.assert_array_equal(low, [0, 1, 3, 5, 7])
    np.testing.assert_array_equal(codes[:4], [4, 3, 2, 5])


def test_rare_values_beyond_max_bins_are_binned_with_others():
    column = np.zeros(SAMPLED)
    column[:1000] = np.arange(1000)
    codes, n_bins, low, _ = bin_column(column)
    assert n_bins <= 255
    assert low[0] == 0
    assert (np.diff(codes[:1000].astype(int)) >= 0).all()


def test_a_column_of_nothing_but_nan_has_the_missing_bin_only():
    codes, n_bins, *_ = bin_column(np.full(5, np.nan))
    assert n_bins == 0
    np.testing.assert_array_equal(codes, 0)


@pytest.mark.parametrize("n", [100, 9000, SAMPLED])
def test_bins_do_not_depend_on_the_number_of_threads(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5))
    X[:, 1] = rng.integers(30, size=n)
    X[rng.random((n, 5)) < 0.1] = np.nan
    expected = bin_all(X)
    for n_threads in (2, 3):
        for ours, theirs in zip(bin_all(X, n_threads=n_threads), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_an_infinite_value_is_told_apart_from_the_number_of_bins():
    X = np.array([[0.0, np.inf], [1.0, 2.0]])
    assert bin_all(X)[1].tolist() == [2, -1]


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
@pytest.mark.parametrize("model", [CARTClassifier(), KFHEClassifier(n_estimators=2)])
@pytest.mark.parametrize("n", [30, 5000])
def test_infinities_are_refused_by_the_name_of_their_column(model, infinity, n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 12)), rng.integers(2, size=n)
    model.fit(X, y)
    X[3, 10] = infinity
    for use in (lambda: model.fit(X, y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match="infinity in column '10'"):
            use()


def test_infinities_of_both_signs_are_refused_without_a_warning():
    X = np.array([[0.0], [1.0]])
    model = CARTClassifier().fit(X, [0, 1])
    with pytest.raises(ValueError, match="infinity in column '0'"):
        model.predict([[np.inf], [-np.inf]])
