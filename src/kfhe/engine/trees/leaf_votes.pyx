"""Leaf votes: what a leaf has to say, made of the weights of the classes in it.

A hard vote is the class of the largest weight, a soft one the share of each class. Shares can be shrunken, by a filter
down each tree: from root to leaf the shares of the classes are an estimate that each split measures anew. A node's estimate is
its parent's, moved towards its own shares by the gain N / (N + shrinkage), N being the rows of the parent: what few
rows say is noisy, and moves it little.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport LEAF, Node

import numpy as np

cdef enum:
    PARALLEL_NODES = 8192


def leaf_classes(const int32_t[:, ::1] leaf_weights):
    """Return the class that each leaf votes for (int32): the heaviest, and the first one of equals."""
    cdef int64_t leaf, n_leaves = leaf_weights.shape[0]
    result = np.empty(n_leaves, dtype=np.int32)
    cdef int32_t[::1] classes = result
    for leaf in range(n_leaves):
        classes[leaf] = heaviest(&leaf_weights[leaf, 0], leaf_weights.shape[1])
    return result


def leaf_shares(const int32_t[:, ::1] leaf_weights):
    """Return the share of each class in each leaf's weight."""
    cdef int64_t leaf, n_leaves = leaf_weights.shape[0]
    result = np.empty((n_leaves, leaf_weights.shape[1]))
    cdef double[:, ::1] shares = result
    for leaf in range(n_leaves):
        write_shares(&leaf_weights[leaf, 0], leaf_weights.shape[1], &shares[leaf, 0])
    return result


# ---------------------------------------------------------------- shrinkage


cdef void add_up(
    const Node *nodes, int64_t n_nodes, const int32_t[:, ::1] leaf_weights, int64_t n_classes, double *shares
) noexcept nogil:
    """Write the share of each class in each node, and behind them the node's weight."""
    cdef int64_t i, k, width = n_classes + 1
    cdef const double *left
    cdef double *own
    for i in range(n_nodes - 1, -1, -1):  # children come after their parents
        own = &shares[i * width]
        left = &shares[nodes[i].left * width]
        own[n_classes] = 0
        for k in range(n_classes):
            own[k] = leaf_weights[nodes[i].left, k] if nodes[i].kind == LEAF else left[k] + left[width + k]
            own[n_classes] += own[k]
    for i in range(n_nodes):
        own = &shares[i * width]
        for k in range(n_classes):
            own[k] /= own[n_classes]


# A node on the way down, and where its estimates are: at each depth there is room for two children.
cdef struct Visit:
    int32_t node
    int32_t place


cdef void filter_down(
    const Node *nodes, int64_t n_classes, const double *shares, const double *shrinkages, int64_t n_shrinkages,
    double *votes, int64_t n_leaves,
) noexcept nogil:
    """Write the estimates of a tree's leaves, for some shrinkages at once."""
    cdef int64_t b, k, size = n_shrinkages * n_classes, child
    cdef vector[double] estimates = vector[double](2 * size)
    cdef vector[Visit] visits = vector[Visit](1)
    cdef Visit visit, left, right
    cdef const double *parents
    cdef double gain
    for b in range(n_shrinkages):
        for k in range(n_classes):
            estimates[b * n_classes + k] = shares[k]
    while visits.size():
        visit = visits.back()
        visits.pop_back()
        left.node, left.place = nodes[visit.node].left, visit.place // 2 * 2 + 2
        right.node, right.place = left.node + 1, left.place + 1
        if nodes[visit.node].kind == LEAF:
            for b in range(n_shrinkages):
                for k in range(n_classes):
                    votes[(b * n_leaves + left.node) * n_classes + k] = (
                        estimates[visit.place * size + b * n_classes + k]
                    )
            continue
        if <int64_t> estimates.size() < (left.place + 2) * size:
            estimates.resize(2 * (left.place + 2) * size)
        parents = &shares[visit.node * (n_classes + 1)]
        for b in range(n_shrinkages):
            gain = parents[n_classes] / (parents[n_classes] + shrinkages[b])
            for child in range(2):
                filter_once(
                    &estimates[visit.place * size + b * n_classes], gain, shrinkages[b] == 0, n_classes, parents,
                    &shares[(left.node + child) * (n_classes + 1)],
                    &estimates[(left.place + child) * size + b * n_classes],
                )
        visits.push_back(right)
        visits.push_back(left)


cdef inline void filter_once(
    const double *before, double gain, bint exact, int64_t n_classes, const double *parents, const double *own,
    double *estimates,
) noexcept nogil:
    """Move an estimate; ``exact``: to the child's own shares, without the rounding of a long way down."""
    cdef int64_t k
    for k in range(n_classes):
        estimates[k] = own[k] if exact else before[k] + gain * (own[k] - parents[k])


def shrunken_shares(
    nodes, const int32_t[:, ::1] leaf_weights, const double[::1] shrinkages, int n_threads=1
):
    """Return what each leaf of a tree votes for, for each of some shrinkages.

    The result has the shape (n_shrinkages, n_leaves, n_classes). Without shrinkage they are the leaf's shares.
    Threads share the shrinkages of a large tree.
    """
    cdef const uint8_t[::1] data = nodes.view(np.uint8)
    cdef const Node *first = <const Node *> &data[0]
    cdef int64_t n_nodes = data.shape[0] // <int64_t> sizeof(Node), n_leaves = leaf_weights.shape[0]
    cdef int64_t n_classes = leaf_weights.shape[1], n = shrinkages.shape[0], n_parts, part, start, stop
    cdef vector[double] shares = vector[double](n_nodes * (n_classes + 1))
    result = np.empty((n, n_leaves, n_classes))
    cdef double[:, :, ::1] votes = result
    n_parts = max(1, min(n, <int64_t> n_threads)) if n_nodes >= PARALLEL_NODES else 1
    with nogil:
        add_up(first, n_nodes, leaf_weights, n_classes, shares.data())
        if n_parts == 1:
            filter_down(first, n_classes, shares.data(), &shrinkages[0], n, &votes[0, 0, 0], n_leaves)
        else:
            for part in prange(n_parts, num_threads=<int> n_parts, schedule="static"):
                start, stop = part * n // n_parts, (part + 1) * n // n_parts
                filter_down(
                    first, n_classes, shares.data(), &shrinkages[start], stop - start, &votes[start, 0, 0], n_leaves
                )
    return result
