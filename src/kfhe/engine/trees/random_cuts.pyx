"""Random cuts: of each feature that a node tries, one threshold that is drawn, instead of the best of all.

The cut is drawn from the bins between the lowest and the highest that the node's rows are in, each as likely as any
other, by a number that depends on the node and the feature alone. Missing values go where that is better.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from kfhe.engine.philox cimport CUTS_STREAM, philox, scaled
from kfhe.engine.trees.bounds cimport first_of, second_of
from kfhe.engine.trees.split cimport NodeTotals, Row, Split, improves

import numpy as np


cdef uint64_t cut_number(uint64_t seed, uint64_t tree, uint64_t key, int64_t feature) noexcept nogil:
    """Random number for the cut of a feature in a node of a tree."""
    cdef uint64_t numbers[4]
    philox(seed, CUTS_STREAM, feature // 4, key, tree, 0, numbers)
    return numbers[feature % 4]


def cut_numbers(int64_t n_features, uint64_t seed, uint64_t tree, uint64_t key):
    """Return the random number (uint64) for the cut of each feature in a node of a tree."""
    result = np.empty(n_features, dtype=np.uint64)
    cdef uint64_t[::1] numbers = result
    cdef int64_t f
    for f in range(n_features):
        numbers[f] = cut_number(seed, tree, key, f)
    return result


cdef void judge(
    const int64_t *left, int64_t n_left, bint missing_left, const NodeTotals *node, Split *best
) noexcept nogil:
    """Keep a cut if it is better than the best so far; if each row counts as one, ``n_left`` are left of it."""
    cdef int64_t k, weight = 0, squares = 0, cross = 0
    for k in range(node.n_classes):
        weight += left[k]
        squares += left[k] * left[k]
        cross += left[k] * node.classes[k]
    if not node.weighted:
        n_left = weight
    if n_left < node.min_count or n_left > node.count - node.min_count:
        return
    if improves(squares, node.squares - 2 * cross + squares, weight, node.weight, best):
        best.missing_left = missing_left


cdef inline int64_t weight_of(const int32_t *cells, int64_t n_classes) noexcept nogil:
    cdef int64_t k, weight = 0
    for k in range(n_classes):
        weight += cells[k]
    return weight


cdef int64_t add_bin(
    const int32_t *histogram, const int32_t *counts, int64_t b, int64_t n_classes, int64_t *left
) noexcept nogil:
    """Add a bin to what is left of the cut, and return how many rows are in it, if each counts as one."""
    cdef const int32_t *cells = &histogram[b * n_classes]
    cdef int64_t k
    for k in range(n_classes):
        left[k] += cells[k]
    return 0 if counts == NULL else counts[b]


cdef void cut_histogram(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, uint64_t number, const NodeTotals *node,
    int64_t *left, Split *best,
) noexcept nogil:
    """Draw a cut of a numeric feature from its histogram; the last bin holds the missing values.

    ``counts`` are the bins' row counts, NULL where weights are counts. ``left`` has room for a number per class.
    """
    cdef int64_t n_classes = node.n_classes, missing = n_bins - 1, low = 0, high = missing - 1, cut, b, n_left = 0
    cdef double score = best.score
    cdef bint any_missing = weight_of(&histogram[missing * n_classes], n_classes) > 0
    while low < missing and weight_of(&histogram[low * n_classes], n_classes) == 0:
        low += 1
    while high > low and weight_of(&histogram[high * n_classes], n_classes) == 0:
        high -= 1
    if low == missing or (low == high and not any_missing):
        return
    cut = low + <int64_t> scaled(number, high - low)
    memset(left, 0, n_classes * sizeof(int64_t))
    for b in range(low, cut + 1):
        n_left += add_bin(histogram, counts, b, n_classes, left)
    judge(left, n_left, not any_missing and is_heavier(left, node), node, best)
    if any_missing and cut < high:
        n_left += add_bin(histogram, counts, missing, n_classes, left)
        judge(left, n_left, True, node, best)
    if best.score > score:
        best.last_left, best.first_right = <int> cut, <int> (cut + 1 if cut < high else missing)
        while weight_of(&histogram[best.last_left * n_classes], n_classes) == 0:
            best.last_left -= 1
        while weight_of(&histogram[best.first_right * n_classes], n_classes) == 0:
            best.first_right += 1


cdef void cut_members(
    const uint8_t *codes, const uint16_t *members, int64_t n, const Row *rows, const uint64_t *pairs, int64_t n_bins,
    uint64_t number, const NodeTotals *node, int64_t *left, uint8_t *found, Split *best,
) noexcept nogil:
    """Draw the same cut as `cut_histogram`, from the rows of a node; ``codes`` are the feature's bins.

    ``found`` has room for a bin per row. No loop has a branch, as none could be foreseen.
    """
    cdef uint8_t missing = <uint8_t> (n_bins - 1), low = 255, high = 0, top = 0, cut
    cdef uint8_t last_left, first_right, goes_left
    cdef int64_t i, n_left
    cdef double score = best.score
    for i in range(n):
        found[i] = codes[members[i]]
    for i in range(n):
        low, top = min(low, found[i]), max(top, found[i])
    if low == top:
        return
    high = top
    if top == missing:
        high = 0
        for i in range(n):
            high = max(high, <uint8_t> (found[i] if found[i] != missing else 0))
    cut = <uint8_t> (low + scaled(number, high - low))
    memset(left, 0, node.n_classes * sizeof(int64_t))
    n_left = add_rows(found, 0, cut, members, n, rows, pairs, node, left)
    judge(left, n_left, top < missing and is_heavier(left, node), node, best)
    if top == missing and cut < high:
        n_left += add_rows(found, missing, missing, members, n, rows, pairs, node, left)
        judge(left, n_left, True, node, best)
    if best.score > score:
        last_left, first_right = low, missing
        for i in range(n):
            goes_left = -<uint8_t> (found[i] <= cut)
            last_left = max(last_left, <uint8_t> (found[i] & goes_left))
            first_right = min(first_right, <uint8_t> (found[i] | goes_left))
        best.last_left, best.first_right = last_left, first_right


cdef inline int64_t add_rows(
    const uint8_t *found, uint8_t least, uint8_t most, const uint16_t *members, int64_t n, const Row *rows,
    const uint64_t *pairs, const NodeTotals *node, int64_t *left,
) noexcept nogil:
    """Add the rows in some bins to what is left of the cut, and return how many they are, if each counts as one."""
    cdef int64_t i, n_rows = 0
    cdef uint64_t pair = 0
    cdef Row row
    if node.n_classes == 2:
        for i in range(n):
            pair += pairs[members[i]] & -<uint64_t> (least <= found[i] <= most)
        left[0] += first_of(pair)
        left[1] += second_of(pair)
    else:
        for i in range(n):
            row = rows[members[i]]
            left[row.label] += row.weight & -<uint32_t> (least <= found[i] <= most)
    if not node.weighted:
        return 0
    for i in range(n):
        n_rows += least <= found[i] <= most
    return n_rows


cdef inline bint is_heavier(const int64_t *left, const NodeTotals *node) noexcept nogil:
    """Whether the left child has at least half of the weight: it then gets missing values that are to come."""
    cdef int64_t k, weight = 0
    for k in range(node.n_classes):
        weight += left[k]
    return 2 * weight >= node.weight
