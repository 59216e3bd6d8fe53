"""Nodes with few rows: sorted once by each feature, and their descendants inherit the order.

A subtree's rows are copied together, and a node costs what its rows cost, however many bins there are. When a
node is split, the smaller child gets orders of its own, above those of its parent. The larger one inherits the
parent's: it is worked on after the smaller one's subtree, whose rows weigh nothing by then. They are dropped when
they have become many.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from kfhe.engine.trees.bounds cimport pair_of
from kfhe.engine.trees.categories cimport split_categories
from kfhe.engine.trees.nodes cimport (
    Frame, Growth, Pending, Problem, Workspace, draw_features, is_terminal, origin_of,
)
from kfhe.engine.trees.orders cimport copy_side, part_members, part_order, sort_members
from kfhe.engine.trees.partitioning cimport mark_sides
from kfhe.engine.trees.random_cuts cimport cut_members, cut_number
from kfhe.engine.trees.split cimport NodeTotals, Row, Split, bar_for, better
from kfhe.engine.trees.subtrees cimport Way, grow_subtree
from kfhe.engine.trees.sweeping cimport sweep
from kfhe.engine.trees.tallies cimport cut_tallies, tally

cdef Way SORTED
SORTED.passes_on = passes_on
SORTED.search = search
SORTED.partition = partition
SORTED.hand_on = hand_on
SORTED.close = close

# Of a sorted order, from which it pays to drop the entries of rows that are in leaves by now: of two classes, to
# pass over an entry costs less than to move one
cdef double ENTRIES_PER_ROW = 1.25


cdef void split_feature(
    const Problem *problem, Workspace *work, int64_t n_sorted, const Pending *task, int32_t feature,
    const NodeTotals *totals, const uint32_t *order, int64_t n_entries, Split *best,
) noexcept nogil:
    """Search one feature of a node of few rows; a feature that doesn't vary gives no split.

    ``order`` has its rows sorted by a numeric feature; NULL: they are tallied.
    """
    cdef Split split
    # What is not better than the best so far need not be looked at.
    cdef double bar = bar_for(feature, best)
    split.score = bar
    split.feature = feature
    split.categorical = problem.categorical[feature]
    if split.categorical:
        fill_categories(problem, work, &work.codes[feature * n_sorted], task, problem.n_bins[feature])
        split_categories(
            work.category_histogram.data(),
            &work.category_histogram[problem.n_bins[feature] * totals.n_classes] if problem.weighted else NULL,
            problem.n_bins[feature], totals, work.scratch.data(), work.left.data(), &split,
        )
    elif problem.random_cuts:
        cut_members(
            &work.codes[feature * n_sorted], &work.members[task.start], task.end - task.start, work.rows.data(),
            work.pairs.data(), problem.n_bins[feature],
            cut_number(problem.seed, problem.tree, task.key, feature), totals, work.left.data(), work.found.data(),
            &split,
        )
    elif order == NULL:
        cut_tallies(&work.tallies, problem.n_bins[feature] - 1, totals, &split)
    else:
        sweep(
            order, n_entries, work.rows.data(), work.pairs.data(), problem.n_bins[feature] - 1, totals,
            work.left.data(), &split,
        )
    if split.score > bar and better(&split, best):
        best[0] = split


cdef void fill_categories(
    const Problem *problem, Workspace *work, const uint8_t *codes, const Pending *task, int64_t n_bins
) noexcept nogil:
    """Build the histogram of a categorical feature, and above it, if rows count as one each, their counts."""
    cdef int32_t *histogram = work.category_histogram.data()
    cdef int64_t i, row, n_classes = problem.n_classes
    memset(histogram, 0, n_bins * (n_classes + problem.weighted) * sizeof(int32_t))
    for i in range(task.start, task.end):
        row = work.members[i]
        histogram[codes[row] * n_classes + work.rows[row].label] += work.rows[row].weight
    if problem.weighted:
        for i in range(task.start, task.end):
            histogram[n_bins * n_classes + codes[work.members[i]]] += 1


cdef bint varies(const uint8_t *codes, const uint16_t *members, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(1, n):
        if codes[members[i]] != codes[members[0]]:
            return True
    return False


cdef inline bint inherits(const Problem *problem) noexcept nogil:
    """Whether children inherit sorted orders: not if each node draws features or cuts of its own."""
    return problem.max_features >= problem.n_features and not problem.random_cuts


cdef void search(Growth *growth, Pending *task, const NodeTotals *totals, Split *best) noexcept nogil:
    if inherits(growth.problem):
        search_varying(growth, task, totals, best)
    else:
        search_drawn(growth, task, totals, best)


cdef void search_drawn(
    Growth *growth, const Pending *task, const NodeTotals *totals, Split *best
) noexcept nogil:
    """Try features in the node's random order: ``max_features``, and more until there is a split."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t i, n = task.end - task.start, n_tries = problem.max_features
    cdef int32_t feature
    cdef const uint8_t *codes
    cdef const uint16_t *members = &work.members[task.start]
    cdef uint32_t *order = NULL
    if problem.n_classes > 2 or problem.weighted:
        order = work.orders.data()
    for i in range(problem.n_features):
        if i >= n_tries and best.score > 0:
            break
        if i % n_tries == 0:
            draw_features(i, i + n_tries, problem.n_features, problem.seed, problem.tree, task.key, work.drawn)
        feature = work.drawn[i]
        codes = &work.codes[feature * growth.n_sorted]
        if problem.categorical[feature] or problem.random_cuts:
            pass
        elif order == NULL:
            tally(codes, members, n, work.pairs.data(), &work.tallies)
        else:
            sort_members(codes, members, n, problem.n_bins[feature], order)
        split_feature(problem, work, growth.n_sorted, task, feature, totals, order, n, best)


