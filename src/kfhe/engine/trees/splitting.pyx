"""Splitting: the best way to cut one feature of one node in two.

A split's score is sum(left class weights squared) / left weight + the same of the right child.
The highest score is the lowest weighted Gini impurity. Sums are integers, and the score is
always worked out by the same formula, so that it doesn't matter which function found a split.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from kfhe.engine.trees.bounds cimport Bound, Place, bound_of, cut_improves, cut_may_win, may_win, place_of, raise_bar
from kfhe.engine.trees.categories cimport scratch_size, split_categories
from kfhe.engine.trees.random_cuts cimport cut_histogram
from kfhe.engine.trees.split cimport NodeTotals, Split, better, improves

cdef enum:
    STRETCH = 8  # bins that are judged together


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


cdef void scan_two_classes(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, const NodeTotals *node, Split *best
) noexcept nogil:
    """Do what scan_histogram does, for two classes: by stretches of bins, of which few are looked at closely."""
    cdef const int32_t *missing = &histogram[2 * (n_bins - 1)]
    cdef bint any_missing = (missing[0] | missing[1]) != 0
    cdef int64_t cut = cut_bins(histogram, counts, n_bins, False, node, best), found = cut, b
    if found >= 0:
        best.missing_left = not any_missing and 2 * best.left_weight >= node.weight
    if any_missing:
        cut = cut_bins(histogram, counts, n_bins, True, node, best)
        if cut >= 0:
            found = cut
            best.missing_left = True
    if found >= 0:
        b = found
        while (histogram[2 * b] | histogram[2 * b + 1]) == 0:
            b -= 1
        best.last_left, b = b, found + 1
        while (histogram[2 * b] | histogram[2 * b + 1]) == 0:
            b += 1
        best.first_right = b


cdef int64_t cut_bins(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, bint missing_left, const NodeTotals *node,
    Split *best,
) noexcept nogil:
    """Find the bin after which it is best to cut; -1: nowhere better than the best so far."""
    cdef int64_t b, start = 0, stop, missing = n_bins - 1, found = -1, count
    cdef int32_t first = 0, second = 0, first_before, second_before
    cdef Bound bound = bound_of(node, best.score)
    cdef Place before, after
    if missing_left:
        first, second = histogram[2 * missing], histogram[2 * missing + 1]
    while start < missing and (histogram[2 * start] | histogram[2 * start + 1]) == 0:
        start += 1
    after = place_of(first, second)
    while start < missing:
        before, first_before, second_before = after, first, second
        stop = start + STRETCH
        if stop <= missing:
            for b in range(STRETCH):
                first += histogram[2 * (start + b)]
                second += histogram[2 * (start + b) + 1]
        else:
            stop = missing
            for b in range(start, stop):
                first += histogram[2 * b]
                second += histogram[2 * b + 1]
        after = place_of(first, second)
        if may_win(&bound, &before, &after):
            count = 0
            if counts != NULL:
                count = counts[missing] if missing_left else 0
                for b in range(start):
                    count += counts[b]
            for b in range(start, stop):
                first_before += histogram[2 * b]
                second_before += histogram[2 * b + 1]
                if counts != NULL:
                    count += counts[b]
                if cut_may_win(&bound, <double> first_before, <double> second_before) and cut_improves(
                    first_before, second_before, count, node, best
                ):
                    found = b
                    raise_bar(&bound, best.score)
        start = stop
    return found


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
        if node.n_classes == 2:
            scan_two_classes(histogram, counts, n_bins, node, split)
        else:
            scan_histogram(histogram, counts, n_bins, node, left, split)


def best_split(
    const int32_t[:, ::1] histograms, const int32_t[::1] n_bins, const uint8_t[::1] categorical,
    int64_t min_samples_leaf, const int32_t[::1] counts=None, const uint64_t[::1] cut_numbers=None,
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
    cut_numbers : uint64 array of shape (n_features,) or None
        Random numbers by which numeric features are cut; None: their best cuts are looked for.

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
        if cut_numbers is not None and not categorical[f]:
            split.feature = <int32_t> f
            cut_histogram(
                &histograms[first, 0], bin_counts, n_bins[f], cut_numbers[f], &node, left.data(), &split
            )
        else:
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
