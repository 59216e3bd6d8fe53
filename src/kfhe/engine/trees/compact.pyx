"""Compact trees: nodes of eight bytes, for many rows.

A row's value is replaced by its rank: the number of thresholds of its feature, in the whole forest, that are below it.
A value is at most a threshold if its rank is at most that of the threshold. So a node is one number,

    left child (32 bits) | 65535 - rank of the threshold (16) | column of ranks (16),

and adding a row's rank to it, shifted by 16, carries into the child if the row goes right. A leaf leads to itself.
Rows pass the top splits of a tree first, in vectors, and walk down from there. Leaves are at very different depths, so
after some steps only the rows that have not arrived continue.
For rows with missing values, a feature has two columns. The rank of a missing value is the lowest in one of them, for
nodes that send it left, and the highest in the other. Categorical splits become several numeric ones.
"""

cimport cython
from cython.parallel cimport prange
from libc.math cimport isinf
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libcpp.algorithm cimport lower_bound, unique
from libcpp.vector cimport vector

from kfhe.engine.sorting cimport sort_numbers
from kfhe.engine.trees.layout cimport CATEGORICAL, LEAF, MISSING_LEFT, NUMERIC, Node
from kfhe.engine.trees.top_splits cimport (
    LANES, SLOTS, TopSplits, fill_exits, is_split, node_weights, pass_top, top_splits_of,
)

import numpy as np

cdef enum:
    MOST_RANKS = 65534
    MOST_COLUMNS = 65536 // LANES
    MOST_GROWTH = 4  # maximum growth of the number of nodes by categorical splits
    MOST_CELLS = 4096  # of a lookup table
    MOST_COUNTS = 1 << 24  # maximum of trees times features, for which splits are counted
    ROWS_AT_ONCE = 512  # rows whose ranks fit into the nearest cache
    WALKERS = 16  # rows that walk down at a time, to hide the latency of memory
    LEAST_STEPS = 3  # before the first check for rows that have arrived


