"""Top splits: the splits of each compact tree that most rows pass.

A row walks down one split after the other. Where many rows pass, it is faster to compare all of them with every split,
in vectors, and then to choose one of two children, from the lowest splits upwards. The final choice is the exit by
which a row leaves the top splits. They are the splits of the most training rows, not those nearest to the root,
because trees that are grown best first are long and narrow in places.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport LEAF, Node


cdef vector[double] node_weights(
    const Node *nodes, int64_t n_nodes, int64_t n_grown, const int32_t *leaf_weights, int64_t n_classes
) noexcept nogil:
    """Weight of the training rows in each node of a tree; nodes that only cut categories get half of their parent's."""
    cdef vector[double] weights = vector[double](n_nodes, 0.0)
    cdef int64_t i, k
    for i in range(n_grown - 1, -1, -1):
        if nodes[i].kind == LEAF:
            for k in range(n_classes):
                weights[i] += leaf_weights[nodes[i].left * n_classes + k]
        elif nodes[i].left < n_grown:
            weights[i] = weights[nodes[i].left] + weights[nodes[i].left + 1]
        else:
            weights[i] = weight_below_cuts(nodes, weights, i, n_grown)
    for i in range(n_nodes):
        if nodes[i].kind != LEAF and nodes[i].left >= n_grown:
            weights[nodes[i].left] = weights[nodes[i].left + 1] = weights[i] / 2
    return weights


cdef double weight_below_cuts(
    const Node *nodes, const vector[double] &weights, int64_t i, int64_t n_grown
) noexcept nogil:
    """Weight of a node that became a search through cuts: all of its ways end at the same two children."""
    while nodes[i].left >= n_grown:
        i = nodes[i].left
    return weights[nodes[i].left] + weights[nodes[i].left + 1]


cdef TopSplits top_splits_of(const uint64_t *nodes, const vector[double] &weights) noexcept nogil:
    """TopSplits of a compact tree: from the root on, always add the heaviest reachable split."""
    cdef TopSplits top
    cdef uint64_t reached[2 * MOST_SPLITS + 1]
    cdef uint16_t number[2 * MOST_SPLITS + 1]  # of the split or the exit that it becomes
    cdef int64_t children[MOST_SPLITS]
    cdef int64_t i, heaviest, n_reached = 1, n_exits = 0
    cdef uint64_t node
    cdef double below = 0
    reached[0] = 0
    number[0] = EXIT
    top.n_splits = 0
    while top.n_splits < MOST_SPLITS:
        heaviest = -1
        for i in range(n_reached):
            if number[i] == EXIT and is_split(nodes[reached[i]]):
                if heaviest < 0 or weights[reached[i]] > weights[reached[heaviest]]:
                    heaviest = i
        if heaviest < 0:
            break
        node = nodes[reached[heaviest]]
        number[heaviest] = <uint16_t> top.n_splits
        children[top.n_splits] = n_reached
        top.splits[top.n_splits].column = <uint16_t> node
        top.splits[top.n_splits].rank = 65535 - <uint16_t> (node >> 16)
        top.n_splits += 1
        for i in range(2):
            reached[n_reached] = (node >> 32) + i
            number[n_reached] = EXIT
            n_reached += 1
    for i in range(n_reached):
        if number[i] == EXIT:
            number[i] = <uint16_t> (EXIT + n_exits)
            top.exits[n_exits] = nodes[reached[i]]
            n_exits += 1
    for i in range(top.n_splits):
        top.splits[i].left = number[children[i]]
        top.splits[i].right = number[children[i] + 1]
    for i in range(<int64_t> weights.size()):
        if is_split(nodes[i]):
            below += weights[i]
    for i in range(n_reached):
        if number[i] < EXIT:
            below -= weights[reached[i]]
    top.depth_below = <int64_t> (below / weights[0] + 0.5) if weights[0] > 0 else 0
    return top
