"""Histograms: the weight of each class and the number of rows in each bin, exact however rows are cut up."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kfhe.engine.trees.histogram import class_histograms, count_histograms

from .rows import random_rows


def twin(table, n_classes, rows, classes, weights):
    """All histograms in plain NumPy, one feature after the other."""
    histograms = [np.zeros((n_bins, n_classes), dtype=np.int32) for n_bins in table.n_bins]
    for histogram, codes in zip(histograms, table.codes, strict=True):
        np.add.at(histogram, (codes[rows], classes), weights)
    return np.concatenate(histograms)


@given(rows=random_rows())
def test_histograms_are_those_of_the_twin(rows):
    table = rows.table
    numbers, classes, weights = rows.present
    expected = twin(table, rows.n_classes, numbers, classes, weights)
    found = class_histograms(table.codes, table.n_bins, numbers, classes, weights, rows.n_classes)
    np.testing.assert_array_equal(found, expected)
    counts = twin(table, 1, numbers, np.zeros_like(classes), np.ones_like(weights))
    np.testing.assert_array_equal(count_histograms(table.codes, table.n_bins, numbers), counts[:, 0])


@given(rows=random_rows(), seed=st.integers(0, 99))
def test_histograms_of_blocks_of_rows_add_up_to_those_of_all(rows, seed):
    table = rows.table
    numbers, classes, weights = rows.present
    whole = class_histograms(table.codes, table.n_bins, numbers, classes, weights, rows.n_classes)
    counts = count_histograms(table.codes, table.n_bins, numbers)
    block = np.random.default_rng(seed).integers(3, size=len(numbers))
    for b in range(3):  # some blocks have no rows
        part = numbers[block == b], classes[block == b], weights[block == b]
        whole -= class_histograms(table.codes, table.n_bins, *part, rows.n_classes)
        counts -= count_histograms(table.codes, table.n_bins, part[0])
    assert not whole.any()
    assert not counts.any()
