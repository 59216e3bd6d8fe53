"""Nodes with many rows: one histogram per feature, and the larger child's is what the smaller leaves.

The features of a large node are shared out among threads.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from kfhe.engine.trees.histograms cimport add_up, build, build_counts, build_from_lines, build_two, subtract
from kfhe.engine.trees.nodes cimport (
    Frame, Growth, Pending, Problem, Workspace, is_terminal, origin_of, rows_of,
)
from kfhe.engine.trees.partitioning cimport part_rows
from kfhe.engine.trees.shared cimport sum_cells
from kfhe.engine.trees.sorted_nodes cimport grow_sorted
from kfhe.engine.trees.splitter cimport (
    Histogram, NodeTotals, Split, bar_for, better, bins_of, cut_at_best, cut_at_random, cut_categories, cut_number,
    draw_features, mark_sides, scratch_size,
)
from kfhe.engine.trees.subtrees cimport Way, grow_best_first, grow_subtree

cdef enum:
    THREAD_CELLS = 32768  # rows times features from which threads are worth their start
    THREAD_ROWS = 16384  # rows from which they are for parting them
    ROWS_APART = 16  # from one row of a node to the next, from which on lines are read faster than columns

cdef Way BY_HISTOGRAM
BY_HISTOGRAM.passes_on = passes_on
BY_HISTOGRAM.search = search
BY_HISTOGRAM.partition = partition
BY_HISTOGRAM.hand_on = hand_on
BY_HISTOGRAM.close = close


cdef void grow_by_histogram(Growth *growth, const Pending *root) noexcept nogil:
    """Grow a subtree; nodes of few rows are put off as tasks, or grown from sorted orders.

    If leaves are limited, all of it is grown by histograms, best first.
    """
    if growth.max_leaves:
        grow_best_first(growth, root, &BY_HISTOGRAM, growth.max_leaves)
    else:
        grow_subtree(growth, root, &BY_HISTOGRAM)


# ---------------------------------------------------------------- the pool of histograms


cdef int32_t take_slot(const Problem *problem, Workspace *work) noexcept nogil:
    """Take a node's histograms from the pool."""
    cdef int32_t slot = work.n_slots
    if work.free_slots.size():
        slot = work.free_slots.back()
        work.free_slots.pop_back()
    else:
        work.n_slots += 1
        work.histograms.resize(work.n_slots * problem.total_bins * problem.n_classes)
    if problem.weighted and work.count_histograms.size() < <size_t> (work.n_slots * problem.total_bins):
        work.count_histograms.resize(work.n_slots * problem.total_bins)
    return slot


cdef inline void give_back(Workspace *work, int32_t slot) noexcept nogil:
    if slot >= 0:
        work.free_slots.push_back(slot)


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


cdef void build_features(
    const Problem *problem, const Frame *frame, Workspace *work, const Pending *task, int64_t feature, int64_t other
) noexcept nogil:
    """Build the histograms of two features, or of one if both are the same."""
    cdef const uint32_t *rows = &frame.rows[task.start]
    cdef const uint16_t *classes = &frame.classes[task.start]
    cdef const int32_t *weights = &frame.weights[task.start]
    cdef const uint8_t *column = &frame.codes[feature * frame.stride]
    cdef const uint8_t *other_column = &frame.codes[other * frame.stride]
    cdef int64_t n = task.end - task.start, n_bins = problem.n_bins[feature], n_other_bins = problem.n_bins[other]
    cdef int32_t *histogram = histogram_of(problem, work, task.histogram, feature)
    if feature == other:
        build(column, rows, classes, weights, n, problem.n_classes, n_bins, histogram)
    else:
        build_two(
            column, other_column, rows, classes, weights, n, problem.n_classes, n_bins, n_other_bins, histogram,
            histogram_of(problem, work, task.histogram, other),
        )
    if problem.weighted:
        build_counts(column, rows, n, n_bins, counts_of(problem, work, task.histogram, feature))
        if feature != other:
            build_counts(other_column, rows, n, n_other_bins, counts_of(problem, work, task.histogram, other))


cdef inline bint is_scattered(const Growth *growth, const Pending *task) noexcept nogil:
    """Whether a node's rows are so far apart in the columns that they are better read line by line."""
    cdef const Problem *problem = growth.problem
    return (
        problem.lines != NULL
        and growth.frame.origin == NULL
        and not problem.weighted
        and problem.n_rows > ROWS_APART * (task.end - task.start)
    )


