"""Predictor: from rows to leaves to scores, many rows at a time.

If only the predicted class is needed, rows are dropped once the remaining votes can't change it.
"""

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

from kfhe.engine.trees.compact cimport CompactTrees
from kfhe.engine.trees.layout cimport CATEGORICAL, LEAF, MISSING_LEFT, Node
from kfhe.engine.trees.top_splits cimport LANES as GROUP

import numpy as np

cdef enum:
    LEAST_BLOCK = 512  # minimum rows of a block
    MOST_BLOCK = 4096
    BLOCK_BYTES = 1 << 18  # size of a block's rows and scores, which stay in the cache
    LANES = 8  # rows that go down a tree at a time, to hide the latency of memory
    PARALLEL_STEPS = 20000  # rows times trees
    TREES_AT_ONCE = 8  # between two checks for decided rows
    LEAST_DROPPED = 16  # rows are dropped only if one in so many is decided, since the others must be moved
    ROUNDING_ERRORS = 1000000000  # errors of scores are below the total weight divided by this


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
    """Send rows down a tree; a row that has reached its leaf is replaced by the next one."""
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
    for lane in range(min(<int64_t> LANES, n_rows)):  # the last rows, one by one
        if row[lane] >= 0:
            node = at[lane]
            while node.kind != LEAF:
                node = &nodes[step(node, sets, values[lane], plain)]
            leaves[row[lane]] = node.left


cdef void find_leaves(
    const Node *nodes, const uint64_t *sets, const double *rows, int64_t n_features, int64_t n_rows, bint plain,
    int32_t *leaves,
) noexcept nogil:
    """Number of each row's leaf in a tree."""
    if plain:
        descend(nodes, sets, rows, n_features, n_rows, True, leaves)
    else:
        descend(nodes, sets, rows, n_features, n_rows, False, leaves)


cdef struct LeafVotes:  # how leaves vote
    const int32_t *classes
    const double *shares  # of the leaves of the first trees, which vote softly
    int64_t n_soft  # leaves of those trees
    const int64_t *tree_leaves
    const double *weights
    int64_t n_classes


cdef void add_tree(
    const LeafVotes *votes, int64_t tree, const int32_t *leaves, const int32_t *rows, int64_t n_rows, double *scores
) noexcept nogil:
    """Add a tree's weighted votes to the scores of some rows."""
    cdef int64_t i, k, first = votes.tree_leaves[tree], n_classes = votes.n_classes
    cdef double weight = votes.weights[tree]
    cdef const double *shares
    if first >= votes.n_soft:
        for i in range(n_rows):
            scores[rows[i] * n_classes + votes.classes[first + leaves[i]]] += weight
        return
    for i in range(n_rows):
        shares = &votes.shares[(first + leaves[i]) * n_classes]
        for k in range(n_classes):
            scores[rows[i] * n_classes + k] += weight * shares[k]


