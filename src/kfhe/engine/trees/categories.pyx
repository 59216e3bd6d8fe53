"""Categories: the best way to cut a categorical feature of one node in two.

There are too many ways to try them all, so the categories are brought into a few promising orders, and
each order is cut like numbers are.
"""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.algorithm cimport sort

from kfhe.engine.trees.split cimport NodeTotals, Split, improves

cdef extern from *:
    """
    struct KfheByKey {
        const double *key;
        bool operator()(int a, int b) const { return key[a] < key[b] || (key[a] == key[b] && a < b); }
    };
    """
    cdef cppclass ByKey "KfheByKey":
        const double *key

cdef enum:
    POWER_ROUNDS = 3
    STEPS_PER_ROUND = 8

# What a bin has of a class: with many classes most bins have nothing of most of them.
cdef struct Cell:
    int32_t label
    int32_t weight


cdef int64_t scratch_size(int64_t n_classes) noexcept nogil:
    """Numbers that ``split_categories`` needs room for, however many bins there are."""
    return 256 * (2 * n_classes + 2) + n_classes * (n_classes + 4)


cdef void principal_component(
    const double *shares, const double *bin_weights, const int *present, int n_present,
    const int64_t *classes, int64_t n_classes,
    double *mean, double *covariance, double *direction, double *next_direction,
) noexcept nogil:
    """Find the direction in which the bins' class shares vary most, by power iteration."""
    cdef int64_t i, j, iteration
    cdef int p
    cdef double total = 0, length, difference
    cdef const double *of_bin
    for i in range(n_classes):
        mean[i] = 0
    for p in range(n_present):
        total += bin_weights[present[p]]
        for i in range(n_classes):
            mean[i] += bin_weights[present[p]] * shares[present[p] * n_classes + i]
    for i in range(n_classes):
        mean[i] /= total
        for j in range(i + 1):
            covariance[i * n_classes + j] = 0
    for p in range(n_present):
        of_bin = &shares[present[p] * n_classes]
        for i in range(n_classes):
            difference = bin_weights[present[p]] * (of_bin[i] - mean[i])
            for j in range(i + 1):
                covariance[i * n_classes + j] += difference * (of_bin[j] - mean[j])
    for i in range(n_classes):
        direction[i] = 1.0 + classes[i]  # any start that is not the same for all classes
        for j in range(i + 1):
            covariance[i * n_classes + j] /= total
            covariance[j * n_classes + i] = covariance[i * n_classes + j]
    for iteration in range(POWER_ROUNDS):
        # Several steps between two normalisations, which cost more than a step.
        for i in range(STEPS_PER_ROUND // 2):
            multiply_vector(covariance, direction, next_direction, n_classes)
            multiply_vector(covariance, next_direction, direction, n_classes)
        length = 0
        for i in range(n_classes):
            length += direction[i] * direction[i]
        if not 1e-200 < length < 1e200:
            return
        length = sqrt(length)
        for i in range(n_classes):
            direction[i] /= length


cdef inline void multiply_vector(
    const double *matrix, const double *vector, double *result, int64_t n
) noexcept nogil:
    cdef int64_t i, j
    cdef double total
    for i in range(n):
        total = 0
        for j in range(n):
            total += matrix[i * n + j] * vector[j]
        result[i] = total


cdef void sweep_categories(
    const int *order, int n_present, const Cell *cells, const int *first_cell, const int32_t *counts,
    const NodeTotals *node, int64_t *left, Split *best,
) noexcept nogil:
    """Try each cut of an order of categories."""
    cdef int64_t k, h
    cdef int64_t left_weight = 0, left_count = 0, left_squares = 0, cross = 0
    cdef int p, q, cell
    for k in range(node.n_classes):
        left[k] = 0
    for p in range(n_present - 1):
        for cell in range(first_cell[order[p]], first_cell[order[p] + 1]):
            k, h = cells[cell].label, cells[cell].weight
            left_squares += h * (2 * left[k] + h)
            cross += h * node.classes[k]
            left[k] += h
            left_weight += h
            if counts == NULL:
                left_count += h
        if counts != NULL:
            left_count += counts[order[p]]
        if left_count < node.min_count or node.count - left_count < node.min_count:
            continue
        if improves(left_squares, node.squares - 2 * cross + left_squares, left_weight, node.weight, best):
            for q in range(4):
                best.left_bins[q] = 0
            for q in range(p + 1):
                best.left_bins[order[q] // 64] |= <uint64_t> 1 << (order[q] % 64)


cdef void split_categories(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, const NodeTotals *node,
    double *scratch, int64_t *left, Split *best,
) noexcept nogil:
    """Cut a categorical feature along orders of its categories; missing is a category like any other.

    Two classes in the node: by the share of the first, which finds the best split there is. More: by the
    share of each class, and along the principal component of the shares. ``scratch`` has room for
    ``scratch_size`` numbers.
    """
    cdef int64_t n_classes = 0, b, k  # classes of the node: the others have a share of 0 everywhere
    cdef int present[256]
    cdef int order[256]
    cdef int first_cell[257]
    cdef int n_present = 0, n_cells = 0, p
    cdef ByKey by_key
    cdef int64_t *classes = <int64_t *> scratch
    cdef double *bin_weights = &scratch[node.n_classes]
    cdef double *keys = &bin_weights[n_bins]
    cdef Cell *cells = <Cell *> &keys[n_bins]
    cdef double *shares = &keys[n_bins + n_bins * node.n_classes]
    cdef double *mean = &shares[n_bins * node.n_classes]
    cdef double *direction = &mean[node.n_classes]
    cdef double *covariance = &direction[2 * node.n_classes]
    cdef bint missing_present = False
    for k in range(node.n_classes):
        if node.classes[k] > 0:
            classes[n_classes] = k
            n_classes += 1
    for b in range(n_bins):
        first_cell[b] = n_cells
        bin_weights[b] = 0
        for k in range(n_classes):
            cells[n_cells].label = <int32_t> classes[k]
            cells[n_cells].weight = histogram[b * node.n_classes + classes[k]]
            bin_weights[b] += cells[n_cells].weight
            n_cells += cells[n_cells].weight != 0
        if bin_weights[b] == 0:
            continue
        for k in range(n_classes):
            shares[b * n_classes + k] = histogram[b * node.n_classes + classes[k]] / bin_weights[b]
        present[n_present] = b
        n_present += 1
        missing_present = b == n_bins - 1
    first_cell[n_bins] = n_cells
    if n_present < 2:
        return
    cdef double before = best.score
    by_key.key = keys
    for k in range(n_classes + (n_classes > 2)):
        if k == n_classes:
            principal_component(
                shares, bin_weights, present, n_present, classes, n_classes, mean, covariance, direction,
                &direction[node.n_classes],
            )
        for p in range(n_present):
            b = present[p]
            keys[b] = shares[b * n_classes + k] if k < n_classes else project(
                &shares[b * n_classes], direction, n_classes
            )
            order[p] = b
        sort(&order[0], &order[n_present], by_key)
        sweep_categories(order, n_present, cells, first_cell, counts, node, left, best)
        if n_present == 2 or n_classes == 2:  # one way only to part them, or the best one was found
            break
    if best.score > before:
        complete(best, present, n_present, n_bins, missing_present, node.weight)


cdef inline double project(const double *shares, const double *direction, int64_t n_classes) noexcept nogil:
    cdef double total = 0
    cdef int64_t k
    for k in range(n_classes):
        total += shares[k] * direction[k]
    return total


cdef void complete(
    Split *best, const int *present, int n_present, int64_t n_bins, bint missing_present, int64_t weight
) noexcept nogil:
    """Send the categories that the node has no row of to the missing side, else to the heavier child."""
    cdef uint64_t present_bins[4]
    cdef int p
    cdef int64_t missing = n_bins - 1
    if missing_present:
        best.missing_left = (best.left_bins[missing // 64] >> (missing % 64)) & 1
    else:
        best.missing_left = 2 * best.left_weight >= weight
    if best.missing_left:
        for p in range(4):
            present_bins[p] = 0
        for p in range(n_present):
            present_bins[present[p] // 64] |= <uint64_t> 1 << (present[p] % 64)
        for p in range(4):
            best.left_bins[p] |= ~present_bins[p]
