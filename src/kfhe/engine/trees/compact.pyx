"""Compact trees: nodes of eight bytes, for many rows.

A row's value is replaced by its rank: how many of the thresholds that its feature has in the whole forest are
below it. It is at most a threshold if its rank is at most the threshold's own. So a node is one number,

    left child (32 bits) | 65535 - rank of the threshold (16) | column of ranks (16),

and adding a row's rank to it, shifted by 16, carries into the child if the row goes right. A leaf leads to itself.
For rows with gaps a feature has two columns: in one the rank of a missing value is the lowest, for nodes that send
it left, in the other the highest. Splits by category become several by number.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libcpp.algorithm cimport lower_bound, sort
from libcpp.unordered_set cimport unordered_set
from libcpp.vector cimport vector

from kfhe.engine.trees.category_cuts cimport add_cut_tree
from kfhe.engine.trees.layout cimport LEAF, MISSING_LEFT, Node

import numpy as np

cdef enum:
    MOST_RANKS = 65534
    MOST_COLUMNS = 65536 // LANES
    MOST_GROWTH = 4  # times as many nodes as before categories were cut


@cython.final
cdef class CompactTrees:
    """What `compact` makes of a forest."""

    cdef void rank(
        self, const double *rows, int64_t n_features, int64_t n_rows, uint32_t *ranks
    ) noexcept nogil:
        """Write the ranks of some rows: by groups of LANES rows, in a group by columns, shifted by 16."""
        cdef int64_t group, first, j, feature, width = self.features.shape[0]
        cdef double values[LANES]
        cdef uint32_t *found
        for group in range((n_rows + LANES - 1) // LANES):
            first = group * LANES
            for j in range(width):
                feature = self.features[j]
                found = &ranks[first * width + j * LANES]
                if j > 0 and feature == self.features[j - 1]:
                    fill_gaps(values, found - LANES, self.missing[j], found)
                    continue
                take(&rows[first * n_features + feature], n_features, min(<int64_t> LANES, n_rows - first), values)
                rank_values(
                    &self.thresholds[self.starts[feature]], self.starts[feature + 1] - self.starts[feature],
                    values, found,
                )
                fill_gaps(values, found, self.missing[j], found)

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


cdef inline void take(const double *column, int64_t stride, int64_t n, double *values) noexcept nogil:
    """Copy the next values of a column; if they are too few, the last one stands for the others."""
    cdef int64_t lane
    for lane in range(LANES):
        values[lane] = column[min(lane, n - 1) * stride]


cdef inline void rank_values(
    const double *thresholds, int64_t n_thresholds, const double *values, uint32_t *ranks
) noexcept nogil:
    """Count the thresholds below each value: searches that halve side by side, without a branch."""
    cdef int64_t lane, half, n = n_thresholds
    cdef const double *at[LANES]
    for lane in range(LANES):
        at[lane] = thresholds
    while n > 1:
        half = n // 2
        for lane in range(LANES):
            at[lane] += half * (at[lane][half - 1] < values[lane])
        n -= half
    for lane in range(LANES):
        ranks[lane] = <uint32_t> (at[lane] - thresholds + (at[lane][0] < values[lane])) << 16


cdef inline void fill_gaps(
    const double *values, const uint32_t *ranks, uint32_t missing, uint32_t *filled
) noexcept nogil:
    """Give the values that are missing their rank; the others keep theirs."""
    cdef int64_t lane
    for lane in range(LANES):
        filled[lane] = missing if values[lane] != values[lane] else ranks[lane]


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


cdef vector[vector[double]] thresholds_of(const vector[Node] &nodes) except *:
    """Thresholds of each feature, in order."""
    cdef vector[unordered_set[double]] found
    cdef vector[vector[double]] thresholds
    cdef size_t i, j
    for i in range(nodes.size()):
        if nodes[i].kind != LEAF:
            if nodes[i].feature >= found.size():
                found.resize(nodes[i].feature + 1)
            found[nodes[i].feature].insert(nodes[i].threshold)
    thresholds.resize(found.size())
    for j in range(found.size()):
        thresholds[j].assign(found[j].begin(), found[j].end())
        sort(thresholds[j].begin(), thresholds[j].end())
    return thresholds


cdef inline int64_t side(const Node *node, bint gaps) noexcept nogil:
    """Number that a column would have if each feature had both of its columns."""
    return 2 * node.feature + (gaps and (node.kind & MISSING_LEFT) != 0)


def compact(
    const Node[::1] nodes, const uint64_t[:, ::1] category_sets, const int64_t[::1] tree_nodes,
    const int64_t[::1] tree_sets, bint gaps,
):
    """Return a forest as compact trees, for rows with gaps or without; None if it does not fit into such.

    That is if there is no split, if there are more than 4,096 columns or more than 65,534 thresholds of a feature,
    or if splits by category are too many.
    """
    cdef const uint64_t *sets = &category_sets[0, 0] if category_sets.shape[0] else NULL
    cdef vector[Node] cut
    cdef int64_t t, i, rank
    starts = [0]
    for t in range(tree_nodes.shape[0] - 1):
        add_cut_tree(nodes[tree_nodes[t] : tree_nodes[t + 1]], sets + 4 * tree_sets[t], cut)
        starts.append(cut.size())
    cdef vector[vector[double]] thresholds = thresholds_of(cut)
    sizes = [thresholds[i].size() for i in range(<int64_t> thresholds.size())]
    cdef int64_t[::1] columns = np.zeros(2 * len(sizes), dtype=np.int64)
    for i in range(<int64_t> cut.size()):
        if cut[i].kind != LEAF:
            columns[side(&cut[i], gaps)] = 1
    used = np.flatnonzero(columns)
    too_many = len(used) > MOST_COLUMNS or <int64_t> cut.size() > MOST_GROWTH * nodes.shape[0]
    if not len(used) or too_many or max(sizes) > MOST_RANKS:
        return None
    np.asarray(columns)[used] = np.arange(len(used))
    cdef CompactTrees trees = CompactTrees()
    trees.features = (used // 2).astype(np.int32)
    trees.missing = np.where(used % 2, 0, 65535 << 16).astype(np.uint32)
    trees.thresholds = np.concatenate([thresholds[i] for i in range(len(sizes))])
    trees.starts = np.cumsum([0, *sizes], dtype=np.int64)
    trees.nodes = np.empty(cut.size(), dtype=np.uint64)
    trees.leaves = np.zeros(cut.size(), dtype=np.int32)
    trees.tree_nodes = np.array(starts, dtype=np.int64)
    cdef const Node *node
    cdef const double *own
    for t in range(tree_nodes.shape[0] - 1):
        for i in range(trees.tree_nodes[t], trees.tree_nodes[t + 1]):
            node = &cut[i]
            if node.kind == LEAF:
                trees.nodes[i] = <uint64_t> (i - trees.tree_nodes[t]) << 32
                trees.leaves[i] = node.left
                continue
            own = thresholds[node.feature].data()
            rank = lower_bound(own, own + thresholds[node.feature].size(), node.threshold) - own
            trees.nodes[i] = (
                <uint64_t> node.left << 32 | <uint64_t> (65535 - rank) << 16
                | <uint64_t> (LANES * columns[side(node, gaps)])
            )
    return trees