cdef void search_varying(Growth *growth, Pending *task, const NodeTotals *totals, Split *best) noexcept nogil:
    """Try the features that varied in the parent; note in the task which of them still do."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t i, n = task.end - task.start, n_sorted = growth.n_sorted
    cdef int32_t feature, n_active = 0, first_active = task.first_active
    cdef uint32_t *order
    task.first_active += task.n_active
    work.active.resize(task.first_active + task.n_active)
    for i in range(task.n_active):
        feature = work.active[first_active + i]
        order = order_of(growth, task, feature)
        if problem.categorical[feature]:
            if not varies(&work.codes[feature * n_sorted], &work.members[task.start], n):
                continue
        elif order[0] >> 16 == order[task.n_entries - 1] >> 16:
            continue
        work.active[task.first_active + n_active] = feature
        n_active += 1
        split_feature(problem, work, n_sorted, task, feature, totals, order, task.n_entries, best)
    task.n_active = n_active


cdef inline uint32_t *order_of(Growth *growth, const Pending *task, int64_t feature) noexcept nogil:
    """A node's rows in the order of a feature."""
    return &growth.work.orders[2 * feature * growth.n_sorted + task.first_entry]


cdef void grow_sorted(Growth *growth, const Pending *root) noexcept nogil:
    """Grow a subtree of few rows."""
    cdef Growth sorted_growth = growth[0]
    cdef Pending task = root[0]
    sorted_growth.first = root.start
    sorted_growth.n_sorted = root.end - root.start
    task.start, task.end = 0, sorted_growth.n_sorted
    task.first_entry, task.n_entries = 0, <int32_t> sorted_growth.n_sorted
    gather(&sorted_growth)
    prepare_features(&sorted_growth, &task)
    grow_subtree(&sorted_growth, &task, &SORTED)


cdef void gather(Growth *growth) noexcept nogil:
    """Copy the subtree's rows together."""
    cdef const Problem *problem = growth.problem
    cdef const Frame *frame = growth.frame
    cdef Workspace *work = growth.work
    cdef int64_t i, f, n = growth.n_sorted, first = growth.first
    # In variables of their own, which no byte that is written can change
    cdef const uint32_t *rows = &frame.rows[first]
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
        work.rows[i].weight = frame.weights[first + i]
        work.rows[i].label = frame.classes[first + i]
        work.pairs[i] = pair_of(frame.weights[first + i], frame.classes[first + i])
    for f in range(problem.n_features):
        column, copy = &frame.codes[f * frame.stride], &work.codes[f * n]
        for i in range(n):
            copy[i] = column[rows[i]]


