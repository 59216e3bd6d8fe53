"""Compact trees: nodes of eight bytes, for many rows.

A row's value is replaced by its rank: how many of the thresholds that its feature has in the whole forest are
below it. It is at most a threshold if its rank is at most the threshold's own. So a node is one number,

    left child (32 bits) | 65535 - rank of the threshold (16) | column of ranks (16),

and adding a row's rank to it, shifted by 16, carries into the child if the row goes right. A leaf leads to itself.
Rows pass the crown of a tree first, in vectors, and walk from there. Leaves are at very different depths, so after some
steps only those walk on who have not arrived.
For rows with gaps a feature has two columns: in one the rank of a missing value is the lowest, for nodes that send
it left, in the other the highest. Splits by category become several by number.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from libcpp.algorithm cimport lower_bound, sort
from libcpp.unordered_set cimport unordered_set
from libcpp.vector cimport vector

from kfhe.engine.trees.category_cuts cimport add_cut_tree
from kfhe.engine.trees.crown cimport (
    LANES, SLOTS, Crown, crown_of, fill_exits, is_split, node_weights, pass_crown,
)
from kfhe.engine.trees.grid cimport grid_of, rank_values
from kfhe.engine.trees.layout cimport LEAF, MISSING_LEFT, Node

import numpy as np

cdef enum:
    MOST_RANKS = 65534
    MOST_COLUMNS = 65536 // LANES
    MOST_GROWTH = 4  # times as many nodes as before categories were cut
    ROWS_AT_ONCE = 512  # that go down a tree: their ranks stay in the nearest cache
    WALKERS = 16  # rows that walk side by side, so that memory is never waited for alone
    LEAST_STEPS = 3  # before it is looked who is in a leaf


@cython.final
cdef class CompactTrees:
    """What `compact` makes of a forest."""

    cdef void rank(
        self, const double *rows, int64_t n_features, int64_t n_rows, uint16_t *ranks
    ) noexcept nogil:
        """Write the ranks of some rows: by groups of LANES rows, in a group by columns."""
        cdef int64_t group, first, j, feature, width = self.features.shape[0]
        cdef double values[LANES]
        cdef uint16_t *found
        for group in range((n_rows + LANES - 1) // LANES):
            first = group * LANES
            for j in range(width):
                feature = self.features[j]
                found = &ranks[first * width + j * LANES]
                if j > 0 and feature == self.features[j - 1]:
                    fill_gaps(values, found - LANES, self.missing[j], found)
                    continue
                take(&rows[first * n_features + feature], n_features, min(<int64_t> LANES, n_rows - first), values)
                rank_values(&self.grids[feature], &self.thresholds[self.starts[feature]], values, found)
                fill_gaps(values, found, self.missing[j], found)

    cdef void keep(self, const int32_t *kept, int64_t n_kept, uint16_t *ranks) noexcept nogil:
        """Move the ranks of some rows, given in order, to the front; those behind them are as good as any."""
        cdef int64_t i, j, width = self.features.shape[0]
        cdef const uint16_t *source
        cdef uint16_t *target
        for i in range(n_kept):
            source = &ranks[place(kept[i], width)]
            target = &ranks[place(i, width)]
            for j in range(width):
                target[j * LANES] = source[j * LANES]

    cdef void find_leaves(
        self, int64_t tree, const uint16_t *ranks, int64_t n_rows, int32_t *leaves
    ) noexcept nogil:
        """Number, within a tree, of the leaf that each row falls into; there is room for whole groups."""
        cdef int64_t block, start, n, i, width = self.features.shape[0]
        cdef const int32_t *own_leaves = &self.leaves[self.tree_nodes[tree]]
        cdef uint64_t at[ROWS_AT_ONCE]
        for block in range((n_rows + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE):
            start = block * ROWS_AT_ONCE
            n = min(<int64_t> ROWS_AT_ONCE, n_rows - start)
            descend(
                &self.nodes[self.tree_nodes[tree]], &self.crowns[tree], &ranks[start * width], width, n, at
            )
            for i in range(n):
                leaves[start + i] = own_leaves[at[i] >> 32]


cdef inline int64_t place(int64_t row, int64_t width) noexcept nogil:
    """Where the ranks of a row start."""
    return row // LANES * LANES * width + row % LANES


cdef inline void take(const double *column, int64_t stride, int64_t n, double *values) noexcept nogil:
    """Copy the next values of a column; if they are too few, the last one stands for the others."""
    cdef int64_t lane
    for lane in range(LANES):
        values[lane] = column[min(lane, n - 1) * stride]


cdef inline void fill_gaps(
    const double *values, const uint16_t *ranks, uint16_t missing, uint16_t *filled
) noexcept nogil:
    """Give the values that are missing their rank; the others keep theirs."""
    cdef int64_t lane
    for lane in range(LANES):
        filled[lane] = missing if values[lane] != values[lane] else ranks[lane]


cdef void descend(
    const uint64_t *nodes, const Crown *crown, const uint16_t *ranks, int64_t width, int64_t n_rows, uint64_t *at
) noexcept nogil:
    """Find the leaves of some rows: through the crown, some steps for all, then for those who have not arrived."""
    cdef int64_t group, row, lane, n_left = 0, n_steps = max(<int64_t> LEAST_STEPS, crown.depth_below)
    cdef const uint16_t *exits
    cdef uint64_t walkers[WALKERS]
    cdef uint16_t slots[SLOTS * LANES]
    cdef uint16_t left[ROWS_AT_ONCE + WALKERS]
    fill_exits(slots)
    for group in range((n_rows + WALKERS - 1) // WALKERS):
        row = group * WALKERS
        if row % LANES == 0:
            exits = pass_crown(crown, &ranks[row * width], slots)
        for lane in range(WALKERS):
            walkers[lane] = crown.exits[exits[row % LANES + lane]]
        walk(nodes, &ranks[place(row, width)], n_steps, walkers)
        for lane in range(WALKERS):
            at[row + lane] = walkers[lane]
            left[n_left] = <uint16_t> (row + lane)
            n_left += is_split(walkers[lane])
    n_steps = max(<int64_t> LEAST_STEPS, n_steps // 2)
    while n_left > 0:
        n_left = walk_on(nodes, ranks, width, n_steps, left, n_left, at)


cdef inline void walk(
    const uint64_t *nodes, const uint16_t *ranks, int64_t n_steps, uint64_t *walkers
) noexcept nogil:
    """Let neighbours take some steps side by side; who is in a leaf stays there."""
    cdef int64_t step, lane
    for step in range(n_steps):
        for lane in range(WALKERS):
            walkers[lane] = nodes[(walkers[lane] + (<uint64_t> ranks[(walkers[lane] & 0xFFFF) + lane] << 16)) >> 32]


cdef inline int64_t walk_on(
    const uint64_t *nodes, const uint16_t *ranks, int64_t width, int64_t n_steps, uint16_t *left, int64_t n_left,
    uint64_t *at,
) noexcept nogil:
    """Let those who are left, in order, take some more steps; return how many are left then."""
    cdef int64_t group, step, lane, n = 0
    cdef uint64_t walkers[WALKERS]
    cdef const uint16_t *own[WALKERS]
    cdef uint16_t rows[WALKERS]
    for lane in range(WALKERS):
        left[n_left + lane] = left[n_left - 1]  # the last one stands for those who are missing in its group
    for group in range((n_left + WALKERS - 1) // WALKERS):
        for lane in range(WALKERS):
            rows[lane] = left[group * WALKERS + lane]
            walkers[lane] = at[rows[lane]]
            own[lane] = &ranks[place(rows[lane], width)]
        for step in range(n_steps):
            for lane in range(WALKERS):
                walkers[lane] = nodes[(walkers[lane] + (<uint64_t> own[lane][walkers[lane] & 0xFFFF] << 16)) >> 32]
        for lane in range(WALKERS):
            at[rows[lane]] = walkers[lane]
            left[n] = rows[lane]
            n += is_split(walkers[lane])
    return n


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
    const int64_t[::1] tree_sets, const int64_t[::1] tree_leaves, const int64_t[::1] leaf_weights, bint gaps,
):
    """Return a forest as compact trees, for rows with gaps or without; None if it does not fit into such.

    That is if there is no split, if there are more than 2,048 columns or more than 65,534 thresholds of a feature,
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
    trees.missing = np.where(used % 2, 0, 65535).astype(np.uint16)
    trees.thresholds = np.concatenate([thresholds[i] for i in range(len(sizes))])
    trees.starts = np.cumsum([0, *sizes], dtype=np.int64)
    for i in range(len(sizes)):
        trees.grids.push_back(grid_of(thresholds[i]))
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
        trees.crowns.push_back(crown_of(&trees.nodes[trees.tree_nodes[t]], node_weights(
            &cut[trees.tree_nodes[t]], trees.tree_nodes[t + 1] - trees.tree_nodes[t],
            tree_nodes[t + 1] - tree_nodes[t], &leaf_weights[tree_leaves[t]],
        )))
    return trees
