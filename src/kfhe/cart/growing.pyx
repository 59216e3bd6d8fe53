"""Growing: trees, again and again, on the same binned rows with other weights.

A node with many rows is split by histograms, and the larger child's histogram is what the smaller
one's leaves of the parent's. A node with few rows is copied out and sorted by each feature once;
its descendants inherit the sorted order, so they cost what their rows cost. Large nodes share their
features out among threads; the subtrees below are tasks that run side by side. Every decision is
made on integer sums, so none of this shows in the tree.
"""

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from kfhe.cart.histograms cimport build, build_counts, subtract
from kfhe.cart.philox cimport philox, scaled
from kfhe.cart.splitting cimport NodeTotals, Row, Split, better, scan_histogram, split_categories, sweep_sorted
from kfhe.cart.trees cimport CATEGORICAL, LEAF, MISSING_LEFT, NUMERIC, Node

import numpy as np

cdef enum:
    PARALLEL_CELLS = 32768  # rows times features from which threads are worth their start
    TASKS_PER_THREAD = 8
    MAX_SORTED_ROWS = 8192
    GATHER_ROWS = 65536

# Rows below which sorting beats histograms, per cell of an average histogram. Measured.
cdef double SORTED_ROWS_PER_CELL = 0.4
cdef int64_t MIN_SORTED_ROWS = 48


cdef struct Problem:
    const uint8_t *codes  # bins, one feature after the other
    int64_t n_rows
    int64_t n_features
    int64_t n_classes
    const int32_t *n_bins  # the missing bin counted in
    const uint8_t *categorical
    const double *low  # 256 per feature: the smallest value in each bin
    const double *high
    int64_t *offsets  # where each feature's histogram starts, in bins
    int64_t total_bins
    int64_t max_depth
    int64_t min_split
    int64_t min_leaf
    int64_t max_features
    int64_t sorted_rows
    bint weighted  # weights and counts differ
    bint force_parallel
    uint64_t seed
    uint64_t tree


# The rows of a task: a copy of their bins if that pays, and what splits them, in the order of the nodes.
cdef struct Frame:
    const uint8_t *codes
    int64_t stride
    uint32_t *rows  # positions in codes
    uint16_t *classes
    int32_t *weights
    const uint32_t *origin  # which training row a position is; NULL: the position itself


cdef struct RawNode:
    int32_t left  # -1: a leaf; below: task -2 - left goes on here
    int32_t feature
    int32_t category_set
    bint missing_left
    uint8_t cut
    double threshold
    double gain
    int64_t weight
    int64_t count


cdef struct Pending:
    int32_t node
    int32_t depth
    int64_t start
    int64_t end
    uint64_t key  # names the node by its path from the root
    int32_t histogram  # slot in the pool, -1: none yet
    int32_t first_active  # sorted nodes: their features that still vary
    int32_t n_active


cdef cppclass LargerFirst:
    const Pending *tasks

    bint call "operator()"(int64_t a, int64_t b) noexcept nogil const:
        return this.tasks[a].end - this.tasks[a].start > this.tasks[b].end - this.tasks[b].start


cdef cppclass Buffer:
    vector[RawNode] nodes
    vector[int64_t] totals  # per node, the weight of each class
    vector[uint64_t] category_sets


cdef cppclass Workspace:
    vector[Pending] stack
    vector[int32_t] histograms
    vector[int32_t] count_histograms
    vector[int32_t] free_slots
    int32_t n_slots
    vector[Split] splits
    vector[int64_t] left
    vector[double] scratch
    vector[uint8_t] side
    vector[Row] rows
    vector[uint8_t] codes
    vector[uint32_t] orders
    vector[uint32_t] spare_order
    vector[uint16_t] members
    vector[uint16_t] spare
    vector[int32_t] category_histogram
    vector[int32_t] active
    vector[int32_t] drawn
    vector[uint8_t] frame_codes
    vector[uint32_t] frame_rows
    vector[uint32_t] spare_rows
    vector[uint16_t] spare_classes
    vector[int32_t] spare_weights


