"""Draws: the right generator, the right frequencies, the same counts for any number of threads."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from kfhe.engine.arrays import Measurer
from kfhe.engine.draws import Draws, Stream, bootstrap, random_numbers
from kfhe.engine.trees.grower import Grower
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.tree_store import TreeStore

uint64 = st.integers(0, 2**64 - 1)


@given(key=st.tuples(uint64, uint64), counter=st.tuples(st.integers(1, 2**64 - 1), uint64, uint64, uint64))
def test_philox_is_numpys(key, counter):
    before = [counter[0] - 1, *counter[1:]]  # NumPy counts up before it draws
    generator = np.random.Philox(
        counter=np.array(before, dtype=np.uint64), key=np.array(key, dtype=np.uint64)
    )
    assert random_numbers(*key, *counter) == generator.random_raw(4).tolist()


def test_every_use_of_random_numbers_has_its_stream_for_ever():
    streams = {stream.name: stream.value for stream in Stream}
    assert streams == {"ROWS": 0, "ESTIMATORS": 1, "FEATURES": 2, "BINS": 3, "CUTS": 4, "FOLDS": 5}


def twin(weights, seed, iteration, attempt, n_draws=None, block_size=8192):
    """The same draws in plain Python: choose a block for each draw, then a row in the block."""

    def numbers(n, stage):
        counters = [(j, stage, attempt, iteration) for j in range(-(-n // 4))]
        return [x for counter in counters for x in random_numbers(seed, Stream.ROWS, *counter)][:n]

    n = len(weights)
    units = [int(w * 2.0**60 + 0.5) for w in weights]
    starts = range(0, n, block_size)
    totals = [sum(units[start : start + block_size]) for start in starts]
    in_block = [n_draws or n]
    if len(totals) > 1:
        in_block = [0] * len(totals)
        for x in numbers(n_draws or n, 1 << 63):
            position = x * sum(totals) >> 64
            in_block[np.searchsorted(np.cumsum(totals), position, side="right")] += 1
    counts = np.zeros(n, dtype=np.int32)
    for block, start in enumerate(starts):
        cumulated = np.cumsum(units[start : start + block_size])
        for x in numbers(in_block[block], block):
            counts[start + np.searchsorted(cumulated, x * totals[block] >> 64, side="right")] += 1
    return counts


@given(
    n=st.integers(1, 60),
    zeros=st.booleans(),
    seed=uint64,
    iteration=st.integers(0, 500),
    attempt=st.integers(0, 201),
)
def test_counts_are_those_of_the_plain_twin(n, zeros, seed, iteration, attempt):
    weights = np.random.default_rng(n).exponential(size=n)
    if zeros:
        weights[: n // 2] = 0
    weights /= weights.sum()
    np.testing.assert_array_equal(
        bootstrap(weights, seed, iteration, attempt), twin(weights, seed, iteration, attempt)
    )


@pytest.mark.parametrize("n", [8191, 8192, 8193, 140_000])
def test_several_blocks_agree_with_the_twin_and_with_any_number_of_threads(n):
    weights = np.random.default_rng(n).exponential(size=n)
    weights[:100] = 0
    weights /= weights.sum()
    expected = twin(weights, 7, 3, 1)
    for n_threads in (1, 2, 5):
        np.testing.assert_array_equal(bootstrap(weights, 7, 3, 1, n_threads), expected)
    assert expected.sum() == n
    assert not expected[:100].any()


@pytest.mark.parametrize("n", [3, 8192, 8193, 140_000])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_samples_of_fewer_rows_agree_with_the_twin_and_with_any_number_of_threads(n, share):
    weights = np.random.default_rng(n).exponential(size=n)
    weights /= weights.sum()
    n_draws = max(1, round(share * n))
    expected = twin(weights, 7, 3, 1, n_draws)
    assert expected.sum() == n_draws
    for n_threads in (1, 2, 5):
        np.testing.assert_array_equal(bootstrap(weights, 7, 3, 1, n_threads, n_draws), expected)


@pytest.mark.parametrize("n_draws", [0, 2])
def test_draw_frequencies_are_the_weights(n_draws):
    weights = np.array([0.5, 0.25, 0.125, 0.125, 0.0])
    counts = sum(bootstrap(weights, seed, 1, 0, n_draws=n_draws) for seed in range(4000))
    assert counts.sum() == 4000 * (n_draws or 5)
    assert counts[4] == 0
    assert chisquare(counts[:4], weights[:4] * counts.sum()).pvalue > 0.001


def test_seeds_iterations_and_attempts_give_different_draws():
    weights = np.full(100, 0.01)
    draws = {bootstrap(weights, *key).tobytes() for key in [(0, 1, 0), (1, 1, 0), (0, 2, 0), (0, 1, 1)]}
    assert len(draws) == 4


def test_samples_are_redrawn_until_each_present_class_is_in_them():
    labels = np.array([0, 2, 2, 2, 2, 2, 2, 2], dtype=np.int32)  # class 1 has no rows
    weights = np.full(8, 1 / 8)
    draws = Draws(labels, 3, 2, seed=5)
    plain = [bootstrap(weights, 5, iteration, 0) for iteration in range(200)]
    assert not all(counts[0] for counts in plain)
    assert all(draws.draw(weights, iteration, 0)[0] for iteration in range(200))
    for iteration in range(200):  # a sample that has every class is kept
        if plain[iteration][0] and plain[iteration][1:].any():
            np.testing.assert_array_equal(draws.draw(weights, iteration, 0), plain[iteration])


def test_small_samples_too_have_every_class():
    labels, weights = np.repeat(np.arange(3, dtype=np.int32), 50), np.full(150, 1 / 150)
    draws = Draws(labels, 3, 3, seed=5, n_draws=4)
    samples = [draws.draw(weights, iteration, 0) for iteration in range(100)]
    assert {int(counts.sum()) for counts in samples} == {4}
    assert all(len(np.unique(labels[counts > 0])) == 3 for counts in samples)
    again = pickle.loads(pickle.dumps(draws))
    np.testing.assert_array_equal(again.draw(weights, 0, 0), samples[0])


def test_a_class_that_cannot_be_drawn_is_given_up_after_a_hundred_redraws():
    labels, weights = np.array([0, 1, 1], dtype=np.int32), np.array([0.0, 0.5, 0.5])
    expected = bootstrap(weights, 5, 1, 100)
    np.testing.assert_array_equal(Draws(labels, 2, 2, seed=5).draw(weights, 1, 0), expected)


def test_a_second_attempt_draws_other_rows():
    labels, weights = np.array([0, 1] * 50, dtype=np.int32), np.full(100, 0.01)
    draws = Draws(labels, 2, 2, seed=5)
    assert not np.array_equal(draws.draw(weights, 1, 0), draws.draw(weights, 1, 1))


@pytest.mark.parametrize("total", [0.0, 0.4, 2.5, np.inf])
@pytest.mark.parametrize("n", [3, 20_000])
def test_weights_that_do_not_sum_to_one_are_refused(n, total):
    with pytest.raises(ValueError, match="weights to draw by must be at least 0 and sum to 1"):
        bootstrap(np.full(n, total / n), 0, 1, 0)


@pytest.mark.parametrize("kind", [Draws, Measurer, Grower, GrownTree, TreeStore])
def test_nothing_is_made_without_its_arrays(kind):
    with pytest.raises(TypeError, match="positional argument"):
        kind.__new__(kind)
