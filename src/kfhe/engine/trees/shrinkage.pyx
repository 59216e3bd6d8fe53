"""Shrinkage: a filter down each tree.

From root to leaf the shares of the classes are an estimate that each split measures anew. A node's estimate is
its parent's, moved towards its own shares by the gain N / (N + shrinkage), N being the rows of the parent: what few
rows say is noisy, and moves it little.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport LEAF, Node

import numpy as np


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


cdef void filter_down(
    const Node *nodes, int64_t n_nodes, int64_t n_classes, const double *shares, double shrinkage, double *estimates,
    double *votes,
) noexcept nogil:
    """Write the estimates of a tree's leaves."""
    cdef int64_t i, j, k, width = n_classes + 1
    cdef double gain
    cdef const double *own
    cdef const double *parents
    for k in range(n_classes):
        estimates[k] = shares[k]
    for i in range(n_nodes):
        if nodes[i].kind == LEAF:
            for k in range(n_classes):
                votes[nodes[i].left * n_classes + k] = estimates[i * n_classes + k]
            continue
        parents = &shares[i * width]
        gain = parents[n_classes] / (parents[n_classes] + shrinkage)
        for j in range(nodes[i].left, nodes[i].left + 2):
            own = &shares[j * width]
            for k in range(n_classes):
                if shrinkage == 0:  # exactly the shares, without the rounding of a long way down
                    estimates[j * n_classes + k] = own[k]
                else:
                    estimates[j * n_classes + k] = estimates[i * n_classes + k] + gain * (own[k] - parents[k])


def shrunken_shares(nodes, const int32_t[:, ::1] leaf_weights, const double[::1] shrinkages):
    """Return what each leaf of a tree votes for, for each of some shrinkages.

    The result has the shape (n_shrinkages, n_leaves, n_classes). Without shrinkage they are the leaf's shares.
    """
    cdef const uint8_t[::1] data = nodes.view(np.uint8)
    cdef const Node *first = <const Node *> &data[0]
    cdef int64_t b, n_nodes = data.shape[0] // <int64_t> sizeof(Node), n_classes = leaf_weights.shape[1]
    cdef vector[double] shares = vector[double](n_nodes * (n_classes + 1))
    cdef vector[double] estimates = vector[double](n_nodes * n_classes)
    result = np.empty((shrinkages.shape[0], leaf_weights.shape[0], n_classes))
    cdef double[:, :, ::1] votes = result
    with nogil:
        add_up(first, n_nodes, leaf_weights, n_classes, shares.data())
        for b in range(shrinkages.shape[0]):
            filter_down(first, n_nodes, n_classes, shares.data(), shrinkages[b], estimates.data(), &votes[b, 0, 0])
    return result
