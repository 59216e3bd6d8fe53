"""Nodes with few rows: sorted once by each feature, and their descendants inherit the order.

A subtree's rows are copied together. Splitting a node then parts each feature's sorted order in
two, so a node costs what its rows cost, however many bins there are.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from kfhe.engine.trees.nodes cimport (
    Buffer, Frame, Pending, Problem, Workspace, add_children, child_key, draw_features, is_terminal, majority,
    mark_sides, origin_of, record, settle_right, totals_of,
)
from kfhe.engine.trees.splitting cimport NodeTotals, Row, Split, better, split_categories, sweep_sorted


cdef void sort_members(
    const uint8_t *codes, const uint16_t *members, int64_t n_members, int64_t n_bins, uint32_t *order
) noexcept nogil:
    """Sort rows by bin, stably; each entry gets its bin above the row's 16 bits."""
    cdef uint32_t starts[257]
    cdef int64_t i
    cdef uint32_t code
    memset(starts, 0, (n_bins + 1) * sizeof(uint32_t))
    for i in range(n_members):
        starts[codes[members[i]] + 1] += 1
    for i in range(n_bins):
        starts[i + 1] += starts[i]
    for i in range(n_members):
        code = codes[members[i]]
        order[starts[code]] = code << 16 | members[i]
        starts[code] += 1


cdef void split_feature_sorted(
    const Problem *problem, Workspace *work, int64_t n_local, const Pending *task, int32_t feature,
    const NodeTotals *totals, bint inherited, Split *best,
) noexcept nogil:
    """Search one feature of a node of few rows; a feature that doesn't vary gives no split."""
    cdef int64_t n = task.end - task.start, i, row, n_bins = problem.n_bins[feature]
    cdef const uint8_t *codes = &work.codes[feature * n_local]
    cdef const uint16_t *members = &work.members[task.start]
    cdef const Row *rows = work.rows.data()
    cdef uint32_t *order
    cdef int32_t *histogram
    cdef int32_t *count_histogram = NULL
    cdef Split split
    # Features in order: what is not better than the best so far need not be looked at.
    cdef double bar = best.score if inherited else 0
    split.score = bar
    split.feature = feature
    split.categorical = problem.categorical[feature]
    if split.categorical:
        histogram = work.category_histogram.data()
        memset(histogram, 0, n_bins * (totals.n_classes + 1) * sizeof(int32_t))
        if problem.weighted:
            count_histogram = &histogram[n_bins * totals.n_classes]
        for i in range(n):
            row = members[i]
            histogram[codes[row] * totals.n_classes + rows[row].label] += rows[row].weight
            if problem.weighted:
                count_histogram[codes[row]] += 1
        split_categories(
            histogram, count_histogram, n_bins, totals, work.scratch.data(), work.left.data(), &split
        )
    else:
        if inherited:
            order = &work.orders[feature * n_local + task.start]
        else:
            order = work.spare_order.data()
            sort_members(codes, members, n, n_bins, order)
        sweep_sorted(order, n, rows, n_bins - 1, totals, work.left.data(), &split)
    if split.score > bar and better(&split, best):
        best[0] = split


