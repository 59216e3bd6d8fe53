"""The compiled array work agrees with plain NumPy, on any number of threads."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kfhe.engine.arrays import (
    Measurer,
    correct,
    divide,
    effective_sample_size,
    exact_sum,
    highest,
    multiply,
)

LARGE = 80_000  # rows that are shared out among threads


@pytest.fixture(params=[50, LARGE])
def table(request):
    rng = np.random.default_rng(request.param)
    n, n_classes = request.param, 4
    scores = rng.dirichlet(np.ones(n_classes), size=n)
    labels = rng.integers(n_classes, size=n, dtype=np.int32)
    base = rng.exponential(size=n)
    return rng, scores, labels, base / base.sum()


@pytest.mark.parametrize("fusion", [0.5, 0.3])
@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_measure_fuses_scores_and_votes_and_weighs_the_misses(table, voting, fusion):
    rng, scores, labels, base = table
    n, n_classes = scores.shape
    if voting == "hard":
        votes = rng.integers(n_classes, size=n, dtype=np.int32)
        vote_scores = np.eye(n_classes)[votes]
    else:
        votes = vote_scores = rng.dirichlet(np.ones(n_classes), size=n)
    expected = (1 - fusion) * scores + fusion * vote_scores
    seen = set()
    for n_threads in (1, 2, 3):
        measurer = Measurer(labels, base, n_classes, n_threads)
        misses = measurer.measure(scores, votes, fusion)
        errors = tuple(units / measurer.total for units in misses)
        np.testing.assert_array_equal(measurer.measurement, expected)
        np.testing.assert_array_equal(measurer.missed, expected.argmax(axis=1) != labels)
        missed_alone = vote_scores.argmax(axis=1) != labels
        assert errors == pytest.approx((base[measurer.missed].sum(), base[missed_alone].sum()), rel=1e-12)
        assert measurer.misses(expected) == misses[0]
        seen.add(misses)
    assert len(seen) == 1


def test_no_miss_is_an_error_of_exactly_zero_and_ties_go_to_the_lowest_class():
    measurer = Measurer(np.array([0, 1], dtype=np.int32), np.array([0.25, 0.75]), 3)
    assert measurer.misses(np.eye(3)[[0, 1]]) == 0
    assert measurer.misses(np.full((2, 3), 1 / 3)) / measurer.total == 0.75


@pytest.mark.parametrize("n_threads", [1, 2])
def test_correct(table, n_threads):
    rng, scores, *_ = table
    state, measurement = scores.ravel().copy(), rng.normal(size=scores.size)
    expected = state + 0.3 * (measurement - state)
    correct(state, measurement, 0.3, n_threads)
    np.testing.assert_array_equal(state, expected)


@given(values=arrays(np.float64, st.integers(1, 50), elements=st.floats(0, 1e300)))
def test_exact_sum_is_the_sum_in_any_order(values):
    total = exact_sum(values)
    assert total == exact_sum(values[::-1].copy())
    assert total == pytest.approx(math.fsum(values), rel=1e-12, abs=1e-250)


@pytest.mark.parametrize("bad", [np.nan, -1.0, np.inf])
def test_exact_sum_has_no_answer_for_bad_values(bad):
    assert math.isnan(exact_sum(np.array([1.0, bad])))


def test_exact_sum_does_not_depend_on_threads():
    values = np.random.default_rng(0).exponential(size=300_001)  # threads share it from 262,144 on
    alone, *shared = (exact_sum(values, n_threads) for n_threads in (1, 2, 3))
    assert shared == [alone, alone]
    assert alone == pytest.approx(math.fsum(values), rel=1e-12)


def test_divide_does_not_depend_on_threads():
    values = np.random.default_rng(0).exponential(size=300_001)
    alone, shared = values.copy(), values.copy()
    divide(alone, 3.0, 1)
    divide(shared, 3.0, 3)
    np.testing.assert_array_equal(alone, shared)
    np.testing.assert_array_equal(alone, values / 3.0)


def test_effective_sample_size_counts_equal_weights():
    assert effective_sample_size(np.array([0.5, 0.5, 0.0])) == pytest.approx(2)


def test_effective_sample_size_is_that_of_an_exact_sum(table):
    base = table[-1]
    assert effective_sample_size(base) == 1 / exact_sum(base**2) == effective_sample_size(base[::-1].copy())


def test_the_work_of_many_rows_does_not_depend_on_threads():
    rng = np.random.default_rng(0)
    values = rng.random(300_001)
    values /= exact_sum(values)
    missed = rng.random(len(values)) < 0.3
    products = np.where(missed, values * 3.0, values * 2.0)
    for n_threads in (1, 2, 3):
        assert highest(values, n_threads) == values.max()
        assert effective_sample_size(values, n_threads) == effective_sample_size(values[::-1].copy())
        np.testing.assert_array_equal(multiply(values, missed, 2.0, 3.0, n_threads), products)
    for place in (0, 9000, -1):  # in the first part, in another, in the last one, which is shorter
        for bad in (-1.0, np.nan, np.inf):
            worse = values.copy()
            worse[place] = bad
            assert all(np.isnan(highest(worse, n_threads)) for n_threads in (1, 2, 3))


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300, 1e300, 1e305])
def test_exact_sum_takes_values_of_any_size(size):
    assert exact_sum(np.full(150, size)) == pytest.approx(150 * size, rel=1e-12, abs=1e-322)


def test_exact_sum_that_is_no_double_is_infinite():
    assert math.isinf(exact_sum(np.full(150, 1e308)))
