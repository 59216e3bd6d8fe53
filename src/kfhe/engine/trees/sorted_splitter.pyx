"""Nodes with few rows: rows are sorted once by each feature, and descendants inherit the order.

A subtree's rows are copied together, and the cost of a node depends on its rows, not on the number of bins.
When a node is split, the smaller child gets orders of its own, after those of its parent. The larger child
inherits the parent's: it is processed after the subtree of the smaller child, whose rows have weight zero by
then. They are dropped once there are many.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from kfhe.engine.trees.growth cimport (
    Growth, OpenNode, Problem, RowSet, Splitter, Workspace, grow_depth_first, origin_of, stays_leaf,
)
from kfhe.engine.trees.splitter cimport (
    Members, NodeTotals, Order, Row, Split, bar_for, better, bins_of, cut_at_best, cut_at_random, cut_categories,
    cut_number, lowest_bit, mark_sides, pair_of,
)

cdef enum:
    FEW_ROWS = 72  # below this, most bins are empty and are skipped; less than 256

cdef Splitter BY_SORTING
BY_SORTING.defers = defers
BY_SORTING.search = search
BY_SORTING.partition = partition
BY_SORTING.hand_on = hand_on
BY_SORTING.close = close

# Of a sorted order, from which it pays to drop the entries of rows that are in leaves by now: of two classes,
# to pass over an entry costs less than to move one
cdef double ENTRIES_PER_ROW = 1.25


cdef void split_feature(
    const Problem *problem, Workspace *work, int64_t n_sorted, const OpenNode *node, int32_t feature,
    const NodeTotals *totals, const uint32_t *order, int64_t n_entries, Split *best,
) noexcept nogil:
    """Search one feature of a node of few rows; a feature that doesn't vary gives no split.

    ``order`` has its rows sorted by a numeric feature; NULL: a histogram is built instead.
    """
    cdef const uint8_t *codes = &work.codes[feature * n_sorted]
    cdef const uint16_t *members = &work.members[node.start]
    cdef int64_t i, n = node.end - node.start, n_bins = problem.n_bins[feature]
    cdef int64_t *left = work.left.data()
    cdef Split split
    # Only splits better than the best so far are of interest.
    cdef double bar = bar_for(feature, best[0])
    split.score = bar
    split.feature = feature
    split.categorical = problem.categorical[feature]
    if split.categorical:
        fill_categories(problem, work, codes, node, n_bins)
        cut_categories(
            bins_of(
                work.category_histogram.data(),
                &work.category_histogram[n_bins * totals.n_classes] if problem.weighted else NULL, n_bins,
                totals.n_classes,
            ),
            totals[0], work.scratch.data(), left, &split,
        )
    elif problem.rules.random_cuts:
        for i in range(n):
            work.found[i] = codes[members[i]]
        cut_at_random(
            Members(
                work.found.data(), members, n, work.rows.data(), work.pairs.data(), totals.n_classes, totals.weighted,
                <uint8_t> (n_bins - 1),
            ),
            cut_number(problem.rules, node.key, feature), totals[0], left, &split,
        )
    elif order == NULL:
        cut_at_best(
            work.sparse_histogram.build(codes, members, n, work.pairs.data(), <uint8_t> (n_bins - 1)), totals[0], left, &split
        )
    else:
        cut_at_best(
            Order(order, n_entries, work.rows.data(), work.pairs.data(), <uint32_t> (n_bins - 1)), totals[0], left,
            &split,
        )
    if split.score > bar and better(split, best[0]):
        best[0] = split


cdef void fill_categories(
    const Problem *problem, Workspace *work, const uint8_t *codes, const OpenNode *node, int64_t n_bins
) noexcept nogil:
    """Build the histogram of a categorical feature, and above it, if rows count as one each, their counts."""
    cdef int32_t *histogram = work.category_histogram.data()
    cdef int64_t i, row, n_classes = problem.n_classes
    memset(histogram, 0, n_bins * (n_classes + problem.weighted) * sizeof(int32_t))
    for i in range(node.start, node.end):
        row = work.members[i]
        histogram[codes[row] * n_classes + work.rows[row].label] += work.rows[row].weight
    if problem.weighted:
        for i in range(node.start, node.end):
            histogram[n_bins * n_classes + codes[work.members[i]]] += 1


cdef bint varies(const uint8_t *codes, const uint16_t *members, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(1, n):
        if codes[members[i]] != codes[members[0]]:
            return True
    return False


cdef inline bint inherits(const Problem *problem) noexcept nogil:
    """Whether children inherit sorted orders: not if each node draws features or cuts."""
    return problem.rules.max_features >= problem.n_features and not problem.rules.random_cuts


cdef void search(
    Growth *growth, OpenNode *node, const NodeTotals *totals, const int32_t *features, int64_t n, Split *best
) noexcept nogil:
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t i, n_rows = node.end - node.start
    cdef uint32_t *order = NULL
    if inherits(problem):
        search_varying(growth, node, totals, best)
        return
    if problem.n_classes > 2 or problem.weighted:
        order = work.orders.data()
    for i in range(n):
        if order != NULL and not problem.categorical[features[i]] and not problem.rules.random_cuts:
            sort_members(
                &work.codes[features[i] * growth.n_sorted], &work.members[node.start], n_rows,
                problem.n_bins[features[i]], order,
            )
        split_feature(problem, work, growth.n_sorted, node, features[i], totals, order, n_rows, best)


cdef void search_varying(Growth *growth, OpenNode *node, const NodeTotals *totals, Split *best) noexcept nogil:
    """Search the features that varied in the parent; store which of them still do."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t i, n = node.end - node.start, n_sorted = growth.n_sorted
    cdef int32_t feature, n_active = 0, first_active = node.first_active
    cdef uint32_t *order
    node.first_active += node.n_active
    work.active.resize(node.first_active + node.n_active)
    for i in range(node.n_active):
        feature = work.active[first_active + i]
        order = order_of(growth, node, feature)
        if problem.categorical[feature]:
            if not varies(&work.codes[feature * n_sorted], &work.members[node.start], n):
                continue
        elif order[0] >> 16 == order[node.n_entries - 1] >> 16:
            continue
        work.active[node.first_active + n_active] = feature
        n_active += 1
        split_feature(problem, work, n_sorted, node, feature, totals, order, node.n_entries, best)
    node.n_active = n_active


