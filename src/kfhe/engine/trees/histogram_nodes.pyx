"""Nodes with many rows: one histogram per feature, and the larger child's is what the smaller leaves.

The features of a large node are shared out among threads.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from kfhe.engine.trees.histograms cimport build, build_counts, subtract
from kfhe.engine.trees.nodes cimport (
    Buffer, Frame, Pending, Problem, Workspace, add_children, child_key, draw_features, is_terminal, majority,
    mark_sides, origin_of, record, settle_right, totals_of,
)
from kfhe.engine.trees.sorted_nodes cimport grow_sorted
from kfhe.engine.trees.splitting cimport NodeTotals, Split, better, scan_histogram, split_categories

cdef enum:
    THREAD_CELLS = 32768  # rows times features from which threads are worth their start


cdef void vote_range(
    const Problem *problem, const Frame *frame, Buffer *buffer, const Pending *leaf, int32_t *votes
) noexcept nogil:
    """Let the rows of a leaf vote for its class."""
    cdef int32_t voted = majority(problem, buffer, leaf.node)
    cdef int64_t i
    for i in range(leaf.start, leaf.end):
        votes[origin_of(frame, frame.rows[i])] = voted


cdef int32_t take_slot(const Problem *problem, Workspace *work) noexcept nogil:
    """Take a histogram from the pool."""
    cdef int32_t slot
    if work.free_slots.size():
        slot = work.free_slots.back()
        work.free_slots.pop_back()
        return slot
    work.n_slots += 1
    work.histograms.resize(work.n_slots * problem.total_bins * problem.n_classes)
    if problem.weighted:
        work.count_histograms.resize(work.n_slots * problem.total_bins)
    return work.n_slots - 1


cdef inline int32_t *histogram_of(
    const Problem *problem, Workspace *work, int32_t slot, int64_t feature
) noexcept nogil:
    return &work.histograms[(slot * problem.total_bins + problem.offsets[feature]) * problem.n_classes]


cdef inline int32_t *counts_of(
    const Problem *problem, Workspace *work, int32_t slot, int64_t feature
) noexcept nogil:
    if not problem.weighted:
        return NULL
    return &work.count_histograms[slot * problem.total_bins + problem.offsets[feature]]


cdef void build_feature(
    const Problem *problem, const Frame *frame, Workspace *work, const Pending *task, int64_t feature
) noexcept nogil:
    cdef const uint8_t *column = &frame.codes[feature * frame.stride]
    cdef int64_t n = task.end - task.start
    build(
        column, &frame.rows[task.start], &frame.classes[task.start], &frame.weights[task.start], n,
        problem.n_classes, problem.n_bins[feature], histogram_of(problem, work, task.histogram, feature),
    )
    if problem.weighted:
        build_counts(
            column, &frame.rows[task.start], n, problem.n_bins[feature],
            counts_of(problem, work, task.histogram, feature),
        )


cdef void subtract_feature(
    const Problem *problem, Workspace *work, int32_t slot, int32_t other, int64_t feature
) noexcept nogil:
    cdef int64_t n_bins = problem.n_bins[feature]
    subtract(
        histogram_of(problem, work, slot, feature), histogram_of(problem, work, other, feature),
        n_bins * problem.n_classes,
    )
    if problem.weighted:
        subtract(counts_of(problem, work, slot, feature), counts_of(problem, work, other, feature), n_bins)


cdef void split_feature(
    const Problem *problem, Workspace *work, const Pending *task, const NodeTotals *totals, int64_t feature,
    int64_t *left, double *scratch, Split *split,
) noexcept nogil:
    """Search one feature for a split with a higher score than ``split`` has."""
    cdef const int32_t *histogram = histogram_of(problem, work, task.histogram, feature)
    cdef const int32_t *counts = counts_of(problem, work, task.histogram, feature)
    split.feature = feature
    split.categorical = problem.categorical[feature]
    if split.categorical:
        split_categories(histogram, counts, problem.n_bins[feature], totals, scratch, left, split)
    else:
        scan_histogram(histogram, counts, problem.n_bins[feature], totals, left, split)


cdef int64_t scratch_size(const Problem *problem) noexcept nogil:
    return 256 * (problem.n_classes + 2) + problem.n_classes * (problem.n_classes + 3)


cdef void search_histograms(
    const Problem *problem, const Frame *frame, Workspace *work, const Pending *task, const NodeTotals *totals,
    bint build_first, int n_threads, Split *best,
) noexcept nogil:
    """Find the best split of a node of many rows."""
    cdef int64_t f, i
    cdef int64_t *left = work.left.data()
    cdef double *scratch = work.scratch.data()
    cdef int64_t n_classes = problem.n_classes, size = scratch_size(problem)
    cdef double best_score = 0
    best.score = 0
    if problem.max_features < problem.n_features:
        draw_features(problem, task.key, work.drawn)
        for i in range(problem.n_features):
            if i >= problem.max_features and best.score > 0:
                break
            f = work.drawn[i]
            build_feature(problem, frame, work, task, f)
            work.splits[f].score = 0
            split_feature(problem, work, task, totals, f, left, scratch, &work.splits[f])
            if better(&work.splits[f], best):
                best[0] = work.splits[f]
        return
    if n_threads > 1:
        for f in prange(problem.n_features, num_threads=n_threads, schedule="dynamic", chunksize=1):
            if build_first:
                build_feature(problem, frame, work, task, f)
            work.splits[f].score = 0
            split_feature(
                problem, work, task, totals, f, left + threadid() * n_classes, scratch + threadid() * size, &work.splits[f]
            )
    else:
        for f in range(problem.n_features):
            if build_first:
                build_feature(problem, frame, work, task, f)
            work.splits[f].score = best_score  # what is not better need not be looked at
            split_feature(problem, work, task, totals, f, left, scratch, &work.splits[f])
            best_score = max(best_score, work.splits[f].score)
    for f in range(problem.n_features):
        if better(&work.splits[f], best):
            best[0] = work.splits[f]


cdef int64_t partition_rows(
    const Problem *problem, Frame *frame, Buffer *buffer, Workspace *work, const Pending *task,
    const Split *split, int32_t left,
) noexcept nogil:
    """Move the rows that go left to the front, and count them into the left child."""
    cdef uint8_t goes_left[256]
    cdef const uint8_t *column = &frame.codes[split.feature * frame.stride]
    cdef int64_t i, n = task.end - task.start, n_left = task.start, n_right = 0, left_count = 0
    cdef int64_t *totals = &buffer.totals[left * problem.n_classes]
    cdef uint8_t side
    mark_sides(problem, split, goes_left)
    if <int64_t> work.spare_rows.size() < n:
        work.spare_rows.resize(n)
        work.spare_classes.resize(n)
        work.spare_weights.resize(n)
    cdef uint32_t *rows = work.spare_rows.data()
    cdef uint16_t *classes = work.spare_classes.data()
    cdef int32_t *weights = work.spare_weights.data()
    for i in range(task.start, task.end):
        side = goes_left[column[frame.rows[i]]]
        rows[n_right] = frame.rows[i]
        classes[n_right] = frame.classes[i]
        weights[n_right] = frame.weights[i]
        totals[classes[n_right]] += weights[n_right] * side
        left_count += side if problem.weighted else weights[n_right] * side
        frame.rows[n_left] = rows[n_right]
        frame.classes[n_left] = classes[n_right]
        frame.weights[n_left] = weights[n_right]
        n_left += side
        n_right += not side
    memcpy(&frame.rows[n_left], rows, n_right * sizeof(uint32_t))
    memcpy(&frame.classes[n_left], classes, n_right * sizeof(uint16_t))
    memcpy(&frame.weights[n_left], weights, n_right * sizeof(int32_t))
    buffer.nodes[left].count = left_count
    settle_right(problem, buffer, task.node)
    return n_left


cdef void grow_by_histogram(
    const Problem *problem, Frame *frame, Buffer *buffer, Workspace *work, const Pending *root,
    int64_t task_rows, vector[Pending] *tasks, int n_threads, int32_t *votes,
) noexcept nogil:
    """Grow a subtree; nodes of at most ``task_rows`` rows are put off as tasks."""
    cdef size_t bottom = work.stack.size()
    cdef Pending task, small, large
    cdef NodeTotals totals
    cdef Split best
    cdef int64_t i, f, middle
    cdef int32_t left
    cdef bint subtracts = problem.max_features >= problem.n_features
    cdef int64_t threads_from = 1 if problem.force_parallel else THREAD_CELLS // problem.n_features
    cdef int team
    work.stack.push_back(root[0])
    while work.stack.size() > bottom:
        task = work.stack.back()
        work.stack.pop_back()
        if is_terminal(problem, buffer, task.node, task.depth):
            vote_range(problem, frame, buffer, &task, votes)
            if task.histogram >= 0:
                work.free_slots.push_back(task.histogram)
            continue
        if task.end - task.start <= task_rows:
            if task.histogram >= 0:
                work.free_slots.push_back(task.histogram)
                task.histogram = -1
            buffer.nodes[task.node].left = -2 - <int32_t> tasks.size()
            tasks.push_back(task)
            continue
        if task_rows == 0 and task.end - task.start <= problem.sorted_rows:
            if task.histogram >= 0:
                work.free_slots.push_back(task.histogram)
            grow_sorted(problem, frame, buffer, work, &task, votes)
            continue
        totals = totals_of(problem, buffer, task.node)
        team = n_threads if task.end - task.start >= threads_from else 1
        if task.histogram < 0:
            task.histogram = take_slot(problem, work)
            search_histograms(problem, frame, work, &task, &totals, True, team, &best)
        else:
            search_histograms(problem, frame, work, &task, &totals, False, team, &best)
        if best.score <= 0:
            vote_range(problem, frame, buffer, &task, votes)
            work.free_slots.push_back(task.histogram)
            continue
        record(problem, buffer, task.node, &best, &totals)
        left = add_children(problem, buffer, task.node)
        middle = partition_rows(problem, frame, buffer, work, &task, &best, left)
        small = large = task
        small.depth = large.depth = task.depth + 1
        if middle - task.start <= task.end - middle:
            small.node, large.node = left, left + 1
            small.end = large.start = middle
            small.key, large.key = child_key(task.key, 0), child_key(task.key, 1)
        else:
            small.node, large.node = left + 1, left
            small.start = large.end = middle
            small.key, large.key = child_key(task.key, 1), child_key(task.key, 0)
        small.histogram = large.histogram = -1
        if (
            subtracts
            and large.end - large.start > (task_rows if task_rows else problem.sorted_rows)
            and not is_terminal(problem, buffer, large.node, large.depth)
        ):
            large.histogram = task.histogram
            small.histogram = take_slot(problem, work)
            if team > 1:
                for f in prange(problem.n_features, num_threads=team, schedule="dynamic", chunksize=1):
                    build_feature(problem, frame, work, &small, f)
                    subtract_feature(problem, work, large.histogram, small.histogram, f)
            else:
                for f in range(problem.n_features):
                    build_feature(problem, frame, work, &small, f)
                    subtract_feature(problem, work, large.histogram, small.histogram, f)
        else:
            work.free_slots.push_back(task.histogram)
        # The small child first: then no more histograms wait than there are halvings of the rows.
        work.stack.push_back(large)
        work.stack.push_back(small)
