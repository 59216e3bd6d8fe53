"""Histograms: the weight of each class in each bin of one feature, for the rows of one node.

One integer per bin and class: adding up integers is exact, so a histogram may be built in any
order, and a node's histogram minus that of one child is that of the other child.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from kfhe.engine.trees.memory cimport AHEAD, prefetch

import numpy as np


cdef void build(
    const uint8_t *column, const uint32_t *rows, const uint16_t *classes, const int32_t *weights,
    int64_t n_rows, int64_t n_classes, int64_t n_bins, int32_t *histogram,
) noexcept nogil:
    cdef int64_t i
    memset(histogram, 0, n_bins * n_classes * sizeof(int32_t))
    for i in range(n_rows):
        histogram[column[rows[i]] * n_classes + classes[i]] += weights[i]


cdef void build_two(
    const uint8_t *column, const uint8_t *other_column, const uint32_t *rows, const uint16_t *classes,
    const int32_t *weights, int64_t n_rows, int64_t n_classes, int64_t n_bins, int64_t n_other_bins,
    int32_t *histogram, int32_t *other_histogram,
) noexcept nogil:
    """Build the histograms of two features: what is known of a row is read once for both."""
    cdef int64_t i, row, label
    cdef int32_t weight
    memset(histogram, 0, n_bins * n_classes * sizeof(int32_t))
    memset(other_histogram, 0, n_other_bins * n_classes * sizeof(int32_t))
    for i in range(n_rows):
        row, label, weight = rows[i], classes[i], weights[i]
        histogram[column[row] * n_classes + label] += weight
        other_histogram[other_column[row] * n_classes + label] += weight


cdef void build_from_lines(
    const uint8_t *lines, int64_t length, const uint32_t *rows, const uint16_t *classes, const int32_t *weights,
    int64_t n_rows, int64_t n_classes, const int32_t *features, int64_t n_features, const int64_t *offsets,
    int32_t *histograms,
) noexcept nogil:
    """Add up the histograms of some features, row by row: for rows that are far apart in memory.

    ``lines`` have the bins of a row side by side. The histogram of a feature starts at its offset, in bins.
    """
    cdef int64_t i, j
    cdef const uint8_t *line
    cdef int32_t *cells
    for i in range(n_rows):
        if i + AHEAD < n_rows:
            prefetch(&lines[rows[i + AHEAD] * length])
        line, cells = &lines[rows[i] * length], &histograms[classes[i]]
        for j in range(n_features):
            cells[(offsets[features[j]] + line[features[j]]) * n_classes] += weights[i]


cdef void build_counts(
    const uint8_t *column, const uint32_t *rows, int64_t n_rows, int64_t n_bins, int32_t *histogram
) noexcept nogil:
    cdef int64_t i
    memset(histogram, 0, n_bins * sizeof(int32_t))
    for i in range(n_rows):
        histogram[column[rows[i]]] += 1


cdef void add_up(int32_t *histogram, const int32_t *other, int64_t n_cells) noexcept nogil:
    cdef int64_t i
    for i in range(n_cells):
        histogram[i] += other[i]


cdef void subtract(int32_t *histogram, const int32_t *other, int64_t n_cells) noexcept nogil:
    cdef int64_t i
    for i in range(n_cells):
        histogram[i] -= other[i]


def class_histograms(
    const uint8_t[:, ::1] codes, const int32_t[::1] n_bins, const uint32_t[::1] rows, const uint16_t[::1] classes,
    const int32_t[::1] weights, int64_t n_classes,
):
    """Return the weight of each class in each bin of all features, for some rows.

    ``codes`` are the bins of the whole table, (n_features, n_rows); ``classes`` and ``weights`` go with ``rows``. The
    result (int32) has a line per bin, one feature after the other, and a column per class.
    """
    cdef int64_t f, first = 0, second, n_features = n_bins.shape[0]
    result = np.zeros((np.sum(n_bins), n_classes), dtype=np.int32)
    cdef int32_t[:, ::1] histograms = result
    if rows.shape[0] == 0:
        return result
    for f in range(0, n_features - 1, 2):
        second = first + n_bins[f]
        build_two(
            &codes[f, 0], &codes[f + 1, 0], &rows[0], &classes[0], &weights[0], rows.shape[0], n_classes, n_bins[f],
            n_bins[f + 1], &histograms[first, 0], &histograms[second, 0],
        )
        first = second + n_bins[f + 1]
    if n_features % 2:
        f = n_features - 1
        build(
            &codes[f, 0], &rows[0], &classes[0], &weights[0], rows.shape[0], n_classes, n_bins[f],
            &histograms[first, 0],
        )
    return result


def count_histograms(const uint8_t[:, ::1] codes, const int32_t[::1] n_bins, const uint32_t[::1] rows):
    """Return the number of rows in each bin of all features (int32), whatever they weigh."""
    cdef int64_t f, first = 0
    result = np.zeros(np.sum(n_bins), dtype=np.int32)
    cdef int32_t[::1] histograms = result
    if rows.shape[0] == 0:
        return result
    for f in range(n_bins.shape[0]):
        build_counts(&codes[f, 0], &rows[0], rows.shape[0], n_bins[f], &histograms[first])
        first += n_bins[f]
    return result