cdef inline uint32_t *order_of(Growth *growth, const OpenNode *node, int64_t feature) noexcept nogil:
    """Order of a node's rows by a feature."""
    return &growth.work.orders[2 * feature * growth.n_sorted + node.first_entry]


cdef void grow_sorted(Growth *growth, const OpenNode *root) noexcept nogil:
    """Grow a subtree of few rows."""
    cdef Growth sorted_growth = growth[0]
    cdef OpenNode node = root[0]
    sorted_growth.first = root.start
    sorted_growth.n_sorted = root.end - root.start
    node.start, node.end = 0, sorted_growth.n_sorted
    node.first_entry, node.n_entries = 0, <int32_t> sorted_growth.n_sorted
    gather(&sorted_growth)
    prepare_features(&sorted_growth, &node)
    grow_depth_first(&sorted_growth, &node, &BY_SORTING)


cdef void gather(Growth *growth) noexcept nogil:
    """Copy the subtree's rows together."""
    cdef const Problem *problem = growth.problem
    cdef const RowSet *row_set = growth.row_set
    cdef Workspace *work = growth.work
    cdef int64_t i, f, n = growth.n_sorted, first = growth.first
    # Local variables, which can't change when bytes are written
    cdef const uint32_t *rows = &row_set.rows[first]
    cdef const uint8_t *column
    cdef uint8_t *copy
    if <int64_t> work.members.size() < n:
        work.members.resize(n)
        work.spare.resize(n)
        work.side.resize(n)
        work.found.resize(n)
        work.rows.resize(n)
        work.pairs.resize(n)
    if <int64_t> work.codes.size() < n * problem.n_features:
        work.codes.resize(n * problem.n_features)
        work.orders.resize(2 * n * problem.n_features)
    for i in range(n):
        work.members[i] = i
        work.rows[i].weight = row_set.weights[first + i]
        work.rows[i].label = row_set.classes[first + i]
        work.pairs[i] = pair_of(row_set.weights[first + i], row_set.classes[first + i])
    for f in range(problem.n_features):
        column, copy = &row_set.codes[f * row_set.stride], &work.codes[f * n]
        for i in range(n):
            copy[i] = column[rows[i]]


cdef void prepare_features(Growth *growth, OpenNode *node) noexcept nogil:
    """Sort the rows by each feature that varies, if all features are searched and orders are inherited."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t f, n = growth.n_sorted
    node.first_active = node.n_active = 0
    work.active.resize(problem.n_features)
    if not inherits(problem):
        return
    for f in range(problem.n_features):
        if varies(&work.codes[f * n], work.members.data(), n):
            work.active[node.n_active] = f
            node.n_active += 1
            if not problem.categorical[f]:
                sort_members(&work.codes[f * n], work.members.data(), n, problem.n_bins[f], order_of(growth, node, f))


cdef bint defers(Growth *growth, OpenNode *node) noexcept nogil:
    return False


cdef int64_t partition(
    Growth *growth, const OpenNode *node, const Split *split, int64_t *left_totals
) noexcept nogil:
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef const uint8_t *column = &work.codes[split.feature * growth.n_sorted]
    cdef const uint16_t *members = &work.members[node.start]
    cdef const Row *rows = work.rows.data()
    cdef uint8_t *sides = work.side.data()
    cdef uint8_t goes_left[256]
    cdef int64_t i, row, side
    mark_sides(
        split[0], problem.n_bins[split.feature], &problem.low[256 * split.feature],
        &problem.high[256 * split.feature], goes_left,
    )
    for i in range(node.end - node.start):
        row = members[i]
        side = goes_left[column[row]]
        sides[row] = side
        left_totals[rows[row].label] += side * rows[row].weight
    return partition_members(&work.members[node.start], node.end - node.start, work.side.data(), work.spare.data())


cdef void hand_on(Growth *growth, const OpenNode *node, OpenNode *small, OpenNode *large) noexcept nogil:
    """Give the smaller child its own orders, and drop rows from those of the larger one if many are gone."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t i, n_large = large.end - large.start
    cdef int32_t feature
    cdef bint small_goes_on, large_drops, small_is_left = small.start == node.start
    if not inherits(problem):
        return
    small_goes_on = not stays_leaf(growth, small)
    large_drops = (
        small_goes_on or problem.n_classes > 2 or node.n_entries > ENTRIES_PER_ROW * n_large
    ) and not stays_leaf(growth, large)
    small.first_entry, small.n_entries = node.first_entry + node.n_entries, <int32_t> (small.end - small.start)
    if large_drops:
        large.n_entries = node.n_entries - small.n_entries if small_goes_on else <int32_t> n_large
    for i in range(node.n_active):
        feature = work.active[node.first_active + i]
        if problem.categorical[feature]:
            continue
        if large_drops and small_goes_on:
            partition_order(
                order_of(growth, node, feature), node.n_entries, work.side.data(), small_is_left,
                order_of(growth, small, feature),
            )
        elif small_goes_on:
            copy_side(
                order_of(growth, node, feature), node.n_entries, work.side.data(), small_is_left,
                order_of(growth, small, feature),
            )
        elif large_drops:
            copy_side(
                order_of(growth, node, feature), node.n_entries, work.side.data(), not small_is_left,
                order_of(growth, large, feature),
            )


