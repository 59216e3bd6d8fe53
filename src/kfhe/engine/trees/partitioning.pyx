"""Partitioning: the rows of a node moved to their sides."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memmove
from libcpp.vector cimport vector

from kfhe.engine.trees.splitter cimport Split, cut_of, mark_sides

import numpy as np

cdef enum:
    APART = 8  # numbers between those of two threads, so that they don't share a line of the cache


cdef int64_t part_block(
    const uint8_t *column, const uint8_t *goes_left, int64_t n, uint32_t *rows, uint16_t *classes, int32_t *weights,
    uint32_t *spare_rows, uint16_t *spare_classes, int32_t *spare_weights, int64_t n_classes, int64_t *left_totals,
) noexcept nogil:
    """Move the rows that go left to the front, and the others to the spare arrays; return how many go left."""
    cdef int64_t i, n_left = 0, side
    cdef uint32_t row
    cdef uint16_t label
    cdef int32_t weight
    for i in range(n):
        row, label, weight = rows[i], classes[i], weights[i]
        side = goes_left[column[row]]
        rows[n_left] = spare_rows[i - n_left] = row
        classes[n_left] = spare_classes[i - n_left] = label
        weights[n_left] = spare_weights[i - n_left] = weight
        n_left += side
    add_weights(classes, weights, n_left, n_classes, left_totals)
    return n_left


cdef inline void add_weights(
    const uint16_t *classes, const int32_t *weights, int64_t n, int64_t n_classes, int64_t *totals
) noexcept nogil:
    """Add up what rows of each class weigh; of two, in numbers that need not be written to memory and read again."""
    cdef int64_t i, total = 0, second = 0
    if n_classes == 2:
        for i in range(n):
            total += weights[i]
            second += weights[i] & -<int32_t> classes[i]
        totals[0] += total - second
        totals[1] += second
    else:
        for i in range(n):
            totals[classes[i]] += weights[i]


cdef inline void bring_back(
    int64_t n, uint32_t *rows, uint16_t *classes, int32_t *weights, const uint32_t *spare_rows,
    const uint16_t *spare_classes, const int32_t *spare_weights,
) noexcept nogil:
    """Copy rows from the spare arrays."""
    memcpy(rows, spare_rows, n * sizeof(uint32_t))
    memcpy(classes, spare_classes, n * sizeof(uint16_t))
    memcpy(weights, spare_weights, n * sizeof(int32_t))


cdef int64_t part_rows(
    const uint8_t *column, const uint8_t *goes_left, int64_t n, uint32_t *rows, uint16_t *classes, int32_t *weights,
    uint32_t *spare_rows, uint16_t *spare_classes, int32_t *spare_weights, int64_t *left_totals, int64_t n_classes,
    int n_threads,
) noexcept nogil:
    """Move the rows that go left to the front, both sides in their order; add up the left side's classes.

    Each thread parts a block of its own; what goes left is then moved together, and followed by the rest.
    """
    cdef vector[int64_t] n_left = vector[int64_t](n_threads)
    cdef vector[int64_t] totals = vector[int64_t](n_threads * (n_classes + APART))
    cdef int64_t size = (n + n_threads - 1) // n_threads, b, k, first, place = 0, total
    cdef vector[int64_t] places = vector[int64_t](n_threads)
    if n_threads == 1:
        n_left[0] = part_block(
            column, goes_left, n, rows, classes, weights, spare_rows, spare_classes, spare_weights, n_classes,
            totals.data(),
        )
    else:
        for b in prange(n_threads, num_threads=n_threads, schedule="static", chunksize=1):
            n_left[b] = part_block(
                column, goes_left, max(0, min(size, n - b * size)), rows + b * size, classes + b * size,
                weights + b * size, spare_rows + b * size, spare_classes + b * size, spare_weights + b * size,
                n_classes, &totals[b * (n_classes + APART)],
            )
    for b in range(n_threads):
        first = b * size
        memmove(&rows[place], &rows[first], n_left[b] * sizeof(uint32_t))
        memmove(&classes[place], &classes[first], n_left[b] * sizeof(uint16_t))
        memmove(&weights[place], &weights[first], n_left[b] * sizeof(int32_t))
        place += n_left[b]
        for k in range(n_classes):
            left_totals[k] += totals[b * (n_classes + APART) + k]
    total = place
    for b in range(n_threads):
        places[b] = place
        place += max(0, min(size, n - b * size)) - n_left[b]
    if n_threads == 1:
        bring_back(n - total, &rows[total], &classes[total], &weights[total], spare_rows, spare_classes, spare_weights)
    else:
        for b in prange(n_threads, num_threads=n_threads, schedule="static", chunksize=1):
            bring_back(
                max(0, min(size, n - b * size)) - n_left[b], &rows[places[b]], &classes[places[b]],
                &weights[places[b]], spare_rows + b * size, spare_classes + b * size, spare_weights + b * size,
            )
    return total


def cut(Split split, int n_bins, const double[::1] low, const double[::1] high):
    """Return the last bin that goes left at a numeric split, and the threshold.

    ``low`` and ``high`` are the smallest and the largest value in each bin of the split's feature.
    """
    cdef double threshold
    cdef int last = cut_of(split, n_bins, &low[0], &high[0], &threshold)
    return last, threshold


def sides(Split split, int n_bins, const double[::1] low, const double[::1] high):
    """Return for each bin of the split's feature whether it goes left (uint8)."""
    result = np.empty(n_bins, dtype=np.uint8)
    cdef uint8_t[::1] goes_left = result
    mark_sides(split, n_bins, &low[0], &high[0], &goes_left[0])
    return result


def partition(
    const uint8_t[::1] column, const uint8_t[::1] goes_left, uint32_t[::1] rows, uint16_t[::1] classes,
    int32_t[::1] weights, int64_t n_classes, int n_threads=1,
):
    """Move the rows whose bin goes left to the front, in place; both sides stay in their order.

    ``column`` holds the bin of every row of the table, ``classes`` and ``weights`` go with ``rows``. Returns how
    many rows go left, and the weight of each class among them (int64).
    """
    cdef int64_t n = rows.shape[0]
    cdef vector[uint32_t] spare_rows = vector[uint32_t](n)
    cdef vector[uint16_t] spare_classes = vector[uint16_t](n)
    cdef vector[int32_t] spare_weights = vector[int32_t](n)
    totals = np.zeros(n_classes, dtype=np.int64)
    cdef int64_t[::1] left_totals = totals
    if n == 0:
        return 0, totals
    n_left = part_rows(
        &column[0], &goes_left[0], n, &rows[0], &classes[0], &weights[0], spare_rows.data(), spare_classes.data(),
        spare_weights.data(), &left_totals[0], n_classes, n_threads,
    )
    return n_left, totals