cdef inline bint is_shared_by_rows(
    const Growth *growth, const Pending *task, int64_t n_features, int n_threads
) noexcept nogil:
    """Whether threads build histograms of a part of the rows each, rather than of some features each.

    So they are done at the same time however few the features are; but what they find has to be added up.
    """
    cdef const Problem *problem = growth.problem
    cdef int64_t n = task.end - task.start
    return (
        n_threads > 1 and not problem.weighted
        and n * n_features >= n_threads * problem.total_bins * problem.n_classes
    )


cdef void build_by_rows(
    Growth *growth, const Pending *task, const int32_t *features, int64_t n_features, bint scattered, int n_threads
) noexcept nogil:
    """Build the histograms of some features: from lines if rows are scattered, by several threads if that pays."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t f, n = task.end - task.start
    cdef int thread
    cdef vector[int32_t] slots
    if not is_shared_by_rows(growth, task, n_features, n_threads):
        build_part(growth, task, features, n_features, scattered, task.histogram, task.start, task.end)
        return
    slots.push_back(task.histogram)
    for thread in range(1, n_threads):
        slots.push_back(take_slot(problem, work))
    for thread in prange(n_threads, num_threads=n_threads, schedule="static"):
        build_part(
            growth, task, features, n_features, scattered, slots[thread], task.start + thread * n // n_threads,
            task.start + (thread + 1) * n // n_threads,
        )
    for thread in range(1, n_threads):
        for f in range(n_features):
            add_up(
                histogram_of(problem, work, task.histogram, features[f]),
                histogram_of(problem, work, slots[thread], features[f]),
                problem.n_bins[features[f]] * problem.n_classes,
            )
        give_back(work, slots[thread])


cdef void build_part(
    const Growth *growth, const Pending *task, const int32_t *features, int64_t n_features, bint scattered,
    int32_t slot, int64_t start, int64_t stop,
) noexcept nogil:
    """Build histograms of a part of a node's rows."""
    cdef const Problem *problem = growth.problem
    cdef const Frame *frame = growth.frame
    cdef Workspace *work = growth.work
    cdef Pending part = task[0]
    cdef int64_t f
    part.start, part.end, part.histogram = start, stop, slot
    if not scattered:
        for f in range(0, n_features, 2):
            build_features(problem, frame, work, &part, features[f], features[min(f + 1, n_features - 1)])
        return
    for f in range(n_features):
        memset(
            histogram_of(problem, work, slot, features[f]), 0,
            problem.n_bins[features[f]] * problem.n_classes * sizeof(int32_t),
        )
    build_from_lines(
        problem.lines, problem.n_features, &frame.rows[start], &frame.classes[start], &frame.weights[start],
        stop - start, problem.n_classes, features, n_features, problem.offsets,
        histogram_of(problem, work, slot, 0),
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


cdef void sum_features(Growth *growth, const Pending *task, const int32_t *features, int64_t n_features) noexcept nogil:
    """Add the histograms of some features up over all workers, if the rows are on several."""
    cdef const Problem *problem = growth.problem
    cdef vector[int32_t] cells
    cdef int64_t f, n, n_counts, place
    if growth.exchange == NULL:
        return
    for turn in range(2):  # copied together, and back
        place = 0
        for f in range(n_features):
            n = problem.n_bins[features[f]] * problem.n_classes
            n_counts = problem.n_bins[features[f]] if problem.weighted else 0
            if turn == 0:
                cells.resize(place + n + n_counts)
            move(turn, histogram_of(problem, growth.work, task.histogram, features[f]), &cells[place], n)
            if n_counts:
                move(turn, counts_of(problem, growth.work, task.histogram, features[f]), &cells[place + n], n_counts)
            place += n + n_counts
        if turn == 0:
            sum_cells(growth, cells.data(), place)


cdef inline void move(int turn, int32_t *cells, int32_t *copy, int64_t n) noexcept nogil:
    if turn:
        memcpy(cells, copy, n * sizeof(int32_t))
    else:
        memcpy(copy, cells, n * sizeof(int32_t))


# ---------------------------------------------------------------- the way of these nodes


cdef inline int team_of(const Growth *growth, const Pending *task) noexcept nogil:
    """Number of threads that build a node's histograms."""
    cdef int64_t cells = (task.end - task.start) * min(growth.problem.max_features, growth.problem.n_features)
    return growth.n_threads if growth.problem.force_parallel or cells >= THREAD_CELLS else 1


cdef inline int searchers_of(const Growth *growth) noexcept nogil:
    """Number of threads that subtract or search a node's histograms."""
    cdef int64_t cells = growth.problem.total_bins * growth.problem.n_classes
    return growth.n_threads if growth.problem.force_parallel or cells >= THREAD_CELLS else 1


cdef bint passes_on(Growth *growth, Pending *task) noexcept nogil:
    """Put nodes of few rows off as tasks; or, within a task, go on with them in sorted order."""
    if rows_of(growth, task) > least_rows(growth):
        return False
    give_back(growth.work, task.histogram)
    task.histogram = -1
    if growth.task_rows:
        growth.buffer.nodes[task.node].left = -2 - <int32_t> growth.tasks.size()
        growth.tasks.push_back(task[0])
    else:
        grow_sorted(growth, task)
    return True


cdef inline int64_t least_rows(const Growth *growth) noexcept nogil:
    """Rows up to which a node is passed on; best first, up to which it has no use for its parent's histograms.

    Nodes that wait keep their histograms only if they have four times as many rows as cells: so all that
    are kept take no more memory than the bins.
    """
    cdef const Problem *problem = growth.problem
    if growth.max_leaves:
        return 4 * problem.total_bins * problem.n_classes // problem.n_features
    return growth.task_rows if growth.task_rows else problem.sorted_rows


cdef void search(Growth *growth, Pending *task, const NodeTotals *totals, Split *best) noexcept nogil:
    cdef const Problem *problem = growth.problem
    cdef bint build_first = task.histogram < 0
    if build_first:
        task.histogram = take_slot(problem, growth.work)
    if problem.max_features < problem.n_features:
        search_drawn(growth, task, totals, best)
    else:
        if build_first:
            build_all(growth, task)
            sum_features(growth, task, problem.features, problem.n_features)
        search_all(growth, task, totals, searchers_of(growth), best)
    if growth.max_leaves and rows_of(growth, task) <= least_rows(growth):
        give_back(growth.work, task.histogram)
        task.histogram = -1


cdef void search_drawn(
    Growth *growth, const Pending *task, const NodeTotals *totals, Split *best
) noexcept nogil:
    """Try features in the node's random order: ``max_features``, and more until there is a split."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef Split split
    cdef int64_t i, other, n_tried = 0, n_tries = problem.max_features
    cdef bint scattered = is_scattered(growth, task), built
    cdef int n_threads = team_of(growth, task)
    if n_threads > 1 or growth.exchange != NULL:
        n_tried = n_tries
        draw_features(0, n_tries, problem.n_features, problem.seed, problem.tree, task.key, work.drawn.data())
        built = growth.exchange != NULL or scattered or is_shared_by_rows(growth, task, n_tries, n_threads)
        if built:
            build_by_rows(growth, task, work.drawn.data(), n_tries, scattered, n_threads)
            sum_features(growth, task, work.drawn.data(), n_tries)
        scattered = scattered and growth.exchange == NULL  # from here on all workers look at features one by one
        for i in prange(n_tried, num_threads=n_threads, schedule="dynamic", chunksize=1):
            if not built:
                build_features(problem, growth.frame, work, task, work.drawn[i], work.drawn[i])
            work.splits[i].score = 0
            split_feature(problem, work, task, totals, work.drawn[i], threadid(), &work.splits[i])
        for i in range(n_tried):
            if better(work.splits[i], best[0]):
                best[0] = work.splits[i]
    for i in range(n_tried, problem.n_features):
        if i >= n_tries and best.score > 0:
            break
        if i % n_tries == 0:
            draw_features(i, i + n_tries, problem.n_features, problem.seed, problem.tree, task.key, work.drawn.data())
        if scattered:
            if i % n_tries == 0:
                build_by_rows(growth, task, &work.drawn[i], min(n_tries, problem.n_features - i), True, 1)
        elif i >= n_tries or i % 2 == 0:  # two at a time, as long as both are wanted
            other = i + 1 if i + 1 < n_tries else i
            build_features(problem, growth.frame, work, task, work.drawn[i], work.drawn[other])
            sum_features(growth, task, &work.drawn[i], 1)
        split.score = bar_for(work.drawn[i], best[0])
        split_feature(problem, work, task, totals, work.drawn[i], 0, &split)
        if better(split, best[0]):
            best[0] = split


cdef void build_all(Growth *growth, const Pending *task) noexcept nogil:
    """Build the histograms of all features: two at a time, or row by row."""
    cdef const Problem *problem = growth.problem
    cdef int64_t f, last = problem.n_features - 1
    cdef int n_threads = team_of(growth, task)
    if is_scattered(growth, task):
        build_by_rows(growth, task, problem.features, problem.n_features, True, n_threads)
    elif n_threads > 1:
        for f in prange(0, problem.n_features, 2, num_threads=n_threads, schedule="dynamic", chunksize=1):
            build_features(problem, growth.frame, growth.work, task, f, min(f + 1, last))
    else:
        for f in range(0, problem.n_features, 2):
            build_features(problem, growth.frame, growth.work, task, f, min(f + 1, last))


cdef void search_all(
    Growth *growth, const Pending *task, const NodeTotals *totals, int n_threads, Split *best
) noexcept nogil:
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef double best_score = 0
    cdef int64_t f
    if n_threads > 1:
        for f in prange(problem.n_features, num_threads=n_threads, schedule="dynamic", chunksize=1):
            work.splits[f].score = 0
            split_feature(problem, work, task, totals, f, threadid(), &work.splits[f])
    else:
        for f in range(problem.n_features):
            work.splits[f].score = best_score  # what is not better need not be looked at
            split_feature(problem, work, task, totals, f, 0, &work.splits[f])
            best_score = max(best_score, work.splits[f].score)
    for f in range(problem.n_features):
        if better(work.splits[f], best[0]):
            best[0] = work.splits[f]


cdef void split_feature(
    const Problem *problem, Workspace *work, const Pending *task, const NodeTotals *totals, int64_t feature,
    int thread, Split *split,
) noexcept nogil:
    """Search one feature for a split with a higher score than ``split`` has."""
    cdef Histogram bins = bins_of(
        histogram_of(problem, work, task.histogram, feature), counts_of(problem, work, task.histogram, feature),
        problem.n_bins[feature], problem.n_classes,
    )
    cdef int64_t *left = &work.left[thread * problem.n_classes]
    split.feature, split.categorical = <int32_t> feature, problem.categorical[feature]
    if split.categorical:
        cut_categories(bins, totals[0], &work.scratch[thread * scratch_size(problem.n_classes)], left, split)
    elif problem.random_cuts:
        cut_at_random(bins, cut_number(problem.seed, problem.tree, task.key, feature), totals[0], left, split)
    else:
        cut_at_best(bins, totals[0], left, split)


cdef int64_t partition(
    Growth *growth, const Pending *task, const Split *split, int64_t *left_totals
) noexcept nogil:
    cdef const Problem *problem = growth.problem
    cdef Frame *frame = growth.frame
    cdef Workspace *work = growth.work
    cdef int64_t n = task.end - task.start
    cdef int n_threads = growth.n_threads if problem.force_parallel or n >= THREAD_ROWS else 1
    cdef uint8_t goes_left[256]
    mark_sides(
        split[0], problem.n_bins[split.feature], &problem.low[256 * split.feature],
        &problem.high[256 * split.feature], goes_left,
    )
    if <int64_t> work.spare_rows.size() < n:
        work.spare_rows.resize(n)
        work.spare_classes.resize(n)
        work.spare_weights.resize(n)
    return part_rows(
        &frame.codes[split.feature * frame.stride], goes_left, n, &frame.rows[task.start],
        &frame.classes[task.start], &frame.weights[task.start], work.spare_rows.data(),
        work.spare_classes.data(), work.spare_weights.data(), left_totals, problem.n_classes, n_threads,
    )


cdef void hand_on(Growth *growth, const Pending *task, Pending *small, Pending *large) noexcept nogil:
    """Build the histograms of the smaller child, if the larger one can make use of what they leave."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int n_threads = searchers_of(growth)
    cdef int64_t f
    small.histogram = large.histogram = -1
    if (
        problem.max_features < problem.n_features
        or rows_of(growth, large) <= least_rows(growth)
        or is_terminal(problem, growth.buffer, large.node, large.depth)
    ):
        give_back(work, task.histogram)
        return
    large.histogram = task.histogram
    small.histogram = take_slot(problem, work)
    build_all(growth, small)
    sum_features(growth, small, problem.features, problem.n_features)
    if n_threads > 1:
        for f in prange(problem.n_features, num_threads=n_threads, schedule="static"):
            subtract_feature(problem, work, large.histogram, small.histogram, f)
    else:
        for f in range(problem.n_features):
            subtract_feature(problem, work, large.histogram, small.histogram, f)


cdef void close(Growth *growth, const Pending *task) noexcept nogil:
    cdef const Frame *frame = growth.frame
    cdef int64_t i
    give_back(growth.work, task.histogram)
    for i in range(task.start, task.end):
        growth.members[i] = <uint32_t> origin_of(frame, frame.rows[i])