cdef void close(Growth *growth, const OpenNode *node) noexcept nogil:
    cdef const RowSet *row_set = growth.row_set
    cdef Workspace *work = growth.work
    cdef int64_t i, row
    for i in range(node.start, node.end):
        row = work.members[i]
        growth.members[growth.first + i] = <uint32_t> origin_of(row_set, row_set.rows[growth.first + row])
        work.pairs[row] = work.rows[row].weight = 0  # from now on it counts on neither side
        work.side[row] = 2


# ---------------------------------------------------------------- orders


cdef void sort_members(
    const uint8_t *codes, const uint16_t *members, int64_t n_members, int64_t n_bins, uint32_t *order
) noexcept nogil:
    """Sort rows by bin, stably; an entry has the row in its lower 16 bits, and the bin above them."""
    cdef uint32_t starts[257]
    cdef int64_t i
    cdef uint32_t code
    if n_members <= FEW_ROWS:
        sort_few(codes, members, n_members, order)
        return
    memset(starts, 0, (n_bins + 1) * sizeof(uint32_t))
    for i in range(n_members):
        starts[codes[members[i]] + 1] += 1
    for i in range(n_bins):
        starts[i + 1] += starts[i]
    for i in range(n_members):
        code = codes[members[i]]
        order[starts[code]] = code << 16 | members[i]
        starts[code] += 1


cdef void sort_few(
    const uint8_t *codes, const uint16_t *members, int64_t n_members, uint32_t *order
) noexcept nogil:
    """The same, for the bins that have rows only."""
    cdef uint8_t starts[256]
    cdef uint64_t bits, present[4]
    cdef int64_t i, b
    cdef uint8_t code, size, start = 0
    memset(starts, 0, sizeof(starts))
    memset(present, 0, sizeof(present))
    for i in range(n_members):
        code = codes[members[i]]
        starts[code] += 1
        present[code >> 6] |= <uint64_t> 1 << (code & 63)
    for i in range(4):
        bits = present[i]
        while bits:
            b = 64 * i + lowest_bit(bits)
            size, starts[b] = starts[b], start
            start += size
            bits &= bits - 1
    for i in range(n_members):
        code = codes[members[i]]
        order[starts[code]] = <uint32_t> code << 16 | members[i]
        starts[code] += 1


cdef int64_t partition_members(uint16_t *members, int64_t n, const uint8_t *side, uint16_t *spare) noexcept nogil:
    """Move the rows that go left to the front, keeping both sides in order."""
    cdef int64_t i, n_left = 0, n_right = 0
    cdef uint16_t member
    cdef uint8_t left
    for i in range(n):
        member = members[i]
        left = side[member]
        members[n_left] = member
        spare[n_right] = member
        n_left += left
        n_right += 1 - left
    memcpy(&members[n_left], spare, n_right * sizeof(uint16_t))
    return n_left


cdef void partition_order(
    uint32_t *order, int64_t n, const uint8_t *side, uint8_t wanted, uint32_t *target
) noexcept nogil:
    """Move the entries of the rows on one side to the target; both parts stay in order."""
    cdef int64_t i, n_moved = 0
    cdef uint32_t entry
    for i in range(n):
        entry = order[i]
        order[i - n_moved] = entry
        target[n_moved] = entry
        n_moved += side[entry & 0xFFFF] == wanted


cdef int64_t copy_side(
    const uint32_t *order, int64_t n, const uint8_t *side, uint8_t wanted, uint32_t *target
) noexcept nogil:
    """Copy the entries of the rows on one side, in order; there must be room for one more."""
    cdef int64_t i, n_copied = 0
    for i in range(n):
        target[n_copied] = order[i]
        n_copied += side[order[i] & 0xFFFF] == wanted
    return n_copied