cdef void prepare_features(Growth *growth, Pending *task) noexcept nogil:
    """Sort the rows by each feature that varies, if all features are tried: then orders are inherited."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t f, n = growth.n_sorted
    task.first_active = task.n_active = 0
    work.active.resize(problem.n_features)
    if not inherits(problem):
        return
    for f in range(problem.n_features):
        if varies(&work.codes[f * n], work.members.data(), n):
            work.active[task.n_active] = f
            task.n_active += 1
            if not problem.categorical[f]:
                sort_members(&work.codes[f * n], work.members.data(), n, problem.n_bins[f], order_of(growth, task, f))


cdef bint passes_on(Growth *growth, Pending *task) noexcept nogil:
    return False


cdef int64_t partition(
    Growth *growth, const Pending *task, const Split *split, int64_t *left_totals
) noexcept nogil:
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef const uint8_t *column = &work.codes[split.feature * growth.n_sorted]
    cdef const uint16_t *members = &work.members[task.start]
    cdef const Row *rows = work.rows.data()
    cdef uint8_t *sides = work.side.data()
    cdef uint8_t goes_left[256]
    cdef int64_t i, row, side
    mark_sides(
        split, problem.n_bins[split.feature], &problem.low[256 * split.feature],
        &problem.high[256 * split.feature], goes_left,
    )
    for i in range(task.end - task.start):
        row = members[i]
        side = goes_left[column[row]]
        sides[row] = side
        left_totals[rows[row].label] += side * rows[row].weight
    return part_members(&work.members[task.start], task.end - task.start, work.side.data(), work.spare.data())


cdef void hand_on(Growth *growth, const Pending *task, Pending *small, Pending *large) noexcept nogil:
    """Give the smaller child orders of its own, and drop rows from the larger one's if it has lost many."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t i, n_large = large.end - large.start
    cdef int32_t feature
    cdef bint small_goes_on, large_drops, small_is_left = small.start == task.start
    if not inherits(problem):
        return
    small_goes_on = not is_terminal(problem, growth.buffer, small.node, small.depth)
    large_drops = (
        small_goes_on or problem.n_classes > 2 or task.n_entries > ENTRIES_PER_ROW * n_large
    ) and not is_terminal(
        problem, growth.buffer, large.node, large.depth
    )
    small.first_entry, small.n_entries = task.first_entry + task.n_entries, <int32_t> (small.end - small.start)
    if large_drops:
        large.n_entries = task.n_entries - small.n_entries if small_goes_on else <int32_t> n_large
    for i in range(task.n_active):
        feature = work.active[task.first_active + i]
        if problem.categorical[feature]:
            continue
        if large_drops and small_goes_on:
            part_order(
                order_of(growth, task, feature), task.n_entries, work.side.data(), small_is_left,
                order_of(growth, small, feature),
            )
        elif small_goes_on:
            copy_side(
                order_of(growth, task, feature), task.n_entries, work.side.data(), small_is_left,
                order_of(growth, small, feature),
            )
        elif large_drops:
            copy_side(
                order_of(growth, task, feature), task.n_entries, work.side.data(), not small_is_left,
                order_of(growth, large, feature),
            )


cdef void close(Growth *growth, const Pending *task) noexcept nogil:
    cdef const Frame *frame = growth.frame
    cdef Workspace *work = growth.work
    cdef int64_t i, row
    for i in range(task.start, task.end):
        row = work.members[i]
        growth.members[growth.first + i] = <uint32_t> origin_of(frame, frame.rows[growth.first + row])
        work.pairs[row] = work.rows[row].weight = 0  # from here on it is on neither side
        work.side[row] = 2
