"""Nodes with many rows: one histogram per feature, and the larger child's is what the smaller leaves.

Threads share the rows of a large node, and the features that are searched.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from kfhe.engine.trees.growth cimport (
    Growth, OpenNode, Problem, RowSet, Splitter, Subtree, Workspace, grow_best_first, grow_depth_first, origin_of, rows_of,
    stays_leaf, sum_cells,
)
from kfhe.engine.trees.histogram cimport add_counts, add_rows, add_up, subtract
from kfhe.engine.trees.partitioner cimport partition_rows
from kfhe.engine.trees.sorted_splitter cimport grow_sorted
from kfhe.engine.trees.splitter cimport (
    Histogram, NodeTotals, Split, bar_for, better, bins_of, cut_at_best, cut_at_random, cut_categories, cut_number,
    mark_sides, scratch_size,
)

cdef enum:
    PARALLEL_CELLS = 32768  # rows times features, or cells of histograms, from which threads are worth their start
    PARALLEL_ROWS = 16384  # rows from which they are for parting them
    CELLS_AT_ONCE = 4  # that are added up in the time that a row takes to be added to its cell
    MOST_BLOCK = 8192  # rows that are read together: what is known of them stays in the cache for all features
    LEAST_BLOCK = 2048  # rows that a thread reads at least, as the histograms of all threads are added up

cdef Splitter BY_HISTOGRAM
BY_HISTOGRAM.defers = defers
BY_HISTOGRAM.search = search
BY_HISTOGRAM.partition = partition
BY_HISTOGRAM.hand_on = hand_on
BY_HISTOGRAM.close = close


cdef void grow_by_histogram(Growth *growth, const OpenNode *root) noexcept nogil:
    """Grow a subtree; nodes of few rows are put off, or grown from sorted rows.

    If leaves are limited, all of it is grown by histograms, best first.
    """
    if growth.max_leaves:
        grow_best_first(growth, root, &BY_HISTOGRAM)
    else:
        grow_depth_first(growth, root, &BY_HISTOGRAM)


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


cdef inline void give_back(Workspace *work, OpenNode *node) noexcept nogil:
    if node.histogram >= 0:
        work.free_slots.push_back(node.histogram)
    node.histogram = -1


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


cdef void build(Growth *growth, const OpenNode *node, const int32_t *features, int64_t n) noexcept nogil:
    """Build a node's histograms of some features, of the rows of all workers."""
    build_here(growth, node, features, n)
    if growth.exchange != NULL:
        sum_features(growth, node, features, n)


cdef void build_here(Growth *growth, const OpenNode *node, const int32_t *features, int64_t n) noexcept nogil:
    """Build a node's histograms of the rows here; threads have histograms of their own, which are added up."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t i, block, n_rows = node.end - node.start
    cdef int n_threads = threads_for(growth, n_rows * n)
    cdef int64_t size = min(<int64_t> MOST_BLOCK, max(n_rows // n_threads, <int64_t> LEAST_BLOCK)), n_blocks
    cdef int thread, n_adding
    if problem.force_parallel:
        size = 1
    n_blocks = (n_rows + size - 1) // size
    n_threads = max(1, min(n_threads, <int> n_blocks))
    cdef vector[int32_t] slots = vector[int32_t](n_threads, node.histogram)
    cdef vector[uint8_t] begun = vector[uint8_t](n_threads)  # by which threads
    if n_threads == 1:
        clear(problem, work, node.histogram, features, n)
        for block in range(n_blocks):
            add_block(growth, node, features, n, node.histogram, block * size, min(n_rows, (block + 1) * size))
        return
    for thread in range(1, n_threads):
        slots[thread] = take_slot(problem, work)
    for block in prange(n_blocks, num_threads=n_threads, schedule="dynamic", chunksize=1):
        if not begun[threadid()]:
            begun[threadid()] = True
            clear(problem, work, slots[threadid()], features, n)
        add_block(growth, node, features, n, slots[threadid()], block * size, min(n_rows, (block + 1) * size))
    if not begun[0]:
        clear(problem, work, node.histogram, features, n)
    n_adding = threads_for(growth, <int64_t> (problem.cells * n * n_threads) // CELLS_AT_ONCE)
    for i in prange(n, num_threads=n_adding, schedule="static"):
        add_threads(problem, work, slots, begun, features[i])
    for thread in range(1, n_threads):
        work.free_slots.push_back(slots[thread])


cdef void add_threads(
    const Problem *problem, Workspace *work, const vector[int32_t] &slots, const vector[uint8_t] &begun, int64_t feature
) noexcept nogil:
    """Add to the first thread's histogram of a feature those of the others that have one."""
    cdef size_t thread
    for thread in range(1, slots.size()):
        if begun[thread]:
            add_feature(problem, work, slots[0], slots[thread], feature, add_up)


