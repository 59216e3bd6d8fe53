"""Nodes: adding them, counting them out, and writing splits into them."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from kfhe.engine.philox cimport philox, scaled
from kfhe.engine.trees.splitting cimport NodeTotals, Split


cdef uint64_t child_key(uint64_t key, int side) noexcept nogil:
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
        for b in range(missing + 1):
            goes_left[b] = (split.left_bins[b // 64] >> (b % 64)) & 1
    else:
        cut = cut_of(problem, split, NULL)
        for b in range(missing):
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


cdef void record(
    const Problem *problem, Buffer *buffer, int32_t node, const Split *split, const NodeTotals *totals
) noexcept nogil:
    """Write a split into its node."""
    cdef RawNode *raw = &buffer.nodes[node]
    cdef int q
    raw.feature = split.feature
    raw.missing_left = split.missing_left
    raw.gain = split.score - <double> totals.squares / <double> totals.weight
    if split.categorical:
        raw.category_set = <int32_t> (buffer.category_sets.size() // 4)
        for q in range(4):
            buffer.category_sets.push_back(split.left_bins[q])
    else:
        raw.category_set = -1
        raw.cut = cut_of(problem, split, &raw.threshold)


cdef int32_t add_children(const Problem *problem, Buffer *buffer, int32_t node) noexcept nogil:
    """Add both children of a node; the left one's rows are still to be counted."""
    cdef int32_t left = add_node(buffer, problem.n_classes, 0)
    add_node(buffer, problem.n_classes, 0)
    buffer.nodes[node].left = left
    return left


cdef void settle_right(const Problem *problem, Buffer *buffer, int32_t node) noexcept nogil:
    """Work out the right child's count and class totals from those of its parent and sibling."""
    cdef int64_t k
    cdef int64_t n_classes = problem.n_classes
    cdef int32_t left = buffer.nodes[node].left
    cdef int64_t *totals = buffer.totals.data()
    buffer.nodes[left + 1].count = buffer.nodes[node].count - buffer.nodes[left].count
    for k in range(n_classes):
        totals[(left + 1) * n_classes + k] = totals[node * n_classes + k] - totals[left * n_classes + k]
