"""Compact trees: nodes of eight bytes, for many rows that miss no value.

A row's value is replaced by its rank: how many of the thresholds that its feature has in the whole forest are
below it. It is at most a threshold if its rank is at most the threshold's own. So a node is one number,

    left child (32 bits) | 65535 - rank of the threshold (16) | column of ranks (16),

and adding a row's rank to it, shifted by 16, carries into the child if the row goes right. A leaf leads to itself.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libcpp.algorithm cimport lower_bound, sort
from libcpp.unordered_set cimport unordered_set
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport LEAF, Node

import numpy as np

cdef enum:
    MOST_RANKS = 65534
    MOST_FEATURES = 65536 // LANES


@cython.final
cdef class CompactTrees:
    """What `compact` makes of a forest."""

    cdef void rank(
        self, const double *rows, int64_t n_features, int64_t n_rows, uint32_t *ranks
    ) noexcept nogil:
        """Write the ranks of some rows: by groups of LANES rows, in a group by features, shifted by 16."""
        cdef int64_t group, first, j, width = self.features.shape[0]
        for group in range((n_rows + LANES - 1) // LANES):
            first = group * LANES
            for j in range(width):
                rank_values(
                    &self.thresholds[self.starts[j]], self.starts[j + 1] - self.starts[j],
                    &rows[first * n_features + self.features[j]], n_features, min(<int64_t> LANES, n_rows - first),
                    &ranks[first * width + j * LANES],
                )

    cdef void find_leaves(
        self, int64_t tree, const uint32_t *ranks, int64_t n_rows, int32_t *leaves
    ) noexcept nogil:
        """Number, within a tree, of the leaf that each row falls into; there is room for whole groups."""
        cdef int64_t group, first, width = self.features.shape[0]
        for group in range((n_rows + LANES - 1) // LANES):
            first = group * LANES
            descend(
                &self.nodes[self.tree_nodes[tree]], &self.leaves[self.tree_nodes[tree]],
                &ranks[first * width], &leaves[first],
            )


cdef inline void rank_values(
    const double *thresholds, int64_t n_thresholds, const double *values, int64_t stride, int64_t n_values,
    uint32_t *ranks,
) noexcept nogil:
    """Count the thresholds below each value: searches that halve side by side, without a branch."""
    cdef int64_t lane, half, n = n_thresholds
    cdef double value[LANES]
    cdef const double *at[LANES]
    for lane in range(LANES):
        value[lane] = values[min(lane, n_values - 1) * stride]
        at[lane] = thresholds
    while n > 1:
        half = n // 2
        for lane in range(LANES):
            at[lane] += half * (at[lane][half - 1] < value[lane])
        n -= half
    for lane in range(LANES):
        ranks[lane] = <uint32_t> (at[lane] - thresholds + (at[lane][0] < value[lane])) << 16


cdef inline void descend(
    const uint64_t *nodes, const int32_t *node_leaves, const uint32_t *ranks, int32_t *leaves
) noexcept nogil:
    """Send a group of rows down a tree, until all have reached their leaves."""
    cdef int64_t lane
    cdef uint64_t node, any_split = 1
    cdef uint64_t at[LANES]
    for lane in range(LANES):
        at[lane] = 0
    while any_split:
        any_split = 0
        for lane in range(LANES):
            node = nodes[at[lane]]
            at[lane] = (node + ranks[(node & 0xFFFF) + lane]) >> 32
        for lane in range(LANES):
            node = nodes[at[lane]]
            any_split |= (node >> 16) & 0xFFFF
            at[lane] = (node + ranks[(node & 0xFFFF) + lane]) >> 32
    for lane in range(LANES):
        leaves[lane] = node_leaves[at[lane]]


cdef vector[vector[double]] thresholds_of(const Node[::1] nodes) except *:
    """Thresholds of each feature, in order."""
    cdef vector[unordered_set[double]] found
    cdef vector[vector[double]] thresholds
    cdef int64_t i
    cdef size_t j
    for i in range(nodes.shape[0]):
        if nodes[i].kind != LEAF:
            if nodes[i].feature >= found.size():
                found.resize(nodes[i].feature + 1)
            found[nodes[i].feature].insert(nodes[i].threshold)
    thresholds.resize(found.size())
    for j in range(found.size()):
        thresholds[j].assign(found[j].begin(), found[j].end())
        sort(thresholds[j].begin(), thresholds[j].end())
    return thresholds


def compact(const Node[::1] nodes, const int64_t[::1] tree_nodes):
    """Return a forest without categorical splits as compact trees; None if it does not fit into such.

    That is if there is no split, or if there are more than 4,096 features or more than 65,534 thresholds of one.
    """
    cdef vector[vector[double]] thresholds = thresholds_of(nodes)
    features = [j for j in range(thresholds.size()) if thresholds[j].size()]
    sizes = [thresholds[j].size() for j in features]
    if not 0 < len(features) <= MOST_FEATURES or max(sizes) > MOST_RANKS:
        return None
    cdef int64_t[::1] columns = np.zeros(thresholds.size(), dtype=np.int64)
    cdef CompactTrees trees = CompactTrees()
    trees.features = np.array(features, dtype=np.int32)
    trees.thresholds = np.concatenate([thresholds[j] for j in features])
    trees.starts = np.cumsum([0, *sizes], dtype=np.int64)
    trees.nodes = np.empty(nodes.shape[0], dtype=np.uint64)
    trees.leaves = np.zeros(nodes.shape[0], dtype=np.int32)
    trees.tree_nodes = tree_nodes
    np.asarray(columns)[features] = np.arange(len(features))
    cdef const Node *node
    cdef const double *own
    cdef int64_t t, i, rank
    for t in range(tree_nodes.shape[0] - 1):
        for i in range(tree_nodes[t], tree_nodes[t + 1]):
            node = &nodes[i]
            if node.kind == LEAF:
                trees.nodes[i] = <uint64_t> (i - tree_nodes[t]) << 32
                trees.leaves[i] = node.left
                continue
            own = thresholds[node.feature].data()
            rank = lower_bound(own, own + thresholds[node.feature].size(), node.threshold) - own
            trees.nodes[i] = (
                <uint64_t> node.left << 32 | <uint64_t> (65535 - rank) << 16 | <uint64_t> (LANES * columns[node.feature])
            )
    return trees
