"""Splitting: the best way to cut one feature of one node in two.

A split's score is sum(left class weights squared) / left weight + the same of the right child.
The highest score is the lowest weighted Gini impurity. Sums are integers, and the score is
always worked out by the same formula, so that it doesn't matter which function found a split.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset
from libcpp.vector cimport vector

from kfhe.engine.trees.categories cimport scratch_size, split_categories
from kfhe.engine.trees.split cimport MARGIN, NodeTotals, Row, Split, better, improves


cdef void scan_histogram(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, const NodeTotals *node,
    int64_t *left, Split *best,
) noexcept nogil:
    """Try each threshold of a numeric feature; its last bin (n_bins - 1) holds the missing values.

    ``counts`` are the bins' row counts, NULL where weights are counts. ``left`` is scratch space
    for a number per class.
    """
    cdef int64_t n_classes = node.n_classes, squares = node.squares, total = node.weight
    cdef int64_t least = node.min_count, most = node.count - node.min_count
    cdef const int64_t *totals = node.classes
    cdef int64_t missing = n_bins - 1, missing_weight = 0, missing_count
    cdef int64_t k, b, weight, left_weight, left_count, left_squares, cross, h, squares_before, cross_before
    cdef int last
    cdef bint missing_left
    cdef const int32_t *cells = &histogram[missing * n_classes]
    cdef double before = best.score
    for k in range(n_classes):
        missing_weight += cells[k]
    missing_count = missing_weight if counts == NULL else counts[missing]
    for missing_left in range(1 + (missing_count > 0)):
        left_weight = left_count = left_squares = cross = 0  # cross: sum of left times total
        for k in range(n_classes):
            left[k] = cells[k] if missing_left else 0
            left_squares += left[k] * left[k]
            cross += left[k] * node.classes[k]
        if missing_left:
            left_weight, left_count = missing_weight, missing_count
        last = -1
        for b in range(n_bins if not missing_left and missing_count > 0 else n_bins - 1):
            # What was left of this bin, in case there is a row in it
            squares_before, cross_before, weight = left_squares, cross, 0
            for k in range(n_classes):
                h = histogram[b * n_classes + k]
                left_squares += h * (2 * left[k] + h)
                cross += h * totals[k]
                left[k] += h
                weight += h
            if weight == 0:
                continue
            if last >= 0 and least <= left_count <= most:
                if improves(
                    squares_before, squares - 2 * cross_before + squares_before, left_weight, total, best
                ):
                    best.last_left = last
                    best.first_right = b
                    best.missing_left = missing_left
            left_weight += weight
            left_count += weight if counts == NULL else counts[b]
            last = b
    if missing_count == 0 and best.score > before:
        best.missing_left = 2 * best.left_weight >= node.weight


cdef void sweep_sorted(
    const uint32_t *order, int64_t n_rows, const Row *rows, uint32_t missing_bin, const NodeTotals *node,
    int64_t *left, Split *best,
) noexcept nogil:
    """Do what scan_histogram does, row by row along a sorted order: its cost is that of the rows.

    An entry of the order has the row in its lower 16 bits, and the row's bin above them.
    """
    # Copies, which the compiler need not fear to be changed through `left`
    cdef int64_t total = node.weight, squares = node.squares
    cdef const int64_t *totals = node.classes
    cdef int64_t least = node.min_count, most = node.count - node.min_count, n_left
    cdef int64_t n_present = n_rows, i, k, w, left_weight, left_squares, cross
    cdef int64_t first, last
    cdef uint32_t entry, next_entry
    cdef bint missing_left, weighted = node.weighted
    cdef double before = best.score, bar, left_size, size = <double> total
    cdef Row row
    while n_present > 0 and order[n_present - 1] >> 16 == missing_bin:
        n_present -= 1
    for missing_left in range(1 + (n_present < n_rows)):
        left_weight = left_squares = cross = 0
        for k in range(node.n_classes):
            left[k] = 0
        n_left = 0
        if missing_left:
            n_left = n_rows - n_present
            for i in range(n_present, n_rows):
                row = rows[order[i] & 0xFFFF]
                left[row.label] += row.weight
                left_weight += row.weight
            for k in range(node.n_classes):
                left_squares += left[k] * left[k]
                cross += left[k] * totals[k]
        bar = best.score * MARGIN
        last = (n_present if missing_left else n_rows) - 1
        next_entry = order[0]
        for i in range(last):
            entry = next_entry
            row = rows[entry & 0xFFFF]
            w, k = row.weight, row.label
            left_squares += w * (2 * left[k] + w)
            cross += w * totals[k]
            left[k] += w
            left_weight += w
            n_left = n_left + 1 if weighted else left_weight
            next_entry = order[i + 1]
            left_size = <double> left_weight
            # One condition for all, as none of its parts can be foretold. Its terms are all positive: nothing
            # cancels out where one side weighs next to nothing.
            if (
                ((entry ^ next_entry) > 0xFFFF) & (n_left >= least) & (n_left <= most)
                & (
                    <double> left_squares * (size - left_size)
                    + <double> (squares - 2 * cross + left_squares) * left_size
                    > bar * (left_size * (size - left_size))
                )
            ) and improves(left_squares, squares - 2 * cross + left_squares, left_weight, total, best):
                best.last_left = entry >> 16
                best.first_right = next_entry >> 16
                best.missing_left = missing_left
                bar = best.score * MARGIN
    if n_present == n_rows and best.score > before:
        best.missing_left = 2 * best.left_weight >= total


cdef void split_histogram(
    const int32_t *histogram, const int32_t *counts, int32_t feature, int64_t n_bins, bint categorical,
    const NodeTotals *node, double *scratch, int64_t *left, Split *split,
) noexcept nogil:
    """Search one feature for a split with a higher score than ``split`` has."""
    split.feature = feature
    split.categorical = categorical
    if categorical:
        split_categories(histogram, counts, n_bins, node, scratch, left, split)
    else:
        scan_histogram(histogram, counts, n_bins, node, left, split)


def best_split(
    const int32_t[:, ::1] histograms, const int32_t[::1] n_bins, const uint8_t[::1] categorical,
    int64_t min_samples_leaf, const int32_t[::1] counts=None,
):
    """Choose the best split of a node from the histograms of its features.

    Parameters
    ----------
    histograms : int32 array of shape (n_bins.sum(), n_classes)
        Weight of each class in each bin, one feature after the other. Those of several blocks of rows may have
        been added up.
    n_bins : int32 array of shape (n_features,)
        Number of bins of each feature, the one for missing values counted in.
    categorical : uint8 array of shape (n_features,)
        1 for features whose bins have no order.
    min_samples_leaf : int
        Smallest number of rows of a child.
    counts : int32 array of shape (n_bins.sum(),) or None
        Number of rows in each bin; None: the weights are numbers of rows.

    Returns
    -------
    dict or None
        The split as `kfhe.engine.trees.partitioning` takes it; None if no feature can be split.
    """
    cdef int64_t f, first = 0, n_classes = histograms.shape[1]
    cdef vector[int64_t] totals = vector[int64_t](n_classes), left = vector[int64_t](n_classes)
    cdef vector[double] scratch = vector[double](scratch_size(n_classes))
    cdef const int32_t *bin_counts = NULL
    if counts is not None:
        bin_counts = &counts[0]
    # Any feature has all rows of the node.
    cdef NodeTotals node = add_up(&histograms[0, 0], bin_counts, n_bins[0], totals)
    cdef Split best, split
    node.min_count = min_samples_leaf
    memset(&best, 0, sizeof(Split))
    for f in range(n_bins.shape[0]):
        memset(&split, 0, sizeof(Split))
        split_histogram(
            &histograms[first, 0], bin_counts, <int32_t> f, n_bins[f], categorical[f], &node, scratch.data(),
            left.data(), &split,
        )
        if better(&split, &best):
            best = split
        first += n_bins[f]
        if bin_counts != NULL:
            bin_counts += n_bins[f]
    return best if best.score > 0 else None


def best_sorted_split(
    const uint32_t[::1] order, const int32_t[::1] labels, const int32_t[::1] weights, int64_t n_bins,
    int64_t n_classes, int64_t min_samples_leaf, bint counts,
):
    """Choose the best threshold of one numeric feature along a sorted order, as `best_split` does from histograms.

    An entry of ``order`` has the row in its lower 16 bits, and the row's bin above them; ``labels`` and ``weights``
    are those of all rows. ``counts``: weights are numbers of rows; else each row counts as one.
    """
    cdef vector[Row] rows = vector[Row](labels.shape[0])
    cdef vector[int32_t] totals = vector[int32_t](n_classes)
    cdef vector[int64_t] classes = vector[int64_t](n_classes), left = vector[int64_t](n_classes)
    cdef int32_t n_rows = <int32_t> order.shape[0]
    cdef const int32_t *row_count = NULL
    cdef NodeTotals node
    cdef Split split
    cdef int64_t i
    for i in range(labels.shape[0]):
        rows[i].weight, rows[i].label = weights[i], labels[i]
    for i in range(n_rows):
        totals[labels[order[i] & 0xFFFF]] += weights[order[i] & 0xFFFF]
    if not counts:
        row_count = &n_rows
    node = add_up(totals.data(), row_count, 1, classes)
    node.min_count = min_samples_leaf
    memset(&split, 0, sizeof(Split))
    sweep_sorted(&order[0], n_rows, rows.data(), <uint32_t> n_bins - 1, &node, left.data(), &split)
    return split if split.score > 0 else None


cdef NodeTotals add_up(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, vector[int64_t] &classes
) noexcept nogil:
    """Totals of a node, from the histogram of one feature; the classes' are kept in ``classes``."""
    cdef NodeTotals node
    cdef int64_t b, k
    node.n_classes = <int64_t> classes.size()
    node.weighted = counts != NULL
    node.weight = node.count = node.squares = 0
    for b in range(n_bins):
        for k in range(node.n_classes):
            classes[k] += histogram[b * node.n_classes + k]
        node.count += counts[b] if node.weighted else 0
    for k in range(node.n_classes):
        node.weight += classes[k]
        node.squares += classes[k] * classes[k]
    if not node.weighted:
        node.count = node.weight
    node.classes = classes.data()
    return node
