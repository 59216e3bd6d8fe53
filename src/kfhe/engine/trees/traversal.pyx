"""Traversal: from rows to leaves to scores, many rows at a time."""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from kfhe.engine.trees.compact cimport LANES as COMPACT_LANES, CompactTrees
from kfhe.engine.trees.layout cimport CATEGORICAL, LEAF, MISSING_LEFT, Node

import numpy as np

cdef enum:
    LEAST_BLOCK = 512  # rows of a block
    MOST_BLOCK = 4096
    BLOCK_BYTES = 1 << 18  # of a block's rows and scores: they stay in the cache while all trees come and go
    LANES = 8  # rows that go down a tree side by side, so that memory is never waited for alone
    PARALLEL_STEPS = 20000  # rows times trees


cdef inline int32_t step(
    const Node *node, const uint64_t *sets, const double *row, bint plain
) noexcept nogil:
    """Child of a split that a row goes to. ``plain``: no value is missing and no feature is categorical."""
    cdef double value = row[node.feature]
    cdef const uint64_t *bits
    cdef uint8_t code
    cdef int32_t left = value <= node.threshold
    if not plain:
        if value != value:
            left = (node.kind & MISSING_LEFT) != 0
        elif node.kind & CATEGORICAL:
            code = <uint8_t> value
            bits = &sets[4 * <int64_t> node.threshold]
            left = (bits[code // 64] >> (code % 64)) & 1
    return node.left + 1 - left


cdef inline void descend(
    const Node *nodes, const uint64_t *sets, const double *rows, int64_t n_features, int64_t n_rows, bint plain,
    int32_t *leaves,
) noexcept nogil:
    """Send rows down a tree; a row that has reached its leaf makes room for the next."""
    cdef int64_t lane, n_lanes = min(<int64_t> LANES, n_rows), next_row = n_lanes
    cdef int64_t row[LANES]
    cdef const double *values[LANES]
    cdef const Node *at[LANES]
    cdef const Node *node
    for lane in range(n_lanes):
        row[lane] = lane
        values[lane] = &rows[lane * n_features]
        at[lane] = nodes
    while n_lanes == LANES:
        for lane in range(LANES):
            node = at[lane]
            if node.kind != LEAF:
                at[lane] = &nodes[step(node, sets, values[lane], plain)]
                continue
            leaves[row[lane]] = node.left
            if next_row == n_rows:
                n_lanes = 0
                row[lane] = -1
                break
            row[lane] = next_row
            values[lane] = &rows[next_row * n_features]
            next_row += 1
            at[lane] = nodes
    for lane in range(min(<int64_t> LANES, n_rows)):  # the last ones, each to its end
        if row[lane] >= 0:
            node = at[lane]
            while node.kind != LEAF:
                node = &nodes[step(node, sets, values[lane], plain)]
            leaves[row[lane]] = node.left


cdef void find_leaves(
    const Node *nodes, const uint64_t *sets, const double *rows, int64_t n_features, int64_t n_rows, bint plain,
    int32_t *leaves,
) noexcept nogil:
    """Number, within the tree, of the leaf that each row falls into."""
    if plain:
        descend(nodes, sets, rows, n_features, n_rows, True, leaves)
    else:
        descend(nodes, sets, rows, n_features, n_rows, False, leaves)


cdef void add_tree(
    const int32_t *leaves, int64_t n_rows, const int32_t *leaf_classes, const double *leaf_votes, double weight,
    int64_t n_classes, double *scores,
) noexcept nogil:
    """Add a tree's weighted votes to the rows' scores; ``leaf_votes`` is NULL if leaves vote for a class."""
    cdef int64_t i, k
    cdef const double *votes
    if leaf_votes == NULL:
        for i in range(n_rows):
            scores[i * n_classes + leaf_classes[leaves[i]]] += weight
        return
    for i in range(n_rows):
        votes = &leaf_votes[leaves[i] * n_classes]
        for k in range(n_classes):
            scores[i * n_classes + k] += weight * votes[k]


cdef int64_t block_size(int64_t n_rows, int64_t row_bytes, int n_threads) noexcept nogil:
    """Rows of a block: not too many for the cache, whole groups, and no thread with a block less than others."""
    cdef int64_t n = max(n_rows, <int64_t> 1)
    cdef int64_t most = max(<int64_t> LEAST_BLOCK, min(<int64_t> MOST_BLOCK, BLOCK_BYTES // row_bytes))
    cdef int64_t n_groups = (n + COMPACT_LANES - 1) // COMPACT_LANES
    cdef int64_t n_blocks = (n + most * n_threads - 1) // (most * n_threads) * n_threads
    return (n_groups + n_blocks - 1) // n_blocks * COMPACT_LANES


def add_trees(
    const Node[::1] nodes,
    const uint64_t[:, ::1] category_sets,
    const int32_t[::1] leaf_classes,
    const double[:, ::1] leaf_votes,
    const int64_t[::1] tree_nodes,
    const int64_t[::1] tree_leaves,
    const int64_t[::1] tree_sets,
    const double[::1] weights,
    int64_t first,
    int64_t last,
    bint plain,
    const double[:, ::1] rows,
    double[:, ::1] scores,
    int n_threads=1,
    CompactTrees compact=None,
):
    """Add the weighted votes of the trees ``first .. last - 1`` to the scores.

    ``leaf_votes`` has a row of votes, one per class, for each leaf of the trees that vote softly, which come
    first; the leaves of the others vote for their ``leaf_classes``. ``plain`` promises that no value is missing
    and no feature is categorical. The same trees may be given in their compact form, too, which rows then walk down.
    """
    cdef int64_t n_rows = rows.shape[0], n_features = rows.shape[1], n_classes = scores.shape[1]
    cdef int64_t block, start, n, t, size, row_bytes, n_soft = leaf_votes.shape[0]
    cdef const uint64_t *sets = &category_sets[0, 0] if category_sets.shape[0] else NULL
    cdef const double *votes = &leaf_votes[0, 0] if n_soft else NULL
    cdef uint32_t[:, ::1] all_ranks
    cdef uint32_t *ranks = NULL
    if n_rows * (last - first) < PARALLEL_STEPS:
        n_threads = 1
    row_bytes = 8 * n_classes + (8 * n_features if compact is None else 4 * compact.features.shape[0])
    size = block_size(n_rows, row_bytes, n_threads)
    if compact is not None:
        all_ranks = np.empty((n_threads, size * compact.features.shape[0]), dtype=np.uint32)
    for block in prange(
        (n_rows + size - 1) // size, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1
    ):
        start = block * size
        n = min(size, n_rows - start)
        if compact is not None:
            ranks = &all_ranks[threadid(), 0]
            compact.rank(&rows[start, 0], n_features, n, ranks)
        for t in range(first, last):
            add_block(
                compact, t, ranks,
                &nodes[tree_nodes[t]], sets + 4 * tree_sets[t], &rows[start, 0], n_features, n, plain,
                &leaf_classes[tree_leaves[t]],
                votes + tree_leaves[t] * n_classes if tree_leaves[t] < n_soft else NULL,
                weights[t], n_classes, &scores[start, 0],
            )


cdef void add_block(
    CompactTrees compact, int64_t tree, const uint32_t *ranks,
    const Node *nodes, const uint64_t *sets, const double *rows, int64_t n_features, int64_t n_rows,
    bint plain, const int32_t *leaf_classes, const double *leaf_votes, double weight, int64_t n_classes,
    double *scores,
) noexcept nogil:
    """Add a tree's votes for a block of rows, which go down its compact form if their ranks are given."""
    cdef int32_t leaves[MOST_BLOCK]
    if ranks != NULL:
        compact.find_leaves(tree, ranks, n_rows, leaves)
    else:
        find_leaves(nodes, sets, rows, n_features, n_rows, plain, leaves)
    add_tree(leaves, n_rows, leaf_classes, leaf_votes, weight, n_classes, scores)


def apply(
    const Node[::1] nodes, const uint64_t[:, ::1] category_sets, const double[:, ::1] rows, int n_threads=1
):
    """Return the number of the leaf that each row falls into, for a single tree."""
    cdef int64_t n_rows = rows.shape[0], block, start, size
    cdef const uint64_t *sets = &category_sets[0, 0] if category_sets.shape[0] else NULL
    result = np.empty(n_rows, dtype=np.int32)
    cdef int32_t[::1] leaves = result
    if n_rows < PARALLEL_STEPS:
        n_threads = 1
    size = block_size(n_rows, 8 * rows.shape[1], n_threads)
    for block in prange(
        (n_rows + size - 1) // size, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1
    ):
        start = block * size
        find_leaves(
            &nodes[0], sets, &rows[start, 0], rows.shape[1], min(size, n_rows - start), False,
            &leaves[start],
        )
    return result
