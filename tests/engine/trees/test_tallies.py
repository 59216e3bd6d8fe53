"""Tallies: rows are added up by bin, and the split is that of the histogram."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kfhe.engine.trees.histograms import class_histograms
from kfhe.engine.trees.splitting import best_split
from kfhe.engine.trees.tallies import best_tallied_split, tallied

N_BINS = 256  # the last one for missing values
bins = st.sampled_from([0, 1, 2, 7, 63, 64, 127, 128, 191, 192, 254, 255])
codes = arrays(np.uint8, st.one_of(st.integers(1, 40), st.integers(60, 90)), elements=bins)


@given(codes=codes, seed=st.integers(0, 99))
def test_a_tally_adds_up_the_rows_of_each_bin_that_has_some(codes, seed):
    rng = np.random.default_rng(seed)
    members = rng.permutation(len(codes))[: rng.integers(len(codes) + 1)].astype(np.uint16)
    weights, labels = rng.integers(5, size=len(codes)), rng.integers(2, size=len(codes))
    found, cumulated = tallied(codes, members, weights.astype(np.uint64) << (32 * labels).astype(np.uint64))
    sums = np.zeros((256, 2), dtype=int)
    np.add.at(sums, (codes[members], labels[members]), weights[members])
    np.testing.assert_array_equal(found, np.unique(codes[members]))
    np.testing.assert_array_equal(cumulated, sums.cumsum(axis=0)[found])


def split_by_histogram(codes, members, labels, weights, min_samples_leaf):
    n_bins = np.array([N_BINS], dtype=np.int32)
    histogram = class_histograms(
        codes[None], n_bins, members.astype(np.uint32), labels[members].astype(np.uint16), weights[members], 2
    )
    return best_split(histogram, n_bins, np.zeros(1, dtype=np.uint8), min_samples_leaf)


@given(codes=codes, seed=st.integers(0, 999), largest=st.sampled_from([1, 3, 10**7]), leaf=st.integers(1, 9))
def test_few_rows_have_the_split_of_the_histogram(codes, seed, largest, leaf):
    """Many cuts are equally good, or nearly so; the first of the best is taken."""
    rng = np.random.default_rng(seed)
    members = rng.permutation(len(codes))[: rng.integers(1, len(codes) + 1)].astype(np.uint16)
    labels = rng.integers(2, size=len(codes), dtype=np.int32)
    weights = rng.integers(1, largest, size=len(codes), dtype=np.int32, endpoint=True)
    split = best_tallied_split(codes, members, labels, weights, N_BINS, leaf)
    assert split == split_by_histogram(codes, members, labels, weights, leaf)


@pytest.mark.parametrize("missing", [0, 0.1, 0.9])
def test_rows_in_many_bins_have_the_split_of_the_histogram(missing):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_rows = int(rng.integers(2, 700))
        codes = rng.integers(N_BINS - 1, size=n_rows, dtype=np.uint8)
        labels = (codes + rng.integers(200, size=n_rows) > 220).astype(np.int32)
        codes[rng.random(n_rows) < missing] = N_BINS - 1
        weights = rng.integers(1, 4, size=n_rows, dtype=np.int32)
        members = np.arange(n_rows, dtype=np.uint16)
        split = best_tallied_split(codes, members, labels, weights, N_BINS, 1 + seed % 9)
        assert split == split_by_histogram(codes, members, labels, weights, 1 + seed % 9)
