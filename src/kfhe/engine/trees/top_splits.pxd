"""The top splits of a compact tree: those that most rows pass. `top_splits.pyx` says what they are for."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport Node

cdef enum:
    LANES = 32  # rows of a group, which pass the top splits together
    MOST_SPLITS = 15
    EXIT = MOST_SPLITS + 1  # added to the number of an exit, to tell it from a split
    SLOTS = 2 * EXIT  # of LANES numbers each, for `fill_exits` and `pass_top`


cdef struct TopSplit:
    uint16_t column  # of ranks
    uint16_t rank  # of the threshold: higher ones go right
    uint16_t left  # another top split, or an exit
    uint16_t right


cdef struct TopSplits:
    int64_t n_splits
    TopSplit splits[MOST_SPLITS]  # parents come first
    uint64_t exits[MOST_SPLITS + 1]  # nodes of the tree
    int64_t depth_below  # of the leaves, seen from the exits: what most rows have still to go


cdef TopSplits top_splits_of(const uint64_t *nodes, const vector[double] &weights) noexcept nogil
cdef vector[double] node_weights(
    const Node *nodes, int64_t n_nodes, int64_t n_grown, const int32_t *leaf_weights, int64_t n_classes
) noexcept nogil


cdef inline bint is_split(uint64_t node) noexcept nogil:
    """Whether a compact node is none of the leaves, which have a rank of 0."""
    return <uint32_t> node > 0xFFFF


cdef inline void fill_exits(uint16_t *slots) noexcept nogil:
    """Fill the slots of the exits with their numbers."""
    cdef int64_t exit, lane
    for exit in range(EXIT):
        for lane in range(LANES):
            slots[(EXIT + exit) * LANES + lane] = <uint16_t> exit


cdef inline void choose(
    const uint16_t *ranks, uint16_t rank, const uint16_t *left, const uint16_t *right, uint16_t *chosen
) noexcept nogil:
    """Take from the right where a rank is higher, else from the left; compilers make vectors of it."""
    cdef int64_t lane
    cdef uint16_t if_left, if_right
    for lane in range(LANES):
        if_left = left[lane]
        if_right = right[lane]
        chosen[lane] = if_right if ranks[lane] > rank else if_left


cdef inline const uint16_t *pass_top(const TopSplits *top, const uint16_t *ranks, uint16_t *slots) noexcept nogil:
    """Number of the exit that each row of a group leaves by: from the lowest splits to the root."""
    cdef int64_t i
    cdef const TopSplit *split
    for i in range(top.n_splits - 1, -1, -1):
        split = &top.splits[i]
        choose(
            &ranks[split.column], split.rank, &slots[split.left * LANES], &slots[split.right * LANES],
            &slots[i * LANES],
        )
    return slots if top.n_splits else &slots[EXIT * LANES]
