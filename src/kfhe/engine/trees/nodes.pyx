"""Nodes: their names, adding them, counting them out, and writing splits into them."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from kfhe.engine.trees.splitter cimport NodeTotals, Split, cut_of, draw_features, key_of_child

import numpy as np


def child_key(uint64_t key, int side):
    """Return the name of a node's left (0) or right (1) child. The root's name is 1."""
    return key_of_child(key, side)


def drawn_features(int64_t n_features, uint64_t seed, uint64_t tree, uint64_t key):
    """Return the order (int32) in which a node of a tree tries the features."""
    cdef int32_t[::1] features = np.empty(n_features, dtype=np.int32)
    draw_features(0, n_features, n_features, seed, tree, key, &features[0])
    return np.asarray(features)


cdef void clear(Buffer *buffer) noexcept nogil:
    buffer.nodes.clear()
    buffer.totals.clear()
    buffer.category_sets.clear()


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
        raw.cut = cut_of(
            split[0], problem.n_bins[split.feature], &problem.low[256 * split.feature],
            &problem.high[256 * split.feature], &raw.threshold,
        )


cdef int32_t add_children(const Problem *problem, Buffer *buffer, int32_t node) noexcept nogil:
    """Add both children of a node; the left one's rows are still to be counted."""
    cdef int32_t left = add_node(buffer, problem.n_classes, 0)
    add_node(buffer, problem.n_classes, 0)
    buffer.nodes[node].left = left
    return left


cdef void settle_children(
    const Problem *problem, Buffer *buffer, int32_t node, int64_t n_left, int64_t n_of_all
) noexcept nogil:
    """Part a node's rows between its children: the right one has what the left one has not.

    ``n_left`` rows go left here, ``n_of_all`` of those of all workers.
    """
    cdef int64_t k
    cdef int64_t n_classes = problem.n_classes
    cdef const RawNode *parent = &buffer.nodes[node]
    cdef RawNode *left = &buffer.nodes[parent.left]
    cdef RawNode *right = &left[1]
    cdef int64_t *totals = buffer.totals.data()
    left.start = parent.start
    left.end = right.start = parent.start + <uint32_t> n_left
    right.end = parent.end
    left.count = n_of_all
    if not problem.weighted:
        left.count = 0
        for k in range(n_classes):
            left.count += totals[parent.left * n_classes + k]
    right.count = parent.count - left.count
    for k in range(n_classes):
        totals[(parent.left + 1) * n_classes + k] = (
            totals[node * n_classes + k] - totals[parent.left * n_classes + k]
        )
