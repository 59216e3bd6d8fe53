"""Sweeping: along an order of many rows, the split is that of the histogram."""

import numpy as np
import pytest

from kfhe.engine.trees.histograms import class_histograms, count_histograms
from kfhe.engine.trees.orders import sorted_order
from kfhe.engine.trees.splitting import best_split
from kfhe.engine.trees.sweeping import best_sorted_split

N_BINS = 64  # the last one for missing values


def table(n_rows, n_classes, seed, *, counts, missing):
    """Bins of one feature that tells something of the class, labels and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(N_BINS - 1, size=n_rows, dtype=np.uint8)
    labels = (codes * n_classes // N_BINS + rng.integers(n_classes, size=n_rows)).astype(np.int32) % n_classes
    codes[rng.random(n_rows) < missing] = N_BINS - 1
    weights = rng.integers(1, 4 if counts else 2**20, size=n_rows).astype(np.int32)
    return codes, labels, weights


def split_by_histogram(codes, labels, weights, n_classes, min_samples_leaf, counts):
    rows, n_bins = np.arange(len(codes), dtype=np.uint32), np.array([N_BINS], dtype=np.int32)
    histogram = class_histograms(codes[None], n_bins, rows, labels.astype(np.uint16), weights, n_classes)
    row_counts = None if counts else count_histograms(codes[None], n_bins, rows)
    return best_split(histogram, n_bins, np.zeros(1, dtype=np.uint8), min_samples_leaf, row_counts)


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("missing", [0, 0.1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_long_order_has_the_split_of_the_histogram(n_classes, missing, counts):
    for seed in range(40):
        n_rows = int(np.random.default_rng(seed).integers(2, 700))
        codes, labels, weights = table(n_rows, n_classes, seed, counts=counts, missing=missing)
        order = sorted_order(codes, np.arange(n_rows, dtype=np.uint16), N_BINS)
        split = best_sorted_split(order, labels, weights, N_BINS, n_classes, 1 + seed % 9, counts)
        assert split == split_by_histogram(codes, labels, weights, n_classes, 1 + seed % 9, counts)


@pytest.mark.parametrize("counts", [True, False])
def test_rows_that_weigh_nothing_are_passed_over(counts):
    for seed in range(40):
        codes, labels, weights = table(300, 2, seed, counts=counts, missing=0.1)
        gone = np.random.default_rng(seed).random(300) < 0.7
        kept = np.flatnonzero(~gone).astype(np.uint16)
        arguments = labels, np.where(gone, 0, weights).astype(np.int32), N_BINS, 2, 5, counts
        everything = sorted_order(codes, np.arange(300, dtype=np.uint16), N_BINS)
        split = best_sorted_split(everything, *arguments)
        assert split == best_sorted_split(sorted_order(codes, kept, N_BINS), *arguments)
