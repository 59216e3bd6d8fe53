"""Partitioner: moves rows to the sides of a split, and copies those of a subtree together.

The rows of a subtree are spread over the whole table, which is large. So all subtrees take their rows from a
strip of a column while it is in the cache, and each column is read from memory only once for many of them.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memmove
from libcpp.algorithm cimport lower_bound
from libcpp.vector cimport vector

from kfhe.engine.trees.growth cimport OpenNode, Problem, RowSet
from kfhe.engine.trees.splitter cimport Split, cut_of, mark_sides

import numpy as np

cdef enum:
    BLOCKS = 8  # for each thread: one that is late has little left to do
    LEAST_BLOCK = 1024  # rows that are worth their start
    APART = 8  # numbers between those of two threads, so that they don't share a line of the cache
    STRIP = 262144  # rows; their bins in one column fit the cache of a core


cdef int64_t partition_block(
    const uint8_t *column, const uint8_t *goes_left, int64_t n, uint32_t *rows, uint16_t *classes, int32_t *weights,
    uint32_t *spare_rows, uint16_t *spare_classes, int32_t *spare_weights, int64_t n_classes, int64_t *left_totals,
) noexcept nogil:
    """Move the rows that go left to the front and the others to spare arrays; return how many go left."""
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
    """Add up the weight of each class; with two classes, in registers."""
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


cdef int64_t partition_rows(
    const uint8_t *column, const uint8_t *goes_left, int64_t n, uint32_t *rows, uint16_t *classes, int32_t *weights,
    uint32_t *spare_rows, uint16_t *spare_classes, int32_t *spare_weights, int64_t *left_totals, int64_t n_classes,
    int n_threads,
) noexcept nogil:
    """Move the rows that go left to the front, keeping both sides in order; add up the classes on the left.

    Threads divide blocks; what goes left is then concatenated, and followed by the rest.
    """
    cdef int64_t size = max(n // (BLOCKS * n_threads) + 1, min(n // n_threads + 1, <int64_t> LEAST_BLOCK)) if n_threads > 1 else n + 1
    cdef int64_t n_blocks = (n + size - 1) // size, b, k, first, n_moved = 0, total
    cdef vector[int64_t] n_left = vector[int64_t](n_blocks)
    cdef vector[int64_t] places = vector[int64_t](n_blocks)
    cdef vector[int64_t] totals = vector[int64_t](n_blocks * (n_classes + APART))
    if n_blocks == 1:
        n_left[0] = partition_block(
            column, goes_left, n, rows, classes, weights, spare_rows, spare_classes, spare_weights, n_classes,
            totals.data(),
        )
    else:
        for b in prange(n_blocks, num_threads=n_threads, schedule="dynamic", chunksize=1):
            n_left[b] = partition_block(
                column, goes_left, min(size, n - b * size), rows + b * size, classes + b * size,
                weights + b * size, spare_rows + b * size, spare_classes + b * size, spare_weights + b * size,
                n_classes, &totals[b * (n_classes + APART)],
            )
    for b in range(n_blocks):
        first = b * size
        memmove(&rows[n_moved], &rows[first], n_left[b] * sizeof(uint32_t))
        memmove(&classes[n_moved], &classes[first], n_left[b] * sizeof(uint16_t))
        memmove(&weights[n_moved], &weights[first], n_left[b] * sizeof(int32_t))
        n_moved += n_left[b]
        for k in range(n_classes):
            left_totals[k] += totals[b * (n_classes + APART) + k]
    total = n_moved
    for b in range(n_blocks):
        places[b] = n_moved
        n_moved += min(size, n - b * size) - n_left[b]
    if n_blocks == 1:
        bring_back(n - total, &rows[total], &classes[total], &weights[total], spare_rows, spare_classes, spare_weights)
    else:
        for b in prange(n_blocks, num_threads=n_threads, schedule="dynamic", chunksize=1):
            bring_back(
                min(size, n - b * size) - n_left[b], &rows[places[b]], &classes[places[b]],
                &weights[places[b]], spare_rows + b * size, spare_classes + b * size, spare_weights + b * size,
            )
    return total


# ---------------------------------------------------------------- the rows of subtrees


cdef void gather(
    const Problem *problem, const RowSet *table, const vector[OpenNode] &roots, RowSets *row_sets, int n_threads
) noexcept nogil:
    """Make a row set for each subtree: the table, or a copy if its rows are far apart."""
    cdef int64_t i, t, n, n_strips, n_gathered = 0, n_roots = <int64_t> roots.size()
    cdef RowSet *row_set
    row_sets.of_root.assign(n_roots, table[0])
    for t in range(n_roots):
        n = roots[t].end - roots[t].start
        if problem.n_rows > 4 * n:
            row_sets.of_root[t].stride = n
            n_gathered += n
    if n_gathered == 0:
        return
    row_sets.codes.resize(n_gathered * problem.n_features)
    row_sets.origins.resize(n_gathered)
    n_gathered = 0
    for t in range(n_roots):
        row_set = &row_sets.of_root[t]
        if row_set.stride < table.stride:
            row_set.codes = &row_sets.codes[n_gathered * problem.n_features]
            row_set.origin = &row_sets.origins[n_gathered]
            n_gathered += row_set.stride
    n_strips = (table.stride + STRIP - 1) // STRIP
    for i in prange(problem.n_features * n_strips, num_threads=n_threads, schedule="dynamic"):
        hand_out(&table.codes[i // n_strips * table.stride], i % n_strips * STRIP, roots, row_sets, i // n_strips)
    for t in prange(n_roots, num_threads=n_threads, schedule="dynamic"):
        number_rows(&row_sets.of_root[t], roots[t].start, roots[t].end)


cdef void hand_out(
    const uint8_t *column, int64_t start, const vector[OpenNode] &roots, RowSets *row_sets, int64_t f
) noexcept nogil:
    """Copy a strip of one column; the rows of a subtree are in order."""
    cdef int64_t i, t
    cdef const RowSet *row_set
    cdef const uint32_t *row
    cdef const uint32_t *end
    cdef uint8_t *target
    for t in range(<int64_t> roots.size()):
        row_set = &row_sets.of_root[t]
        if row_set.origin == NULL:
            continue
        row = lower_bound(&row_set.rows[roots[t].start], &row_set.rows[roots[t].end], <uint32_t> start)
        end = lower_bound(row, <const uint32_t *> &row_set.rows[roots[t].end], <uint32_t> (start + STRIP))
        target = <uint8_t *> &row_set.codes[f * row_set.stride + (row - &row_set.rows[roots[t].start])]
        for i in range(end - row):
            target[i] = column[row[i]]


cdef void number_rows(const RowSet *row_set, int64_t start, int64_t end) noexcept nogil:
    """Turn the rows of a subtree into positions in its row set, which has their origins."""
    cdef uint32_t *origin = <uint32_t *> row_set.origin
    cdef int64_t i
    if origin == NULL:
        return
    for i in range(end - start):
        origin[i] = row_set.rows[start + i]
        row_set.rows[start + i] = i


# ---------------------------------------------------------------- single steps, for rows on other machines


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

    ``column`` holds the bin of every row of the table, ``classes`` and ``weights`` go with ``rows``. Returns
    how many rows go left, and the weight of each class among them (int64).
    """
    cdef int64_t n = rows.shape[0]
    cdef vector[uint32_t] spare_rows = vector[uint32_t](n)
    cdef vector[uint16_t] spare_classes = vector[uint16_t](n)
    cdef vector[int32_t] spare_weights = vector[int32_t](n)
    totals = np.zeros(n_classes, dtype=np.int64)
    cdef int64_t[::1] left_totals = totals
    if n == 0:
        return 0, totals
    n_left = partition_rows(
        &column[0], &goes_left[0], n, &rows[0], &classes[0], &weights[0], spare_rows.data(), spare_classes.data(),
        spare_weights.data(), &left_totals[0], n_classes, n_threads,
    )
    return n_left, totals