cdef bint varies(const uint8_t *codes, const uint16_t *members, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(1, n):
        if codes[members[i]] != codes[members[0]]:
            return True
    return False


cdef void search_sorted(
    const Problem *problem, Workspace *work, int64_t n_local, Pending *task, const NodeTotals *totals, Split *best
) noexcept nogil:
    """Find the best split of a node of few rows; note in the task which features vary in it."""
    cdef int64_t i, n = task.end - task.start, tried = 0
    cdef int32_t feature, first_active = task.first_active
    cdef bint inherited = problem.max_features >= problem.n_features
    best.score = 0
    if not inherited:
        draw_features(problem, task.key, work.drawn)
        for i in range(problem.n_features):
            if i >= problem.max_features and best.score > 0:
                break
            split_feature_sorted(problem, work, n_local, task, work.drawn[i], totals, False, best)
        return
    task.first_active += task.n_active
    cdef int32_t n_active = 0
    cdef const uint32_t *order
    work.active.resize(task.first_active + task.n_active)
    for i in range(task.n_active):
        feature = work.active[first_active + i]
        if problem.categorical[feature]:
            if not varies(&work.codes[feature * n_local], &work.members[task.start], n):
                continue
        else:
            order = &work.orders[feature * n_local + task.start]
            if order[0] >> 16 == order[n - 1] >> 16:
                continue
        work.active[task.first_active + n_active] = feature
        n_active += 1
        split_feature_sorted(problem, work, n_local, task, feature, totals, True, best)
    task.n_active = n_active


ctypedef fused entry_t:
    uint16_t
    uint32_t


cdef int64_t partition_order(entry_t *order, int64_t n, const uint8_t *side, entry_t *spare) noexcept nogil:
    """Move the rows that go left to the front, keeping both sides in order."""
    cdef int64_t i, n_left = 0, n_right = 0
    cdef entry_t entry
    cdef uint8_t left
    for i in range(n):
        entry = order[i]
        left = side[entry & 0xFFFF]
        order[n_left] = entry
        spare[n_right] = entry
        n_left += left
        n_right += 1 - left
    memcpy(&order[n_left], spare, n_right * sizeof(entry_t))
    return n_left


cdef void grow_sorted(
    const Problem *problem, const Frame *frame, Buffer *buffer, Workspace *work, const Pending *root, int32_t *votes
) noexcept nogil:
    """Grow a subtree of few rows."""
    cdef int64_t n = root.end - root.start, first = root.start
    cdef int64_t i, f, left_count, middle, k, row
    cdef int64_t n_classes = problem.n_classes
    cdef uint8_t goes_left[256]
    cdef const uint8_t *column
    cdef int64_t *left_totals
    cdef int64_t side
    cdef bint inherited = problem.max_features >= problem.n_features
    cdef size_t bottom = work.stack.size()
    cdef Pending task, child
    cdef NodeTotals totals
    cdef Split best
    cdef int32_t left, feature, voted
    if <int64_t> work.members.size() < n:
        work.members.resize(n)
        work.spare.resize(n)
        work.spare_order.resize(n)
        work.side.resize(n)
        work.rows.resize(n)
    if <int64_t> work.codes.size() < n * problem.n_features:
        work.codes.resize(n * problem.n_features)
        work.orders.resize(n * problem.n_features)
    for i in range(n):
        work.members[i] = i
        work.rows[i].weight = frame.weights[first + i]
        work.rows[i].label = frame.classes[first + i]
    task = root[0]
    task.start, task.end = 0, n
    task.first_active = task.n_active = 0
    work.active.resize(problem.n_features)
    for f in range(problem.n_features):
        column = &frame.codes[f * frame.stride]
        for i in range(n):
            work.codes[f * n + i] = column[frame.rows[first + i]]
        if inherited and varies(&work.codes[f * n], work.members.data(), n):
            work.active[task.n_active] = f
            task.n_active += 1
            if not problem.categorical[f]:
                sort_members(&work.codes[f * n], work.members.data(), n, problem.n_bins[f], &work.orders[f * n])
    work.stack.push_back(task)
    while work.stack.size() > bottom:
        task = work.stack.back()
        work.stack.pop_back()
        best.score = 0
        if not is_terminal(problem, buffer, task.node, task.depth):
            totals = totals_of(problem, buffer, task.node)
            search_sorted(problem, work, n, &task, &totals, &best)
        if best.score <= 0:
            voted = majority(problem, buffer, task.node)
            for i in range(task.start, task.end):
                votes[origin_of(frame, frame.rows[first + work.members[i]])] = voted
            continue
        record(problem, buffer, task.node, &best, &totals)
        mark_sides(problem, &best, goes_left)
        left = add_children(problem, buffer, task.node)
        left_count = 0
        left_totals = &buffer.totals[left * n_classes]
        column = &work.codes[best.feature * n]
        for i in range(task.start, task.end):
            row = work.members[i]
            side = goes_left[column[row]]
            work.side[row] = side
            left_count += side if problem.weighted else side * work.rows[row].weight
            left_totals[work.rows[row].label] += side * work.rows[row].weight
        buffer.nodes[left].count = left_count
        settle_right(problem, buffer, task.node)
        middle = task.start + partition_order(
            &work.members[task.start], task.end - task.start, work.side.data(), work.spare.data()
        )
        if inherited and not (
            is_terminal(problem, buffer, left, task.depth + 1)
            and is_terminal(problem, buffer, left + 1, task.depth + 1)
        ):
            for i in range(task.n_active):
                feature = work.active[task.first_active + i]
                if not problem.categorical[feature]:
                    partition_order(
                        &work.orders[feature * n + task.start], task.end - task.start,
                        work.side.data(), work.spare_order.data(),
                    )
        for k in range(2):  # the left child is worked on first
            child = task
            child.node = left + 1 - k
            child.depth = task.depth + 1
            child.key = child_key(task.key, 1 - k)
            if k == 0:
                child.start = middle
            else:
                child.end = middle
            work.stack.push_back(child)