cdef void sum_features(Growth *growth, const OpenNode *node, const int32_t *features, int64_t n) noexcept nogil:
    """Add the histograms of some features up over all workers."""
    cdef const Problem *problem = growth.problem
    cdef vector[int32_t] cells
    cdef int64_t i, n_cells, n_counts, place
    cdef int turn
    for turn in range(2):  # copied together, and back
        place = 0
        for i in range(n):
            n_cells = problem.n_bins[features[i]] * problem.n_classes
            n_counts = problem.n_bins[features[i]] if problem.weighted else 0
            if turn == 0:
                cells.resize(place + n_cells + n_counts)
            move(turn, histogram_of(problem, growth.work, node.histogram, features[i]), &cells[place], n_cells)
            if n_counts:
                move(
                    turn, counts_of(problem, growth.work, node.histogram, features[i]), &cells[place + n_cells],
                    n_counts,
                )
            place += n_cells + n_counts
        if turn == 0:
            sum_cells(growth, cells.data(), place)


cdef inline void move(int turn, int32_t *cells, int32_t *copy, int64_t n) noexcept nogil:
    if turn:
        memcpy(cells, copy, n * sizeof(int32_t))
    else:
        memcpy(copy, cells, n * sizeof(int32_t))


cdef void clear(
    const Problem *problem, Workspace *work, int32_t slot, const int32_t *features, int64_t n
) noexcept nogil:
    """Let the histograms of some features begin with zeros."""
    cdef int64_t i, n_bins
    for i in range(n):
        n_bins = problem.n_bins[features[i]]
        memset(histogram_of(problem, work, slot, features[i]), 0, n_bins * problem.n_classes * sizeof(int32_t))
        if problem.weighted:
            memset(counts_of(problem, work, slot, features[i]), 0, n_bins * sizeof(int32_t))


cdef void add_block(
    const Growth *growth, const OpenNode *node, const int32_t *features, int64_t n, int32_t slot, int64_t start,
    int64_t stop,
) noexcept nogil:
    """Add some of a node's rows to histograms, two features at a time."""
    cdef const Problem *problem = growth.problem
    cdef const RowSet *row_set = growth.row_set
    cdef const uint32_t *rows = &row_set.rows[node.start + start]
    cdef const uint8_t *column
    cdef const uint8_t *other_column
    cdef int64_t i, feature, other
    for i in range(0, n, 2):
        feature, other = features[i], features[min(i + 1, n - 1)]
        column, other_column = &row_set.codes[feature * row_set.stride], &row_set.codes[other * row_set.stride]
        add_rows(
            column, other_column, rows, &row_set.classes[node.start + start], &row_set.weights[node.start + start],
            stop - start, problem.n_classes, histogram_of(problem, growth.work, slot, feature),
            histogram_of(problem, growth.work, slot, other),
        )
        if problem.weighted:
            add_counts(column, rows, stop - start, counts_of(problem, growth.work, slot, feature))
            if other != feature:
                add_counts(other_column, rows, stop - start, counts_of(problem, growth.work, slot, other))


cdef inline void add_feature(
    const Problem *problem, Workspace *work, int32_t slot, int32_t other, int64_t feature,
    void (*add)(int32_t *cells, const int32_t *others, int64_t n_cells) noexcept nogil,
) noexcept nogil:
    """Add the histogram of another slot to that of a feature, or take it from there."""
    cdef int64_t n_bins = problem.n_bins[feature]
    add(
        histogram_of(problem, work, slot, feature), histogram_of(problem, work, other, feature),
        n_bins * problem.n_classes,
    )
    if problem.weighted:
        add(counts_of(problem, work, slot, feature), counts_of(problem, work, other, feature), n_bins)


# ---------------------------------------------------------------- the splitter


cdef inline int threads_for(const Growth *growth, int64_t cells) noexcept nogil:
    """Number of threads that share so much work."""
    return growth.n_threads if growth.problem.force_parallel or cells >= PARALLEL_CELLS else 1


cdef bint defers(Growth *growth, OpenNode *node) noexcept nogil:
    """Put nodes of few rows off; or, within a subtree that was put off, go on with them in sorted order."""
    if rows_of(growth, node) > least_rows(growth) or stays_leaf(growth, node):
        return False
    give_back(growth.work, node)
    if growth.deferred_rows:
        growth.subtree.nodes[node.index].stored.left = -2 - <int32_t> growth.deferred.size()
        growth.deferred.push_back(node[0])
    else:
        grow_sorted(growth, node)
    return True


cdef inline int64_t least_rows(const Growth *growth) noexcept nogil:
    """Rows up to which a node is passed on; best first, up to which it has no use for its parent's histograms.

    Nodes that wait keep their histograms only if they have four times as many rows as cells: so all that
    are kept take no more memory than the bins.
    """
    cdef const Problem *problem = growth.problem
    if growth.max_leaves:
        return <int64_t> (4 * problem.cells)
    return growth.deferred_rows if growth.deferred_rows else problem.sorted_rows


