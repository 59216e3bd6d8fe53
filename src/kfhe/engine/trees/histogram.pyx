"""Histograms: the weight of each class in each bin of one feature, for the rows of one node.

There is one integer per bin and class. Sums of integers are exact, so a histogram can be built in any order,
and the histogram of a node minus that of one child is that of the other child.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

import numpy as np


cdef void add_rows(
    const uint8_t *column, const uint8_t *other_column, const uint32_t *rows, const uint16_t *classes,
    const int32_t *weights, int64_t n_rows, int64_t n_classes, int32_t *histogram, int32_t *other_histogram,
) noexcept nogil:
    """Add rows to the histograms of one or two features; other data of a row is read once for both."""
    cdef int64_t i, row, label
    cdef int32_t weight
    if column == other_column:
        for i in range(n_rows):
            histogram[column[rows[i]] * n_classes + classes[i]] += weights[i]
        return
    for i in range(n_rows):
        row, label, weight = rows[i], classes[i], weights[i]
        histogram[column[row] * n_classes + label] += weight
        other_histogram[other_column[row] * n_classes + label] += weight


cdef void add_counts(const uint8_t *column, const uint32_t *rows, int64_t n_rows, int32_t *histogram) noexcept nogil:
    """Add rows to a histogram of their number, whatever their weight."""
    cdef int64_t i
    for i in range(n_rows):
        histogram[column[rows[i]]] += 1


cdef void add_up(int32_t *cells, const int32_t *others, int64_t n_cells) noexcept nogil:
    cdef int64_t i
    for i in range(n_cells):
        cells[i] += others[i]


cdef void subtract(int32_t *cells, const int32_t *others, int64_t n_cells) noexcept nogil:
    cdef int64_t i
    for i in range(n_cells):
        cells[i] -= others[i]


def class_histograms(
    const uint8_t[:, ::1] codes, const int32_t[::1] n_bins, const uint32_t[::1] rows, const uint16_t[::1] classes,
    const int32_t[::1] weights, int64_t n_classes,
):
    """Return the weight of each class in each bin of all features, for some rows.

    ``codes`` are the bins of the whole table, (n_features, n_rows); ``classes`` and ``weights`` are those of
    ``rows``. The result (int32) has a row per bin, one feature after the other, and a column per class.
    """
    cdef int64_t f, other, first = 0, second, n_features = n_bins.shape[0]
    result = np.zeros((np.sum(n_bins), n_classes), dtype=np.int32)
    cdef int32_t[:, ::1] histograms = result
    if rows.shape[0] == 0:
        return result
    for f in range(0, n_features, 2):
        other, second = f, first
        if f + 1 < n_features:
            other, second = f + 1, first + n_bins[f]
        add_rows(
            &codes[f, 0], &codes[other, 0], &rows[0], &classes[0], &weights[0], rows.shape[0], n_classes,
            &histograms[first, 0], &histograms[second, 0],
        )
        first = second + n_bins[other]
    return result


def count_histograms(const uint8_t[:, ::1] codes, const int32_t[::1] n_bins, const uint32_t[::1] rows):
    """Return the number of rows in each bin of all features (int32), whatever they weigh."""
    cdef int64_t f, first = 0
    result = np.zeros(np.sum(n_bins), dtype=np.int32)
    cdef int32_t[::1] histograms = result
    if rows.shape[0] == 0:
        return result
    for f in range(n_bins.shape[0]):
        add_counts(&codes[f, 0], &rows[0], rows.shape[0], &histograms[first])
        first += n_bins[f]
    return result
