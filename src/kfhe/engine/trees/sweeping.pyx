"""Sweeping: the best threshold along a sorted order, at the cost of its rows, however many bins there are.

An entry of an order has the row in its lower 16 bits, and the row's bin above them. Of two classes, rows that weigh
nothing are passed over: they belong to the node no longer.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from kfhe.engine.trees.bounds cimport (
    Bound, Place, bound_of, cut_improves, cut_may_win, first_of, may_win, pair_of, place_of, raise_bar, second_of,
)
from kfhe.engine.trees.split cimport MARGIN, NodeTotals, Row, Split, improves
from kfhe.engine.trees.splitting cimport add_up

cdef enum:
    STRETCH = 8  # rows that are judged together,
    LONG_STRETCH = 16  # and in nodes
    LONG_ROWS = 192  # of so many rows

# What is swept over: the order of one feature of a node.
cdef struct Sweep:
    const uint32_t *order
    const Row *rows
    const uint64_t *pairs  # two classes: the weights of the rows; more: whether they weigh anything
    const NodeTotals *node
    Split *best
    int64_t found  # the last row before the best cut; -1: none has beaten what there was


cdef void sweep(
    const uint32_t *order, int64_t n_entries, const Row *rows, const uint64_t *pairs, uint32_t missing_bin,
    const NodeTotals *node, int64_t *left, Split *best,
) noexcept nogil:
    """Try each threshold, with the missing values right of it and, if there are any, left of it.

    ``rows`` are for more than two classes. ``left`` has room for a number per class.
    """
    cdef Sweep sweep
    cdef int64_t n_present = n_entries, i
    cdef bint any_missing = False
    sweep.order, sweep.rows, sweep.pairs, sweep.node, sweep.best = order, rows, pairs, node, best
    sweep.found = -1
    sweep_rows(&sweep, n_entries - 1, n_entries, n_entries, left)
    while n_present > 0 and order[n_present - 1] >> 16 == missing_bin:
        n_present -= 1
        any_missing |= pairs[order[n_present] & 0xFFFF] > 0
    if sweep.found >= 0:
        best.missing_left = not any_missing and 2 * best.left_weight >= node.weight
    if any_missing:
        i, sweep.found = sweep.found, -1
        sweep_rows(&sweep, n_present - 1, n_present, n_entries, left)
        if sweep.found >= 0:
            best.missing_left = True
        else:
            sweep.found = i
    if sweep.found >= 0:
        describe_cut(&sweep)


cdef void describe_cut(const Sweep *sweep) noexcept nogil:
    """Tell between which bins the best cut is."""
    cdef int64_t i = sweep.found, j = sweep.found + 1
    while sweep.pairs[sweep.order[i] & 0xFFFF] == 0:
        i -= 1
    while sweep.pairs[sweep.order[j] & 0xFFFF] == 0:
        j += 1
    sweep.best.last_left = sweep.order[i] >> 16
    sweep.best.first_right = sweep.order[j] >> 16


cdef inline void sweep_rows(
    Sweep *sweep, int64_t n_cuts, int64_t first_missing, int64_t n_entries, int64_t *left
) noexcept nogil:
    """Find the best cut after one of the first rows; those from ``first_missing`` on are left of all cuts."""
    if sweep.node.n_classes == 2:
        sweep_pairs(sweep, n_cuts, first_missing, n_entries)
    else:
        sweep_classes(sweep, n_cuts, first_missing, n_entries, left)


cdef inline int64_t count_of(const Sweep *sweep, int64_t start, int64_t stop) noexcept nogil:
    """Number of rows in a part of the order."""
    cdef int64_t i, count = 0
    for i in range(start, stop):
        count += sweep.pairs[sweep.order[i] & 0xFFFF] > 0
    return count


# ---------------------------------------------------------------- two classes


cdef void sweep_pairs(Sweep *sweep, int64_t n_cuts, int64_t first_missing, int64_t n_entries) noexcept nogil:
    cdef const uint32_t *order = sweep.order
    cdef const uint64_t *pairs = sweep.pairs
    cdef int64_t start = 0, stop, stretch = LONG_STRETCH if n_cuts >= LONG_ROWS else STRETCH
    cdef uint64_t left = sum_of(&order[first_missing], n_entries - first_missing, pairs)
    cdef Bound bound = bound_of(sweep.node, sweep.best.score)
    cdef int64_t n_before = count_of(sweep, first_missing, n_entries) if sweep.node.weighted else 0
    cdef uint64_t left_before
    cdef Place before, after = place_of(first_of(left), second_of(left))
    while start < n_cuts:
        before, left_before = after, left
        stop = start + stretch
        if stop > n_cuts:
            stop = n_cuts
            left += sum_of(&order[start], stop - start, pairs)
        else:
            left += sum_of_eight(&order[start], pairs)
            if stretch == LONG_STRETCH:
                left += sum_of_eight(&order[start + STRETCH], pairs)
        after = place_of(first_of(left), second_of(left))
        if may_win(&bound, &before, &after):
            cut_pairs(sweep, start, stop, left_before, n_before, &bound)
        start = stop


cdef inline uint64_t sum_of(const uint32_t *order, int64_t n, const uint64_t *pairs) noexcept nogil:
    """What some rows weigh."""
    cdef uint64_t total = 0
    cdef int64_t i
    for i in range(n):
        total += pairs[order[i] & 0xFFFF]
    return total


cdef inline uint64_t sum_of_eight(const uint32_t *order, const uint64_t *pairs) noexcept nogil:
    """Spelt out, as a loop would be turned into something slower."""
    return (
        pairs[order[0] & 0xFFFF] + pairs[order[1] & 0xFFFF] + pairs[order[2] & 0xFFFF] + pairs[order[3] & 0xFFFF]
        + pairs[order[4] & 0xFFFF] + pairs[order[5] & 0xFFFF] + pairs[order[6] & 0xFFFF] + pairs[order[7] & 0xFFFF]
    )


cdef void cut_pairs(
    Sweep *sweep, int64_t start, int64_t stop, uint64_t left, int64_t n_before, Bound *bound
) noexcept nogil:
    """Try the cuts of a stretch one by one; if each row counts as one, ``n_before`` are left of all cuts."""
    cdef const NodeTotals *node = sweep.node
    cdef int64_t i, count = n_before + count_of(sweep, 0, start) if node.weighted else 0
    for i in range(start, stop):
        left += sweep.pairs[sweep.order[i] & 0xFFFF]
        count += sweep.pairs[sweep.order[i] & 0xFFFF] != 0
        if (
            ((sweep.order[i] ^ sweep.order[i + 1]) >> 16 != 0)
            & cut_may_win(bound, <double> first_of(left), <double> second_of(left))
        ) and cut_improves(first_of(left), second_of(left), count, node, sweep.best):
            sweep.found = i
            raise_bar(bound, sweep.best.score)


# ---------------------------------------------------------------- any number of classes


cdef void sweep_classes(
    Sweep *sweep, int64_t n_cuts, int64_t first_missing, int64_t n_entries, int64_t *left
) noexcept nogil:
    """Try all cuts one by one: of many classes, bounds say too little."""
    # Copies, which the compiler need not fear to be changed through `left`
    cdef const uint32_t *order = sweep.order
    cdef const Row *rows = sweep.rows
    cdef const int64_t *totals = sweep.node.classes
    cdef int64_t least = sweep.node.min_count, most = sweep.node.count - sweep.node.min_count
    cdef int64_t total = sweep.node.weight, squares = sweep.node.squares
    cdef int64_t i, k, w, left_weight = 0, left_squares = 0, cross = 0, n_left, found = sweep.found
    cdef uint32_t entry, next_entry = order[0]
    cdef bint weighted = sweep.node.weighted
    cdef Split *best = sweep.best
    cdef double bar = best.score * MARGIN, left_size, size = <double> total
    cdef Row row
    memset(left, 0, sweep.node.n_classes * sizeof(int64_t))
    for i in range(first_missing, n_entries):
        left[rows[order[i] & 0xFFFF].label] += rows[order[i] & 0xFFFF].weight
    n_left = count_of(sweep, first_missing, n_entries)
    for k in range(sweep.node.n_classes):
        left_weight += left[k]
        left_squares += left[k] * left[k]
        cross += left[k] * totals[k]
    for i in range(n_cuts):
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
        ) and improves(
            <double> left_squares, <double> (squares - 2 * cross + left_squares), left_weight, total, best
        ):
            found = i
            bar = best.score * MARGIN
    sweep.found = found


def best_sorted_split(
    const uint32_t[::1] order, const int32_t[::1] labels, const int32_t[::1] weights, int64_t n_bins,
    int64_t n_classes, int64_t min_samples_leaf, bint counts,
):
    """Choose the best threshold of one numeric feature along a sorted order, as `best_split` does from histograms.

    ``labels`` and ``weights`` are those of all rows. ``counts``: weights are numbers of rows; else each row counts
    as one.
    """
    cdef vector[Row] rows = vector[Row](labels.shape[0])
    cdef vector[uint64_t] pairs = vector[uint64_t](labels.shape[0])
    cdef vector[int32_t] totals = vector[int32_t](n_classes)
    cdef vector[int64_t] classes = vector[int64_t](n_classes), left = vector[int64_t](n_classes)
    cdef int32_t n_rows = 0
    cdef const int32_t *row_count = NULL
    cdef uint32_t missing_bin = <uint32_t> n_bins - 1
    cdef NodeTotals node
    cdef Split split
    cdef int64_t i, row
    for i in range(labels.shape[0]):
        rows[i].weight, rows[i].label = weights[i], labels[i]
        pairs[i] = pair_of(weights[i], labels[i])
    for i in range(order.shape[0]):
        row = order[i] & 0xFFFF
        totals[labels[row]] += weights[row]
        n_rows += weights[row] > 0
    if not counts:
        row_count = &n_rows
    node = add_up(totals.data(), row_count, 1, classes)
    node.min_count = min_samples_leaf
    memset(&split, 0, sizeof(Split))
    sweep(&order[0], order.shape[0], rows.data(), pairs.data(), missing_bin, &node, left.data(), &split)
    return split if split.score > 0 else None
