"""Pruning: what of a grown tree stays. Nodes whose subtrees go become leaves."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libcpp.pair cimport pair
from libcpp.queue cimport priority_queue
from libcpp.vector cimport vector

from kfhe.engine.trees.nodes cimport Buffer, RawNode, add_node

import numpy as np


cdef int64_t misses(const Buffer *buffer, int64_t node, int64_t n_classes) noexcept nogil:
    """Weight of the node's rows that its own majority class gets wrong."""
    cdef const int64_t *totals = &buffer.totals[node * n_classes]
    cdef int64_t k, total = 0, top = 0
    for k in range(n_classes):
        total += totals[k]
        top = max(top, totals[k])
    return total - top


cdef double prune(Buffer *buffer, int64_t n_classes, double price, const double *costs_of_parts) noexcept nogil:
    """Cut off each subtree of a part that saves less than a price per extra leaf; return what the part costs."""
    cdef vector[double] costs = vector[double](buffer.nodes.size())
    cdef RawNode *node
    cdef double kept
    cdef int64_t i
    for i in range(<int64_t> buffer.nodes.size() - 1, -1, -1):  # children come after their parents
        node = &buffer.nodes[i]
        if node.left < -1:
            costs[i] = costs_of_parts[-1 - node.left]
            continue
        costs[i] = misses(buffer, i, n_classes) + price
        if node.left >= 0:
            kept = costs[node.left] + costs[node.left + 1]
            if costs[i] < kept:
                node.left = -1
            else:
                costs[i] = kept
    return costs[0]


cdef void prune_parts(
    vector[Buffer*] &buffers, int64_t n_parts, int64_t n_classes, double cp, int n_threads
) noexcept nogil:
    """Cut off each subtree that saves less than cp times the root's misses per extra leaf."""
    cdef double price = cp * misses(buffers[0], 0, n_classes)
    cdef vector[double] costs = vector[double](n_parts)
    cdef int64_t i
    for i in prange(1, n_parts, num_threads=n_threads, schedule="dynamic"):
        costs[i] = prune(buffers[i], n_classes, price, NULL)
    prune(buffers[0], n_classes, price, costs.data())


# A node in an order that doesn't depend on who grew it.
cdef struct FlatNode:
    RawNode *raw
    int32_t buffer
    int32_t left  # in this order, -1: a leaf


cdef void flatten(vector[Buffer*] &buffers, vector[FlatNode] &flat) noexcept nogil:
    """Bring the nodes of all buffers into one order: siblings, then what is below the left one."""
    cdef vector[int32_t] stack = vector[int32_t](1)
    cdef FlatNode item, child
    cdef int32_t i, k
    item.raw, item.buffer, item.left = &buffers[0].nodes[0], 0, -1
    flat.push_back(item)
    while stack.size():
        i = stack.back()
        stack.pop_back()
        if flat[i].raw.left < -1:
            flat[i].buffer = -1 - flat[i].raw.left
            flat[i].raw = &buffers[flat[i].buffer].nodes[0]
        item = flat[i]
        if item.raw.left < 0:
            continue
        flat[i].left = <int32_t> flat.size()
        for k in range(2):
            child.raw, child.buffer, child.left = &buffers[item.buffer].nodes[item.raw.left + k], item.buffer, -1
            flat.push_back(child)
        stack.push_back(flat[i].left + 1)
        stack.push_back(flat[i].left)


cdef void keep_best_leaves(vector[Buffer*] &buffers, int64_t max_leaves) noexcept nogil:
    """Keep the splits that best-first growing makes until it has ``max_leaves`` leaves."""
    cdef priority_queue[pair[double, int32_t]] frontier  # gain, and the node's negative: on a tie the first node
    cdef vector[FlatNode] flat
    cdef vector[char] kept
    cdef int64_t n_leaves = 1
    cdef int32_t i, j
    flatten(buffers, flat)
    kept.resize(flat.size())
    if flat[0].left >= 0:
        frontier.push(pair[double, int32_t](0, 0))
    while n_leaves < max_leaves and frontier.size():
        i = -frontier.top().second
        frontier.pop()
        kept[i] = 1
        n_leaves += 1
        for j in range(flat[i].left, flat[i].left + 2):
            if flat[j].left >= 0:
                frontier.push(pair[double, int32_t](flat[j].raw.gain, -j))
    for i in range(<int32_t> flat.size()):
        if not kept[i]:
            flat[i].raw.left = -1


cdef void cut_back(
    vector[Buffer*] &buffers, int64_t n_parts, int64_t n_classes, int64_t max_leaves, double cp, int n_threads
) noexcept nogil:
    """Cut off what ``max_leaves`` (0: no limit) and ``cp`` don't let stand, in a tree of so many parts."""
    if max_leaves > 0:
        keep_best_leaves(buffers, max_leaves)
    if cp > 0:
        prune_parts(buffers, n_parts, n_classes, cp, n_threads)


def pruned(
    const int32_t[::1] left, const double[::1] gains, const int64_t[:, ::1] totals, *, int64_t max_leaf_nodes=0,
    double cp=0.0,
):
    """Prune a tree, given as arrays with an entry per node, the root first; siblings are neighbours.

    Parameters
    ----------
    left : int32 array of shape (n_nodes,)
        The left child of each node; -1: it is a leaf.
    gains : array of shape (n_nodes,)
        How much each node's split lowers the weighted Gini impurity.
    totals : int64 array of shape (n_nodes, n_classes)
        Weight of each class in each node.
    max_leaf_nodes : int
        Keep the best splits only, until there are this many leaves; 0: all.
    cp : float
        Complexity parameter: a subtree goes when it saves less than `cp` times the root's misclassified weight
        for each of its extra leaves.

    Returns
    -------
    int32 array of shape (n_nodes,)
        The left children of the nodes that are still there, -1 for all others.
    """
    cdef Buffer buffer
    cdef vector[Buffer*] buffers
    cdef vector[int32_t] stack = vector[int32_t](1)
    cdef int64_t i, k, n_classes = totals.shape[1]
    cdef int32_t n_nodes = <int32_t> left.shape[0]
    for i in range(n_nodes):
        add_node(&buffer, n_classes, 0)
        buffer.nodes[i].left = left[i]
        buffer.nodes[i].gain = gains[i]
        for k in range(n_classes):
            buffer.totals[i * n_classes + k] = totals[i, k]
    buffers.push_back(&buffer)
    cut_back(buffers, 1, n_classes, max_leaf_nodes, cp, 1)
    result = np.full(n_nodes, -1, dtype=np.int32)
    cdef int32_t[::1] kept = result
    while stack.size():
        i = stack.back()
        stack.pop_back()
        if buffer.nodes[i].left >= 0:
            kept[i] = left[i]
            stack.push_back(left[i])
            stack.push_back(left[i] + 1)
    return result