@cython.final
cdef class CompactTrees:
    """The result of `compact`."""

    cdef void rank(
        self, const double *rows, int64_t n_features, int64_t n_rows, uint16_t *ranks
    ) noexcept nogil:
        """Write the ranks of some rows: in groups of LANES rows, by column within a group."""
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
                rank_values(&self.lookups[feature], &self.thresholds[self.starts[feature]], values, found)
                fill_gaps(values, found, self.missing[j], found)

    cdef void keep(self, const int32_t *kept, int64_t n_kept, uint16_t *ranks) noexcept nogil:
        """Move the ranks of some rows, in order, to the front; those behind are padding."""
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
        """Number of each row's leaf in a tree; there is room for whole groups."""
        cdef int64_t block, start, n, i, width = self.features.shape[0]
        cdef const int32_t *own_leaves = &self.leaves[self.tree_nodes[tree]]
        cdef uint64_t at[ROWS_AT_ONCE]
        for block in range((n_rows + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE):
            start = block * ROWS_AT_ONCE
            n = min(<int64_t> ROWS_AT_ONCE, n_rows - start)
            descend(
                &self.nodes[self.tree_nodes[tree]], &self.tops[tree], &ranks[start * width], width, n, at
            )
            for i in range(n):
                leaves[start + i] = own_leaves[at[i] >> 32]


cdef inline int64_t place(int64_t row, int64_t width) noexcept nogil:
    """Position of a row's ranks."""
    return row // LANES * LANES * width + row % LANES


cdef inline void take(const double *column, int64_t stride, int64_t n, double *values) noexcept nogil:
    """Copy the next values of a column; if there are too few, the last one is repeated."""
    cdef int64_t lane
    for lane in range(LANES):
        values[lane] = column[min(lane, n - 1) * stride]


cdef inline void fill_gaps(
    const double *values, const uint16_t *ranks, uint16_t missing, uint16_t *filled
) noexcept nogil:
    """Set the rank of missing values."""
    cdef int64_t lane
    for lane in range(LANES):
        filled[lane] = missing if values[lane] != values[lane] else ranks[lane]


cdef void descend(
    const uint64_t *nodes, const TopSplits *top, const uint16_t *ranks, int64_t width, int64_t n_rows, uint64_t *at
) noexcept nogil:
    """Find the leaves of some rows: the top splits, some steps for all rows, then only those that have not arrived."""
    cdef int64_t group, row, lane, n_left = 0, n_steps = max(<int64_t> LEAST_STEPS, top.depth_below)
    cdef const uint16_t *exits
    cdef uint64_t walkers[WALKERS]
    cdef uint16_t slots[SLOTS * LANES]
    cdef uint16_t left[ROWS_AT_ONCE + WALKERS]
    fill_exits(slots)
    for group in range((n_rows + WALKERS - 1) // WALKERS):
        row = group * WALKERS
        if row % LANES == 0:
            exits = pass_top(top, &ranks[row * width], slots)
        for lane in range(WALKERS):
            walkers[lane] = top.exits[exits[row % LANES + lane]]
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
    """Let adjacent rows take some steps together; rows in a leaf stay there."""
    cdef int64_t step, lane
    for step in range(n_steps):
        for lane in range(WALKERS):
            walkers[lane] = nodes[(walkers[lane] + (<uint64_t> ranks[(walkers[lane] & 0xFFFF) + lane] << 16)) >> 32]


cdef inline int64_t walk_on(
    const uint64_t *nodes, const uint16_t *ranks, int64_t width, int64_t n_steps, uint16_t *left, int64_t n_left,
    uint64_t *at,
) noexcept nogil:
    """Let the remaining rows, in order, take some more steps; return how many remain."""
    cdef int64_t group, step, lane, n = 0
    cdef uint64_t walkers[WALKERS]
    cdef const uint16_t *own[WALKERS]
    cdef uint16_t rows[WALKERS]
    for lane in range(WALKERS):
        left[n_left + lane] = left[n_left - 1]  # the last row fills up its group
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


# ---------------------------------------------------------------- ranks
#
# A value is only compared with the few thresholds of its cell; cells have equal width. Rounding does no harm, because
# values and thresholds in a higher cell are higher. For each cell, the same number of thresholds is compared as in the
# fullest cell, starting with its first one, or an earlier one if there are too few.


cdef inline int64_t cell_of(const Lookup *lookup, double value) noexcept nogil:
    """Cell of a value, which grows with the value. NaN is in the first one."""
    cdef double cell = (value - lookup.low) * lookup.scale
    cell = cell if cell > 0 else 0
    return <int64_t> (cell if cell < lookup.last else lookup.last)


cdef inline void rank_values(
    const Lookup *lookup, const double *thresholds, const double *values, uint16_t *ranks
) noexcept nogil:
    """Count the thresholds below each value, by binary searches in parallel, without branches."""
    cdef int64_t lane, half, n = lookup.most
    cdef const double *at[LANES]
    for lane in range(LANES):
        at[lane] = thresholds + lookup.first[cell_of(lookup, values[lane])]
    while n > 1:
        half = n // 2
        for lane in range(LANES):
            at[lane] += half * (at[lane][half - 1] < values[lane])
        n -= half
    for lane in range(LANES):
        ranks[lane] = <uint16_t> (at[lane] - thresholds + (at[lane][0] < values[lane]))


cdef Lookup lookup_of(const vector[double] &thresholds) noexcept nogil:
    """Lookup table for the sorted thresholds of a feature."""
    cdef Lookup lookup
    cdef int64_t i, cell, n = thresholds.size(), n_cells = 1, n_finite = n
    cdef vector[int64_t] filled
    while n_cells < min(n, <int64_t> MOST_CELLS):
        n_cells *= 2
    while n_finite > 1 and isinf(thresholds[n_finite - 1]):
        n_finite -= 1
    lookup.low = thresholds[0] if n else 0
    lookup.last = <double> (n_cells - 1)
    lookup.scale = lookup.last / (thresholds[n_finite - 1] - lookup.low) if n_finite > 1 else 0
    filled.resize(n_cells + 1)
    for i in range(n):
        filled[cell_of(&lookup, thresholds[i]) + 1] += 1
    lookup.most = 0
    for cell in range(n_cells):
        lookup.most = max(lookup.most, filled[cell + 1])
        filled[cell + 1] += filled[cell]
    for cell in range(n_cells):
        lookup.first.push_back(<uint16_t> max(min(filled[cell], n - lookup.most), <int64_t> 0))
    return lookup


# ---------------------------------------------------------------- splits by category
#
# A split by a set of categories becomes several numeric ones with the same effect. In the order of their codes, the
# categories alternate between left and right. A binary search over the places where the side changes ends at one where
# the categories before it go left and those after it right. A missing value is before or after all categories,
# depending on whether it goes left or right.


cdef void cut_tree(const Node *tree, int64_t n_nodes, const uint64_t *sets, vector[Node] &nodes) noexcept nogil:
    """Copy a tree without its categorical splits; nodes keep their positions, and new ones are appended."""
    cdef int64_t i, n_cuts
    cdef double cuts[257]
    nodes.assign(tree, tree + n_nodes)
    for i in range(n_nodes):
        if tree[i].kind & CATEGORICAL:
            n_cuts = find_cuts(&sets[4 * <int64_t> tree[i].threshold], cuts)
            cut(nodes, i, cuts, n_cuts, tree[i].left)


cdef int64_t find_cuts(const uint64_t *bits, double *cuts) noexcept nogil:
    """Find the last codes before the side changes, and which side is last."""
    cdef int64_t code, n = 0
    cdef bint left = True, is_left
    for code in range(256):
        is_left = (bits[code // 64] >> (code % 64)) & 1
        if is_left != left:
            cuts[n] = code - 1
            n += 1
        left = is_left
    if left:
        cuts[n] = 255
        n += 1
    return n


cdef void cut(
    vector[Node] &nodes, int64_t place, const double *cuts, int64_t n_cuts, int32_t left
) noexcept nogil:
    """Make a node a search through an odd number of cuts, whose last one leads to left and left + 1."""
    cdef int64_t middle = n_cuts // 4 * 2 + 1 if n_cuts > 1 else 0  # where the side changes to the left
    cdef int64_t children = nodes.size()
    nodes[place].kind = nodes[place].kind & ~CATEGORICAL | NUMERIC
    nodes[place].threshold = cuts[middle]
    nodes[place].left = left
    if n_cuts == 1:
        return
    nodes[place].left = <int32_t> children
    nodes.push_back(nodes[place])
    nodes.push_back(nodes[place])
    cut(nodes, children, cuts, middle, left)
    cut(nodes, children + 1, cuts + middle + 1, n_cuts - middle - 1, left)


# ---------------------------------------------------------------- all trees


cdef void fill_thresholds(
    const vector[vector[Node]] &trees, vector[vector[double]] &thresholds, int n_threads
) noexcept nogil:
    """Find the sorted thresholds of each feature."""
    cdef int64_t i, f, n_features = <int64_t> thresholds.size(), n_trees = <int64_t> trees.size()
    cdef vector[int64_t] places = vector[int64_t](n_trees * n_features)  # of each tree among the others
    cdef int64_t t, n
    for t in prange(n_trees, num_threads=n_threads, schedule="dynamic"):
        count_splits(trees[t], &places[t * n_features])
    for f in range(n_features):
        n = 0
        for t in range(n_trees):
            i = places[t * n_features + f]
            places[t * n_features + f] = n
            n = n + i
        thresholds[f].resize(n)
    for t in prange(n_trees, num_threads=n_threads, schedule="dynamic"):
        take_thresholds(trees[t], thresholds, &places[t * n_features])
    for f in prange(n_features, num_threads=n_threads, schedule="dynamic"):
        sort_numbers(thresholds[f])
        thresholds[f].erase(unique(thresholds[f].begin(), thresholds[f].end()), thresholds[f].end())


cdef void count_splits(const vector[Node] &tree, int64_t *counts) noexcept nogil:
    cdef size_t i
    for i in range(tree.size()):
        if tree[i].kind != LEAF:
            counts[tree[i].feature] += 1


cdef void take_thresholds(
    const vector[Node] &tree, vector[vector[double]] &thresholds, int64_t *places
) noexcept nogil:
    cdef size_t i
    for i in range(tree.size()):
        if tree[i].kind != LEAF:
            thresholds[tree[i].feature][places[tree[i].feature]] = tree[i].threshold
            places[tree[i].feature] += 1


cdef inline int64_t side(const Node *node, bint gaps) noexcept nogil:
    """Number that a column would have if each feature had two columns."""
    return 2 * node.feature + (gaps and (node.kind & MISSING_LEFT) != 0)


cdef void mark_columns(const vector[Node] &tree, bint gaps, uint8_t *columns) noexcept nogil:
    """Mark the columns that a tree's splits use."""
    cdef size_t i
    for i in range(tree.size()):
        if tree[i].kind != LEAF:
            columns[side(&tree[i], gaps)] = 1


cdef void write_tree(
    const vector[Node] &tree, const vector[vector[double]] &thresholds, const int64_t *columns, bint gaps,
    uint64_t *nodes, int32_t *leaves,
) noexcept nogil:
    """Write the nodes of a tree in compact form, and the numbers of its leaves."""
    cdef int64_t i, rank
    cdef const Node *node
    cdef const double *own
    for i in range(<int64_t> tree.size()):
        node = &tree[i]
        if node.kind == LEAF:
            nodes[i], leaves[i] = <uint64_t> i << 32, node.left
            continue
        own = thresholds[node.feature].data()
        rank = lower_bound(own, own + thresholds[node.feature].size(), node.threshold) - own
        nodes[i] = (
            <uint64_t> node.left << 32 | <uint64_t> (65535 - rank) << 16 | <uint64_t> (LANES * columns[side(node, gaps)])
        )


def compact(
    const Node[::1] nodes, const uint64_t[:, ::1] category_sets, const int64_t[::1] tree_nodes,
    const int64_t[::1] tree_sets, const int64_t[::1] tree_leaves, const int32_t[:, ::1] leaf_weights,
    int64_t n_features, bint gaps, int n_threads=1,
):
    """Return a forest as compact trees, for rows with or without missing values; None if that is impossible.

    It is impossible without splits, with more than 2,048 columns, with more than 65,534 thresholds of a feature, or with
    too many categorical splits.
    """
    cdef const uint64_t *sets = &category_sets[0, 0] if category_sets.shape[0] else NULL
    cdef int64_t t, f, n_trees = tree_nodes.shape[0] - 1, n_columns = 0, most = 0
    cdef vector[vector[Node]] cut = vector[vector[Node]](n_trees)
    cdef vector[vector[double]] thresholds = vector[vector[double]](n_features)
    cdef vector[int64_t] starts = vector[int64_t](n_trees + 1)
    cdef int64_t[::1] columns = np.zeros(2 * n_features, dtype=np.int64)
    cdef vector[uint8_t] by_tree
    if n_features * n_trees > MOST_COUNTS:
        return None
    with nogil:
        by_tree.resize(2 * n_features * n_trees)
        for t in prange(n_trees, num_threads=n_threads, schedule="dynamic"):
            cut_tree(&nodes[tree_nodes[t]], tree_nodes[t + 1] - tree_nodes[t], sets + 4 * tree_sets[t], cut[t])
            mark_columns(cut[t], gaps, &by_tree[2 * n_features * t])
        for t in range(n_trees):
            starts[t + 1] = starts[t] + <int64_t> cut[t].size()
            for f in range(2 * n_features):
                columns[f] |= by_tree[2 * n_features * t + f]
        for f in range(2 * n_features):
            n_columns += columns[f]
    if n_columns == 0 or n_columns > MOST_COLUMNS or starts[n_trees] > MOST_GROWTH * nodes.shape[0]:
        return None
    fill_thresholds(cut, thresholds, n_threads)
    sizes = [thresholds[f].size() for f in range(n_features)]
    if max(sizes) > MOST_RANKS:
        return None
    used = np.flatnonzero(columns)
    np.asarray(columns)[used] = np.arange(len(used))
    cdef CompactTrees trees = CompactTrees()
    trees.features = (used // 2).astype(np.int32)
    trees.missing = np.where(used % 2, 0, 65535).astype(np.uint16)
    trees.thresholds = np.concatenate([thresholds[f] for f in range(n_features)])
    trees.starts = np.cumsum([0, *sizes], dtype=np.int64)
    trees.nodes = np.empty(starts[n_trees], dtype=np.uint64)
    trees.leaves = np.zeros(starts[n_trees], dtype=np.int32)
    trees.tree_nodes = np.array(starts, dtype=np.int64)
    trees.lookups.resize(n_features)
    trees.tops.resize(n_trees)
    with nogil:
        for f in prange(n_features, num_threads=n_threads, schedule="dynamic"):
            trees.lookups[f] = lookup_of(thresholds[f])
        for t in prange(n_trees, num_threads=n_threads, schedule="dynamic"):
            write_tree(cut[t], thresholds, &columns[0], gaps, &trees.nodes[starts[t]], &trees.leaves[starts[t]])
            trees.tops[t] = top_splits_of(&trees.nodes[starts[t]], node_weights(
                cut[t].data(), <int64_t> cut[t].size(), tree_nodes[t + 1] - tree_nodes[t],
                &leaf_weights[tree_leaves[t], 0], leaf_weights.shape[1],
            ))
    return trees
