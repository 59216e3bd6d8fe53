"""Pruning: the nodes of a grown tree in one order, and what of them stays."""

from libc.stdint cimport int32_t, int64_t
from libcpp.pair cimport pair
from libcpp.queue cimport priority_queue
from libcpp.vector cimport vector

from kfhe.engine.trees.nodes cimport Buffer, add_node

import numpy as np


cdef void flatten(vector[Buffer*] &buffers, vector[FlatNode] &flat, vector[int32_t] &stack) noexcept nogil:
    """Bring the nodes of all buffers into one order that doesn't depend on who grew them."""
    cdef FlatNode item, child
    cdef int32_t i, left
    item.buffer = item.node = 0
    item.left = -1
    flat.clear()
    flat.push_back(item)
    stack.push_back(0)
    while stack.size():
        i = stack.back()
        stack.pop_back()
        left = buffers[flat[i].buffer].nodes[flat[i].node].left
        if left < -1:
            flat[i].buffer = -1 - left
            flat[i].node = 0
            left = buffers[flat[i].buffer].nodes[0].left
        if left < 0:
            continue
        flat[i].left = <int32_t> flat.size()
        child.buffer = flat[i].buffer
        child.left = -1
        child.node = left
        flat.push_back(child)
        child.node = left + 1
        flat.push_back(child)
        stack.push_back(flat[i].left + 1)
        stack.push_back(flat[i].left)


cdef int64_t misses(vector[Buffer*] &buffers, const FlatNode *item, int64_t n_classes) noexcept nogil:
    """Weight of the node's rows that its own majority class gets wrong."""
    cdef const int64_t *totals = &buffers[item.buffer].totals[item.node * n_classes]
    cdef int64_t k, total = 0, top = 0
    for k in range(n_classes):
        total += totals[k]
        top = max(top, totals[k])
    return total - top


cdef void prune(vector[Buffer*] &buffers, vector[FlatNode] &flat, int64_t n_classes, double cp) noexcept nogil:
    """Cut off each subtree that saves less than cp times the root's misses per extra leaf."""
    cdef vector[double] cost
    cdef int32_t i
    cdef double price = cp * misses(buffers, &flat[0], n_classes), alone, kept
    cost.resize(flat.size())
    for i in range(<int32_t> flat.size() - 1, -1, -1):  # children come after their parents
        alone = misses(buffers, &flat[i], n_classes) + price
        cost[i] = alone
        if flat[i].left >= 0:
            kept = cost[flat[i].left] + cost[flat[i].left + 1]
            if alone < kept:
                flat[i].left = -1
            else:
                cost[i] = kept


cdef void keep_best_leaves(vector[Buffer*] &buffers, vector[FlatNode] &flat, int64_t max_leaves) noexcept nogil:
    """Keep the splits that best-first growing makes until it has ``max_leaves`` leaves."""
    cdef priority_queue[pair[double, int32_t]] frontier  # gain, and the node's negative: on a tie the first node
    cdef vector[char] kept
    cdef int64_t n_leaves = 1
    cdef int32_t i, j
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
                frontier.push(pair[double, int32_t](buffers[flat[j].buffer].nodes[flat[j].node].gain, -j))
    for i in range(<int32_t> flat.size()):
        if not kept[i]:
            flat[i].left = -1


cdef void cut_back(
    vector[Buffer*] &buffers, int64_t n_classes, int64_t max_leaves, double cp, vector[FlatNode] &flat,
    vector[int32_t] &stack,
) noexcept nogil:
    """Flatten a grown tree, and cut off what ``max_leaves`` (0: no limit) and ``cp`` don't let stand."""
    flatten(buffers, flat, stack)
    if max_leaves > 0:
        keep_best_leaves(buffers, flat, max_leaves)
    if cp > 0:
        prune(buffers, flat, n_classes, cp)


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
    cdef vector[FlatNode] flat
    cdef vector[int32_t] stack
    cdef int64_t i, k, n_classes = totals.shape[1]
    cdef int32_t n_nodes = <int32_t> left.shape[0]
    for i in range(n_nodes):
        add_node(&buffer, n_classes, 0)
        buffer.nodes[i].left = left[i]
        buffer.nodes[i].gain = gains[i]
        for k in range(n_classes):
            buffer.totals[i * n_classes + k] = totals[i, k]
    buffers.push_back(&buffer)
    cut_back(buffers, n_classes, max_leaf_nodes, cp, flat, stack)
    result = np.full(n_nodes, -1, dtype=np.int32)
    cdef int32_t[::1] kept = result
    stack.push_back(0)
    while stack.size():
        i = stack.back()
        stack.pop_back()
        if flat[i].left >= 0:
            kept[flat[i].node] = left[flat[i].node]
            stack.push_back(flat[i].left)
            stack.push_back(flat[i].left + 1)
    return result