cdef inline uint64_t child_key(uint64_t key, int side) noexcept nogil:
    """Key of a child; mixed, so that paths of any length stay apart."""
    cdef uint64_t z = 2 * key + side + <uint64_t> 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * <uint64_t> 0x94D049BB133111EB
    return z ^ (z >> 31)


cdef int32_t add_node(Buffer *buffer, int64_t n_classes, int64_t count) noexcept nogil:
    cdef RawNode node
    memset(&node, 0, sizeof(RawNode))
    node.left = -1
    node.count = count
    buffer.nodes.push_back(node)
    buffer.totals.resize(buffer.nodes.size() * n_classes)
    return <int32_t> buffer.nodes.size() - 1


cdef NodeTotals totals_of(const Problem *problem, Buffer *buffer, int32_t node) noexcept nogil:
    cdef NodeTotals totals
    cdef int64_t k
    totals.classes = &buffer.totals[node * problem.n_classes]
    totals.n_classes = problem.n_classes
    totals.weight = totals.squares = 0
    for k in range(problem.n_classes):
        totals.weight += totals.classes[k]
        totals.squares += totals.classes[k] * totals.classes[k]
    totals.count = buffer.nodes[node].count
    totals.min_count = problem.min_leaf
    totals.weighted = problem.weighted
    return totals


cdef bint is_terminal(const Problem *problem, Buffer *buffer, int32_t node, int64_t depth) noexcept nogil:
    cdef int64_t k, n_present = 0, count = buffer.nodes[node].count
    if depth >= problem.max_depth or count < problem.min_split or count < 2 * problem.min_leaf:
        return True
    for k in range(problem.n_classes):
        n_present += buffer.totals[node * problem.n_classes + k] > 0
    return n_present < 2


cdef int32_t majority(const Problem *problem, Buffer *buffer, int32_t node) noexcept nogil:
    """Class of the largest weight in a node; the first one of equals."""
    cdef int64_t k, best = 0
    cdef const int64_t *totals = &buffer.totals[node * problem.n_classes]
    for k in range(1, problem.n_classes):
        if totals[k] > totals[best]:
            best = k
    return best


cdef inline int64_t origin_of(const Frame *frame, int64_t position) noexcept nogil:
    """Training row at a position of the frame."""
    return position if frame.origin == NULL else frame.origin[position]


cdef void vote_range(
    const Problem *problem, const Frame *frame, Buffer *buffer, const Pending *leaf, int32_t *votes
) noexcept nogil:
    """Let the rows of a leaf vote for its class."""
    cdef int32_t voted = majority(problem, buffer, leaf.node)
    cdef int64_t i
    for i in range(leaf.start, leaf.end):
        votes[origin_of(frame, frame.rows[i])] = voted