cdef void search(
    Growth *growth, OpenNode *node, const NodeTotals *totals, const int32_t *features, int64_t n, Split *best
) noexcept nogil:
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t i
    cdef Split split
    cdef int n_threads = threads_for(growth, <int64_t> (problem.cells * n))
    if node.histogram < 0 or n < problem.n_features:
        node.histogram = take_slot(problem, work) if node.histogram < 0 else node.histogram
        build(growth, node, features, n)
    if n_threads > 1:
        for i in prange(n, num_threads=n_threads, schedule="dynamic", chunksize=1):
            work.splits[i].score = 0
            split_feature(problem, work, node, totals, features[i], threadid(), &work.splits[i])
        for i in range(n):
            if better(work.splits[i], best[0]):
                best[0] = work.splits[i]
    else:
        for i in range(n):
            split.score = bar_for(features[i], best[0])  # what is not better need not be looked at
            split_feature(problem, work, node, totals, features[i], 0, &split)
            if better(split, best[0]):
                best[0] = split
    if growth.exchange != NULL and best.score > 0:
        count_left(growth, node, best)
    if growth.max_leaves and rows_of(growth, node) <= least_rows(growth):
        give_back(work, node)


cdef void count_left(Growth *growth, const OpenNode *node, const Split *split) noexcept nogil:
    """Write down what goes left of the rows of all workers, as histograms tell."""
    cdef const Problem *problem = growth.problem
    cdef Subtree *subtree = growth.subtree
    cdef int64_t b, k, n_classes = problem.n_classes, feature = split.feature, n = 0
    cdef const int32_t *cells = histogram_of(problem, growth.work, node.histogram, feature)
    cdef const int32_t *counts = counts_of(problem, growth.work, node.histogram, feature)
    cdef int64_t *totals
    cdef uint8_t goes_left[256]
    mark_sides(
        split[0], problem.n_bins[feature], &problem.low[256 * feature], &problem.high[256 * feature], goes_left
    )
    subtree.left_totals.resize(subtree.nodes.size() * n_classes)
    subtree.n_left.resize(subtree.nodes.size())
    totals = &subtree.left_totals[node.index * n_classes]
    memset(totals, 0, n_classes * sizeof(int64_t))
    for b in range(problem.n_bins[feature]):
        if goes_left[b]:
            n += counts[b] if problem.weighted else 0
            for k in range(n_classes):
                totals[k] += cells[b * n_classes + k]
    subtree.n_left[node.index] = n


cdef void split_feature(
    const Problem *problem, Workspace *work, const OpenNode *node, const NodeTotals *totals, int64_t feature,
    int thread, Split *split,
) noexcept nogil:
    """Search one feature for a split with a higher score than ``split`` has."""
    cdef Histogram bins = bins_of(
        histogram_of(problem, work, node.histogram, feature), counts_of(problem, work, node.histogram, feature),
        problem.n_bins[feature], problem.n_classes,
    )
    cdef int64_t *left = &work.left[thread * problem.n_classes]
    split.feature, split.categorical = <int32_t> feature, problem.categorical[feature]
    if split.categorical:
        cut_categories(bins, totals[0], &work.scratch[thread * scratch_size(problem.n_classes)], left, split)
    elif problem.rules.random_cuts:
        cut_at_random(bins, cut_number(problem.rules, node.key, feature), totals[0], left, split)
    else:
        cut_at_best(bins, totals[0], left, split)


cdef int64_t partition(
    Growth *growth, const OpenNode *node, const Split *split, int64_t *left_totals
) noexcept nogil:
    cdef const Problem *problem = growth.problem
    cdef RowSet *row_set = growth.row_set
    cdef Workspace *work = growth.work
    cdef int64_t n = node.end - node.start
    cdef uint8_t goes_left[256]
    mark_sides(
        split[0], problem.n_bins[split.feature], &problem.low[256 * split.feature],
        &problem.high[256 * split.feature], goes_left,
    )
    if <int64_t> work.spare_rows.size() < n:
        work.spare_rows.resize(n)
        work.spare_classes.resize(n)
        work.spare_weights.resize(n)
    return partition_rows(
        &row_set.codes[split.feature * row_set.stride], goes_left, n, &row_set.rows[node.start],
        &row_set.classes[node.start], &row_set.weights[node.start], work.spare_rows.data(),
        work.spare_classes.data(), work.spare_weights.data(), left_totals, problem.n_classes,
        growth.n_threads if problem.force_parallel or n >= PARALLEL_ROWS else 1,
    )


cdef void hand_on(Growth *growth, const OpenNode *node, OpenNode *small, OpenNode *large) noexcept nogil:
    """Build the histograms of the smaller child, if the larger one can make use of what they leave."""
    cdef const Problem *problem = growth.problem
    cdef Workspace *work = growth.work
    cdef int64_t f
    small.histogram = -1
    if (
        problem.rules.max_features < problem.n_features
        or rows_of(growth, large) <= least_rows(growth)
        or stays_leaf(growth, large)
    ):
        give_back(work, large)
        return
    small.histogram = take_slot(problem, work)
    build(growth, small, problem.features, problem.n_features)
    for f in range(problem.n_features):
        add_feature(problem, work, large.histogram, small.histogram, f, subtract)


cdef void close(Growth *growth, const OpenNode *node) noexcept nogil:
    cdef const RowSet *row_set = growth.row_set
    cdef int64_t i
    if node.histogram >= 0:
        growth.work.free_slots.push_back(node.histogram)
    for i in range(node.start, node.end):
        growth.members[i] = <uint32_t> origin_of(row_set, row_set.rows[i])