cdef int64_t block_size(int64_t n_rows, int64_t row_bytes, int n_threads) noexcept nogil:
    """Number of rows in a block: it fits into the cache, in whole groups, and threads get equal shares."""
    cdef int64_t n = max(n_rows, <int64_t> 1)
    cdef int64_t most = max(<int64_t> LEAST_BLOCK, min(<int64_t> MOST_BLOCK, BLOCK_BYTES // row_bytes))
    cdef int64_t n_groups = (n + GROUP - 1) // GROUP
    cdef int64_t n_blocks = (n + most * n_threads - 1) // (most * n_threads) * n_threads
    return (n_groups + n_blocks - 1) // n_blocks * GROUP


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
    const double[::1] factors=None,
):
    """Add the weighted votes of the trees ``first .. last - 1`` to the scores.

    ``leaf_votes`` has a row of votes, one per class, for each leaf of the trees that vote softly, which come
    first; the leaves of the others vote for their ``leaf_classes``. ``plain``: no value is missing and no
    feature is categorical. If the trees are also given in compact form, that is used. With ``factors`` of the
    classes, only the highest product of score and factor is needed, and further votes are skipped once that
    is certain.
    """
    cdef int64_t n_rows = rows.shape[0], n_features = rows.shape[1]
    cdef int64_t block, start, n, size, row_bytes
    cdef const uint64_t *sets = &category_sets[0, 0] if category_sets.shape[0] else NULL
    cdef const double *shares = &leaf_votes[0, 0] if leaf_votes.shape[0] else NULL
    cdef const double *own_factors = &factors[0] if factors is not None else NULL
    cdef LeafVotes votes = LeafVotes(
        &leaf_classes[0], shares, leaf_votes.shape[0], &tree_leaves[0], &weights[0], scores.shape[1]
    )
    cdef uint16_t[:, ::1] all_ranks
    if n_rows * (last - first) < PARALLEL_STEPS:
        n_threads = 1
    row_bytes = 8 * votes.n_classes + (8 * n_features if compact is None else 2 * compact.features.shape[0])
    size = block_size(n_rows, row_bytes, n_threads)
    if compact is not None:
        all_ranks = np.empty((n_threads, size * compact.features.shape[0]), dtype=np.uint16)
    for block in prange(
        (n_rows + size - 1) // size, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=1
    ):
        start = block * size
        n = min(size, n_rows - start)
        if compact is not None:
            compact.rank(&rows[start, 0], n_features, n, &all_ranks[threadid(), 0])
            add_compact(
                compact, &votes, first, last, &all_ranks[threadid(), 0], n, own_factors, &scores[start, 0]
            )
        else:
            add_block(
                &nodes[0], &tree_nodes[0], sets, &tree_sets[0], &votes, first, last, &rows[start, 0], n_features,
                n, plain, &scores[start, 0],
            )


cdef inline double higher(double one, double other) noexcept nogil:
    return one if one > other else other


cdef inline double lower(double one, double other) noexcept nogil:
    return one if one < other else other


cdef inline bint is_decided(
    const double *scores, const double *factors, int64_t n_classes, double to_come, double leeway
) noexcept nogil:
    """Whether the lead of a row's highest score exceeds the remaining votes.

    The remaining votes are multiplied by the largest factor (``leeway``), so that there is no branch to
    mispredict.
    """
    cdef int64_t k
    cdef double possible, highest = 0, second = 0
    for k in range(n_classes):
        possible = (scores[k] + to_come) * factors[k]
        second = higher(second, lower(highest, possible))
        highest = higher(highest, possible)
    return highest - leeway > second


cdef inline int64_t find_undecided(
    const double *scores, const int32_t *places, int64_t n_rows, const double *factors, int64_t n_classes,
    double to_come, int32_t *found,
) noexcept nogil:
    """Find the positions of the rows that are not decided; return their number."""
    cdef int64_t i, k, n = 0
    cdef double leeway = 0
    for k in range(n_classes):
        leeway = higher(leeway, to_come * factors[k])
    for i in range(n_rows):
        found[n] = <int32_t> i
        n += not is_decided(&scores[places[i] * n_classes], factors, n_classes, to_come, leeway)
    return n


cdef void add_block(
    const Node *nodes, const int64_t *tree_nodes, const uint64_t *sets, const int64_t *tree_sets,
    const LeafVotes *votes, int64_t first, int64_t last, const double *rows, int64_t n_features, int64_t n_rows,
    bint plain, double *scores,
) noexcept nogil:
    """Add the trees' votes for a block of rows."""
    cdef int64_t t
    cdef int32_t leaves[MOST_BLOCK]
    cdef int32_t places[MOST_BLOCK]
    number(places, n_rows)
    for t in range(first, last):
        find_leaves(&nodes[tree_nodes[t]], sets + 4 * tree_sets[t], rows, n_features, n_rows, plain, leaves)
        add_tree(votes, t, leaves, places, n_rows, scores)


cdef void add_compact(
    CompactTrees compact, const LeafVotes *votes, int64_t first, int64_t last, uint16_t *ranks, int64_t n_rows,
    const double *factors, double *scores,
) noexcept nogil:
    """Add the votes of compact trees for a block of rows; with factors, decided rows are dropped."""
    cdef int64_t t, n_undecided
    cdef int32_t leaves[MOST_BLOCK]
    cdef int32_t places[MOST_BLOCK]  # positions of the scores of the remaining rows
    cdef int32_t kept[MOST_BLOCK]
    cdef double to_come, weight = weight_of(votes.weights, first, last)
    number(places, n_rows)
    for t in range(first, last):
        compact.find_leaves(t, ranks, n_rows, leaves)
        add_tree(votes, t, leaves, places, n_rows, scores)
        if factors == NULL or (t + 1 - first) % TREES_AT_ONCE:
            continue
        to_come = weight_of(votes.weights, t + 1, last) + weight / ROUNDING_ERRORS
        if 2 * to_come > weight:
            continue  # too early for any decision
        n_undecided = find_undecided(scores, places, n_rows, factors, votes.n_classes, to_come, kept)
        if (n_rows - n_undecided) * LEAST_DROPPED >= n_rows:
            compact.keep(kept, n_undecided, ranks)
            keep_places(kept, n_undecided, places)
            n_rows = n_undecided


cdef inline double weight_of(const double *weights, int64_t first, int64_t last) noexcept nogil:
    """Total weight of some trees."""
    cdef double total = 0
    cdef int64_t t
    for t in range(first, last):
        total += weights[t]
    return total


cdef inline void number(int32_t *places, int64_t n) noexcept nogil:
    """Give each row of a block its own position."""
    cdef int64_t i
    for i in range(n):
        places[i] = <int32_t> i


cdef inline void keep_places(const int32_t *kept, int64_t n_kept, int32_t *places) noexcept nogil:
    """Keep the positions of some rows, in order."""
    cdef int64_t i
    for i in range(n_kept):
        places[i] = places[kept[i]]


def apply(
    const Node[::1] nodes, const uint64_t[:, ::1] category_sets, const double[:, ::1] rows, int n_threads=1
):
    """Return the number of each row's leaf in a single tree."""
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