cdef void draw_features(const Problem *problem, uint64_t key, vector[int32_t] &features) noexcept nogil:
    """Put the features of a node into a random order that depends on the node alone."""
    cdef uint64_t numbers[4]
    cdef int64_t i, j
    features.resize(problem.n_features)
    for i in range(problem.n_features):
        features[i] = i
    for i in range(problem.n_features - 1):
        if i % 4 == 0:
            philox(problem.seed, 2, i // 4, key, problem.tree, 0, numbers)
        j = i + scaled(numbers[i % 4], problem.n_features - i)
        features[i], features[j] = features[j], features[i]


cdef void mark_sides(const Problem *problem, const Split *split, uint8_t *goes_left) noexcept nogil:
    """Tell for each bin of the split's feature whether it goes left."""
    cdef int b, missing = problem.n_bins[split.feature] - 1
    cdef int cut = 0
    if split.categorical:
        for b in range(256):
            goes_left[b] = (split.left_bins[b // 64] >> (b % 64)) & 1
    else:
        cut = cut_of(problem, split, NULL)
        for b in range(256):
            goes_left[b] = b <= cut
        goes_left[missing] = split.missing_left


cdef int cut_of(const Problem *problem, const Split *split, double *threshold) noexcept nogil:
    """Last bin that goes left, and the threshold: midway between the neighbouring values in the node."""
    cdef const double *low = &problem.low[256 * split.feature]
    cdef const double *high = &problem.high[256 * split.feature]
    cdef int cut = split.last_left
    cdef double middle
    if split.first_right == problem.n_bins[split.feature] - 1:  # values go left, missing ones right
        if threshold != NULL:
            threshold[0] = INFINITY
        return split.first_right - 1
    middle = midpoint(high[cut], low[split.first_right])
    while cut + 1 < split.first_right and high[cut + 1] <= middle:
        cut += 1
    if threshold != NULL:
        # A bin of several values that spans the middle goes right as a whole.
        if low[cut + 1] <= middle:
            middle = midpoint(high[cut], low[cut + 1])
        threshold[0] = middle
    return cut


cdef inline double midpoint(double a, double b) noexcept nogil:
    """Midpoint of a < b that is below b whatever the rounding."""
    cdef double middle = a / 2 + b / 2
    return middle if a <= middle < b else a


cdef void record(const Problem *problem, Buffer *buffer, int32_t node, const Split *split, double base) noexcept nogil:
    """Write a split into its node."""
    cdef RawNode *raw = &buffer.nodes[node]
    cdef int q
    raw.feature = split.feature
    raw.missing_left = split.missing_left
    raw.gain = split.score - base
    if split.categorical:
        raw.category_set = <int32_t> (buffer.category_sets.size() // 4)
        for q in range(4):
            buffer.category_sets.push_back(split.left_bins[q])
    else:
        raw.category_set = -1
        raw.cut = cut_of(problem, split, &raw.threshold)


cdef int32_t add_children(const Problem *problem, Buffer *buffer, int32_t node, int64_t left_count) noexcept nogil:
    """Add both children of a node; the left one's class totals are still to be counted."""
    cdef int32_t left = add_node(buffer, problem.n_classes, left_count)
    add_node(buffer, problem.n_classes, buffer.nodes[node].count - left_count)
    buffer.nodes[node].left = left
    return left


cdef void settle_right(const Problem *problem, Buffer *buffer, int32_t node) noexcept nogil:
    """Work out the right child's class totals from those of its parent and sibling."""
    cdef int64_t k
    cdef int64_t n_classes = problem.n_classes
    cdef int32_t left = buffer.nodes[node].left
    cdef int64_t *totals = buffer.totals.data()
    for k in range(n_classes):
        totals[(left + 1) * n_classes + k] = totals[node * n_classes + k] - totals[left * n_classes + k]


# ---------------------------------------------------------------- nodes with few rows: sorted orders


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
        record(problem, buffer, task.node, &best, <double> totals.squares / <double> totals.weight)
        mark_sides(problem, &best, goes_left)
        left = add_children(problem, buffer, task.node, 0)
        left_count = 0
        for i in range(task.start, task.end):
            row = work.members[i]
            work.side[row] = goes_left[work.codes[best.feature * n + row]]
            if work.side[row]:
                left_count += 1 if problem.weighted else work.rows[row].weight
                buffer.totals[left * n_classes + work.rows[row].label] += work.rows[row].weight
        buffer.nodes[left].count = left_count
        buffer.nodes[left + 1].count = buffer.nodes[task.node].count - left_count
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


# ---------------------------------------------------------------- nodes with many rows: histograms


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
    buffer.nodes[left + 1].count = buffer.nodes[task.node].count - left_count
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
    cdef int64_t threads_from = 1 if problem.force_parallel else PARALLEL_CELLS // problem.n_features
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
        record(problem, buffer, task.node, &best, <double> totals.squares / <double> totals.weight)
        left = add_children(problem, buffer, task.node, 0)
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


cdef void run_task(
    const Problem *problem, const Frame *frame, Buffer *parent, Buffer *buffer, Workspace *work,
    const Pending *task, int32_t *votes,
) noexcept nogil:
    """Grow a put-off subtree into a buffer of its own."""
    cdef Frame local = frame[0]
    cdef Pending root = task[0]
    cdef int64_t i, f, n = task.end - task.start, n_classes = problem.n_classes
    add_node(buffer, n_classes, parent.nodes[task.node].count)
    memcpy(buffer.totals.data(), &parent.totals[task.node * n_classes], n_classes * sizeof(int64_t))
    root.node = 0
    if frame.origin == NULL and n <= GATHER_ROWS and problem.n_rows > 4 * n:
        # Rows far apart in memory are copied together once.
        work.frame_codes.resize(n * problem.n_features)
        work.frame_rows.resize(n)
        for f in range(problem.n_features):
            for i in range(n):
                work.frame_codes[f * n + i] = frame.codes[f * frame.stride + frame.rows[task.start + i]]
        for i in range(n):
            work.frame_rows[i] = frame.rows[task.start + i]
            frame.rows[task.start + i] = i
        local.codes = work.frame_codes.data()
        local.stride = n
        local.origin = work.frame_rows.data()
    grow_by_histogram(problem, &local, buffer, work, &root, 0, NULL, 1, votes)


# ---------------------------------------------------------------- from raw nodes to the forest


cdef struct FlatNode:
    int32_t buffer
    int32_t node
    int32_t left  # in the flat order, -1: a leaf


cdef void flatten(vector[Buffer*] &buffers, vector[FlatNode] &flat, vector[int32_t] &stack) noexcept nogil:
    """Bring the nodes of all buffers into one order that doesn't depend on who grew them."""
    cdef FlatNode item, child
    cdef int32_t i, left
    item.buffer = item.node = 0
    item.left = -1
    flat.clear()
    flat.push_back(item)
    stack.push_back(0)
    while stack.size():
        i = stack.back()
        stack.pop_back()
        left = buffers[flat[i].buffer].nodes[flat[i].node].left
        if left < -1:
            flat[i].buffer = -1 - left
            flat[i].node = 0
            left = buffers[flat[i].buffer].nodes[0].left
        if left < 0:
            continue
        flat[i].left = <int32_t> flat.size()
        child.buffer = flat[i].buffer
        child.left = -1
        child.node = left
        flat.push_back(child)
        child.node = left + 1
        flat.push_back(child)
        stack.push_back(flat[i].left + 1)
        stack.push_back(flat[i].left)


cdef int64_t misses(vector[Buffer*] &buffers, const FlatNode *item, int64_t n_classes) noexcept nogil:
    """Weight of the node's rows that its own majority class gets wrong."""
    cdef const int64_t *totals = &buffers[item.buffer].totals[item.node * n_classes]
    cdef int64_t k, total = 0, top = 0
    for k in range(n_classes):
        total += totals[k]
        top = max(top, totals[k])
    return total - top


cdef void prune(vector[Buffer*] &buffers, vector[FlatNode] &flat, int64_t n_classes, double cp) noexcept nogil:
    """Cut off each subtree that saves less than cp times the root's misses per extra leaf."""
    cdef vector[double] cost
    cdef int32_t i
    cdef double price = cp * misses(buffers, &flat[0], n_classes), alone, kept
    cost.resize(flat.size())
    for i in range(<int32_t> flat.size() - 1, -1, -1):  # children come after their parents
        alone = misses(buffers, &flat[i], n_classes) + price
        cost[i] = alone
        if flat[i].left >= 0:
            kept = cost[flat[i].left] + cost[flat[i].left + 1]
            if alone < kept:
                flat[i].left = -1
            else:
                cost[i] = kept


cdef void keep_best_leaves(vector[Buffer*] &buffers, vector[FlatNode] &flat, int64_t max_leaves) noexcept nogil:
    """Keep the splits that best-first growing makes until it has ``max_leaves`` leaves."""
    cdef vector[int32_t] frontier
    cdef vector[char] kept
    cdef int64_t n_leaves = 1
    cdef int32_t i, j, best
    cdef double gain, best_gain
    kept.resize(flat.size())
    if flat[0].left >= 0:
        frontier.push_back(0)
    while n_leaves < max_leaves and frontier.size():
        best = 0
        best_gain = -INFINITY
        for i in range(<int32_t> frontier.size()):
            gain = buffers[flat[frontier[i]].buffer].nodes[flat[frontier[i]].node].gain
            if gain > best_gain or (gain == best_gain and frontier[i] < frontier[best]):
                best, best_gain = i, gain
        i = frontier[best]
        frontier[best] = frontier.back()
        frontier.pop_back()
        kept[i] = 1
        n_leaves += 1
        for j in range(flat[i].left, flat[i].left + 2):
            if flat[j].left >= 0:
                frontier.push_back(j)
    for i in range(<int32_t> flat.size()):
        if not kept[i]:
            flat[i].left = -1


cdef class Grower:
    """Grows trees on one binned table.

    Parameters
    ----------
    codes : uint8 array of shape (n_features, n_rows)
        The bin of each value.
    n_bins : int32 array of shape (n_features,)
        Number of bins of each feature, the one for missing values counted in.
    categorical : uint8 array of shape (n_features,)
        1 for features whose bins have no order.
    low, high : arrays of shape (n_features, 256)
        Smallest and largest value in each bin of the numeric features.
    labels : int32 array of shape (n_rows,)
        Class of each row.
    n_classes, max_depth, min_samples_split, min_samples_leaf, max_leaf_nodes, max_features : int
        Settings; 0 means no limit for `max_depth` and `max_leaf_nodes`.
    cp : float
        Complexity parameter of the pruning, 0: none.
    seed : int
        For `max_features`.
    n_threads : int
        Number of threads that may be used.
    force_parallel : bool
        Use them on small tables too.
    """

    cdef Problem problem
    cdef const uint8_t[:, ::1] codes
    cdef const int32_t[::1] n_bins
    cdef const uint8_t[::1] categorical
    cdef const double[:, ::1] low, high
    cdef const int32_t[::1] labels
    cdef int64_t max_leaves
    cdef double cp
    cdef int n_threads
    cdef vector[int64_t] offsets
    cdef vector[Workspace*] workspaces
    cdef vector[Buffer*] buffers
    cdef vector[uint32_t] rows
    cdef vector[uint16_t] classes
    cdef vector[int32_t] weights
    cdef vector[FlatNode] flat
    cdef vector[int32_t] flat_stack, flat_places
    # The forest so far
    cdef vector[Node] nodes
    cdef vector[double] gains
    cdef vector[int32_t] leaf_weights
    cdef vector[uint64_t] category_sets
    cdef vector[int64_t] tree_nodes, tree_leaves, tree_sets  # where each tree starts, and the end

    def __cinit__(
        self, codes, n_bins, categorical, low, high, labels, n_classes, *, max_depth, min_samples_split,
        min_samples_leaf, max_leaf_nodes, max_features, cp, seed, n_threads, force_parallel=False,
    ):
        cdef int64_t f
        self.codes, self.n_bins, self.categorical = codes, n_bins, categorical
        self.low, self.high, self.labels = low, high, labels
        self.max_leaves, self.cp = max_leaf_nodes, cp
        self.n_threads = n_threads
        problem = &self.problem
        problem.force_parallel = force_parallel
        problem.codes = &self.codes[0, 0]
        problem.n_features, problem.n_rows = codes.shape
        problem.n_classes = n_classes
        problem.n_bins = &self.n_bins[0]
        problem.categorical = &self.categorical[0]
        problem.low, problem.high = &self.low[0, 0], &self.high[0, 0]
        problem.max_depth = max_depth if max_depth else 1 << 30
        problem.min_split, problem.min_leaf = min_samples_split, min_samples_leaf
        problem.max_features, problem.seed = max_features, seed
        self.offsets.resize(problem.n_features)
        problem.total_bins = 0
        for f in range(problem.n_features):
            self.offsets[f] = problem.total_bins
            problem.total_bins += self.n_bins[f]
        problem.offsets = self.offsets.data()
        cells = problem.total_bins * problem.n_classes / problem.n_features
        problem.sorted_rows = min(MAX_SORTED_ROWS, max(MIN_SORTED_ROWS, int(SORTED_ROWS_PER_CELL * cells)))
        for f in range(max(1, n_threads)):
            self.workspaces.push_back(new Workspace())
            self.workspaces[f].n_slots = 0
            self.workspaces[f].splits.resize(problem.n_features)
            self.workspaces[f].left.resize(n_threads * n_classes)
            self.workspaces[f].scratch.resize(n_threads * scratch_size(problem))
            self.workspaces[f].category_histogram.resize(256 * (n_classes + 1))
        self.buffers.push_back(new Buffer())
        self.tree_nodes.push_back(0)
        self.tree_leaves.push_back(0)
        self.tree_sets.push_back(0)

    def __dealloc__(self):
        cdef size_t i
        for i in range(self.workspaces.size()):
            del self.workspaces[i]
        for i in range(self.buffers.size()):
            del self.buffers[i]

    def __len__(self):
        return self.tree_nodes.size() - 1

    def keep(self, size_t n_trees):
        """Drop all trees but the first ones."""
        if n_trees >= self.tree_nodes.size() - 1:
            return
        self.tree_nodes.resize(n_trees + 1)
        self.tree_leaves.resize(n_trees + 1)
        self.tree_sets.resize(n_trees + 1)
        self.nodes.resize(self.tree_nodes.back())
        self.gains.resize(self.tree_nodes.back())
        self.leaf_weights.resize(self.tree_leaves.back() * self.problem.n_classes)
        self.category_sets.resize(self.tree_sets.back() * 4)

    def grow(self, const int32_t[::1] weights, bint counts, uint64_t tree, bint hard):
        """Grow a tree on the rows of positive weight, add it to the forest, and return its votes for all rows.

        ``counts``: weights are numbers of rows; else each row counts as one in the min_samples settings.
        Hard votes are the class of each row (int32), others the shares of the classes in its leaf.
        """
        cdef bint grown_votes = hard and self.cp == 0 and self.max_leaves == 0
        hard_votes = np.empty(self.problem.n_rows, dtype=np.int32)
        cdef int32_t[::1] classes = hard_votes
        cdef double[:, ::1] shares = None
        self.problem.tree = tree
        self.problem.weighted = not counts
        with nogil:
            self.load(weights)
            self.grow_nodes(&classes[0])
            self.append_tree()
        if hard:
            self.vote_hard(weights, classes, grown_votes)
            return hard_votes
        soft_votes = np.empty((self.problem.n_rows, self.problem.n_classes))
        shares = soft_votes
        self.vote_soft(shares)
        return soft_votes

    cdef void load(self, const int32_t[::1] weights) noexcept nogil:
        """Take over the rows of positive weight, and start the tree with its root."""
        cdef int64_t i, n = 0, n_rows = self.problem.n_rows
        cdef int64_t total = 0
        cdef Buffer *buffer = self.buffers[0]
        self.rows.resize(n_rows)
        self.classes.resize(n_rows)
        self.weights.resize(n_rows)
        buffer.nodes.clear()
        buffer.totals.clear()
        buffer.category_sets.clear()
        add_node(buffer, self.problem.n_classes, 0)
        memset(buffer.totals.data(), 0, self.problem.n_classes * sizeof(int64_t))
        for i in range(n_rows):
            self.rows[n] = i
            self.classes[n] = self.labels[i]
            self.weights[n] = weights[i]
            n += weights[i] > 0
            buffer.totals[self.labels[i]] += weights[i]
            total += <int64_t> (weights[i] > 0) if self.problem.weighted else <int64_t> weights[i]
        self.rows.resize(n)
        buffer.nodes[0].count = total

    cdef void grow_nodes(self, int32_t *votes) noexcept nogil:
        """Grow the raw nodes: in one go, or large nodes first and the subtrees below side by side."""
        cdef int64_t n = <int64_t> self.rows.size(), i
        cdef int n_threads = self.n_threads
        cdef vector[Pending] tasks
        cdef vector[int64_t] by_size
        cdef LargerFirst larger_first
        cdef Frame frame
        cdef Pending root
        cdef int64_t task_rows = 0
        frame.codes = self.problem.codes
        frame.stride = self.problem.n_rows
        frame.rows = self.rows.data()
        frame.classes = self.classes.data()
        frame.weights = self.weights.data()
        frame.origin = NULL
        memset(&root, 0, sizeof(Pending))
        root.end = n
        root.key = 1
        root.histogram = -1
        if not self.problem.force_parallel and n * self.problem.n_features < PARALLEL_CELLS:
            n_threads = 1
        if n_threads > 1:
            task_rows = max(1, n // (TASKS_PER_THREAD * n_threads))
            if not self.problem.force_parallel:
                task_rows = max(task_rows, self.problem.sorted_rows)
        grow_by_histogram(
            &self.problem, &frame, self.buffers[0], self.workspaces[0], &root, task_rows, &tasks, n_threads,
            votes,
        )
        while self.buffers.size() < tasks.size() + 1:
            self.buffers.push_back(new Buffer())
        for i in range(<int64_t> tasks.size()):
            self.buffers[i + 1].nodes.clear()
            self.buffers[i + 1].totals.clear()
            self.buffers[i + 1].category_sets.clear()
            by_size.push_back(i)
        larger_first.tasks = tasks.data()
        sort(by_size.begin(), by_size.end(), larger_first)
        for i in prange(<int64_t> tasks.size(), num_threads=n_threads, schedule="dynamic", chunksize=1):
            run_task(
                &self.problem, &frame, self.buffers[0], self.buffers[by_size[i] + 1], self.workspaces[threadid()],
                &tasks[by_size[i]], votes,
            )

    cdef void append_tree(self) noexcept nogil:
        """Prune the raw tree and add what is left to the forest."""
        cdef int64_t n_classes = self.problem.n_classes, k
        cdef int64_t first = self.tree_nodes.back(), n_leaves = self.tree_leaves.back(), n_sets
        cdef int32_t i, place
        cdef FlatNode item
        cdef RawNode *raw
        cdef Node node
        cdef Buffer *buffer
        flatten(self.buffers, self.flat, self.flat_stack)
        if self.max_leaves > 0:
            keep_best_leaves(self.buffers, self.flat, self.max_leaves)
        if self.cp > 0:
            prune(self.buffers, self.flat, n_classes, self.cp)
        n_sets = self.tree_sets.back()
        self.nodes.resize(first + 1)
        self.gains.resize(first + 1)
        self.flat_stack.push_back(0)
        self.flat_places.push_back(0)
        while self.flat_stack.size():
            i, place = self.flat_stack.back(), self.flat_places.back()
            self.flat_stack.pop_back()
            self.flat_places.pop_back()
            item = self.flat[i]
            buffer = self.buffers[item.buffer]
            raw = &buffer.nodes[item.node]
            memset(&node, 0, sizeof(Node))
            if item.left < 0:
                node.left = <int32_t> (n_leaves - self.tree_leaves.back())
                n_leaves += 1
                for k in range(n_classes):
                    self.leaf_weights.push_back(<int32_t> buffer.totals[item.node * n_classes + k])
                self.nodes[first + place] = node
                self.gains[first + place] = 0
                continue
            node.left = <int32_t> (<int64_t> self.nodes.size() - first)
            node.feature = raw.feature
            node.kind = CATEGORICAL if raw.category_set >= 0 else NUMERIC
            if raw.missing_left:
                node.kind |= MISSING_LEFT
            node.cut = raw.cut
            node.threshold = raw.threshold
            if raw.category_set >= 0:
                node.threshold = n_sets - self.tree_sets.back()
                n_sets += 1
                for k in range(4):
                    self.category_sets.push_back(buffer.category_sets[4 * raw.category_set + k])
            self.nodes[first + place] = node
            self.gains[first + place] = raw.gain
            self.nodes.resize(self.nodes.size() + 2)
            self.gains.resize(self.gains.size() + 2)
            self.flat_stack.push_back(item.left + 1)
            self.flat_places.push_back(node.left + 1)
            self.flat_stack.push_back(item.left)
            self.flat_places.push_back(node.left)
        self.tree_nodes.push_back(<int64_t> self.nodes.size())
        self.tree_leaves.push_back(n_leaves)
        self.tree_sets.push_back(n_sets)

    cdef int64_t leaf_of(self, int64_t row) noexcept nogil:
        """Leaf of a training row in the last tree, among all leaves."""
        cdef size_t last = self.tree_nodes.size() - 2
        cdef const Node *nodes = &self.nodes[self.tree_nodes[last]]
        cdef const Node *node = nodes
        cdef const uint64_t *bits
        cdef uint8_t code
        cdef bint left
        while node.kind != LEAF:
            code = self.problem.codes[node.feature * self.problem.n_rows + row]
            if node.kind & CATEGORICAL:
                bits = &self.category_sets[4 * (self.tree_sets[last] + <int64_t> node.threshold)]
                left = (bits[code // 64] >> (code % 64)) & 1
            elif code == self.problem.n_bins[node.feature] - 1:
                left = node.kind & MISSING_LEFT
            else:
                left = code <= node.cut
            node = &nodes[node.left + (not left)]
        return self.tree_leaves[last] + node.left

    cdef void vote_hard(self, const int32_t[::1] weights, int32_t[::1] votes, bint grown_votes):
        """Let the rows that growing has not seen vote; all rows if the tree was pruned since."""
        cdef int64_t i, k, n_classes = self.problem.n_classes, best
        cdef size_t last = self.tree_nodes.size() - 2
        cdef int64_t first_leaf = self.tree_leaves[last], leaf, n_leaves = self.tree_leaves[last + 1] - first_leaf
        cdef vector[int32_t] leaf_classes
        cdef int n_threads = self.n_threads if self.problem.n_rows >= PARALLEL_CELLS else 1
        leaf_classes.resize(n_leaves)
        for leaf in range(n_leaves):
            best = 0
            for k in range(1, n_classes):
                if (
                    self.leaf_weights[(first_leaf + leaf) * n_classes + k]
                    > self.leaf_weights[(first_leaf + leaf) * n_classes + best]
                ):
                    best = k
            leaf_classes[leaf] = best
        if n_threads == 1:
            for i in range(self.problem.n_rows):
                if not grown_votes or weights[i] == 0:
                    votes[i] = leaf_classes[self.leaf_of(i) - first_leaf]
            return
        for i in prange(self.problem.n_rows, nogil=True, num_threads=n_threads, schedule="static"):
            if not grown_votes or weights[i] == 0:
                votes[i] = leaf_classes[self.leaf_of(i) - first_leaf]

    cdef void vote_soft(self, double[:, ::1] votes):
        """Write each row's class shares in its leaf."""
        cdef int64_t i
        cdef int n_threads = self.n_threads if self.problem.n_rows >= PARALLEL_CELLS else 1
        if n_threads == 1:
            for i in range(self.problem.n_rows):
                self.write_shares(i, &votes[i, 0])
            return
        for i in prange(self.problem.n_rows, nogil=True, num_threads=n_threads, schedule="static"):
            self.write_shares(i, &votes[i, 0])

    cdef void write_shares(self, int64_t row, double *shares) noexcept nogil:
        cdef int64_t k, n_classes = self.problem.n_classes, total = 0
        cdef const int32_t *weights = &self.leaf_weights[self.leaf_of(row) * n_classes]
        for k in range(n_classes):
            total += weights[k]
        for k in range(n_classes):
            shares[k] = <double> weights[k] / <double> total

    def arrays(self):
        """Return the forest as arrays: nodes (bytes), gains, leaf weights, category sets, and where trees start."""
        n_classes = self.problem.n_classes
        return {
            "nodes": copy_bytes(self.nodes.data(), self.nodes.size() * sizeof(Node)),
            "gains": copy_bytes(self.gains.data(), self.gains.size() * sizeof(double)).view(np.float64),
            "leaf_weights": copy_bytes(self.leaf_weights.data(), self.leaf_weights.size() * sizeof(int32_t))
            .view(np.int32).reshape(-1, n_classes),
            "category_sets": copy_bytes(self.category_sets.data(), self.category_sets.size() * sizeof(uint64_t))
            .view(np.uint64).reshape(-1, 4),
            "tree_nodes": np.asarray(self.tree_nodes, dtype=np.int64),
            "tree_leaves": np.asarray(self.tree_leaves, dtype=np.int64),
            "tree_sets": np.asarray(self.tree_sets, dtype=np.int64),
        }


cdef copy_bytes(const void *data, size_t size):
    """Copy memory into an array of bytes."""
    result = np.empty(size, dtype=np.uint8)
    cdef uint8_t[::1] view
    if size:
        view = result
        memcpy(&view[0], data, size)
    return result
