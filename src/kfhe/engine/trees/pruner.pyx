"""Pruner: turns nodes into leaves, and drops the subtrees below them."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.growth cimport GrownNode, Subtree, add_node
from kfhe.engine.trees.splitter cimport BestFirst

import numpy as np


cdef int64_t misses(const Subtree *subtree, int64_t node, int64_t n_classes) noexcept nogil:
    """Weight of the node's rows that are not in its majority class."""
    cdef const int64_t *totals = &subtree.totals[node * n_classes]
    cdef int64_t k, total = 0, top = 0
    for k in range(n_classes):
        total += totals[k]
        top = max(top, totals[k])
    return total - top


cdef double prune(Subtree *subtree, int64_t n_classes, double price, const double *costs_of_subtrees) noexcept nogil:
    """Cut off subtrees that save less than a price per additional leaf; return the cost of the rest."""
    cdef vector[double] costs = vector[double](subtree.nodes.size())
    cdef GrownNode *node
    cdef double kept
    cdef int64_t i
    for i in range(<int64_t> subtree.nodes.size() - 1, -1, -1):  # children come after their parents
        node = &subtree.nodes[i]
        if node.stored.left < -1:
            costs[i] = costs_of_subtrees[-1 - node.stored.left]
            continue
        costs[i] = misses(subtree, i, n_classes) + price
        if node.stored.left >= 0:
            kept = costs[node.stored.left] + costs[node.stored.left + 1]
            if costs[i] < kept:
                node.stored.left = -1
            else:
                costs[i] = kept
    return costs[0]


cdef void prune_subtrees(
    vector[Subtree*] &subtrees, int64_t n_subtrees, int64_t n_classes, double cp, int n_threads
) noexcept nogil:
    """Cut off each subtree that saves less than cp times the root's misses per additional leaf."""
    cdef double price = cp * misses(subtrees[0], 0, n_classes)
    cdef vector[double] costs = vector[double](n_subtrees)
    cdef int64_t i
    for i in prange(1, n_subtrees, num_threads=n_threads, schedule="dynamic"):
        costs[i] = prune(subtrees[i], n_classes, price, NULL)
    prune(subtrees[0], n_classes, price, costs.data())


# A node of the whole tree.
cdef struct Place:
    int32_t subtree
    int32_t index


cdef GrownNode *node_at(vector[Subtree*] &subtrees, Place *place) noexcept nogil:
    """A node's own position, or that of the deferred subtree where it continues."""
    cdef GrownNode *node = &subtrees[place.subtree].nodes[place.index]
    if node.stored.left < -1:
        place.subtree, place.index = -1 - node.stored.left, 0
        node = &subtrees[place.subtree].nodes[0]
    return node


cdef void keep_best_leaves(vector[Subtree*] &subtrees, int64_t max_leaves) noexcept nogil:
    """Keep the splits that best-first growth makes up to ``max_leaves`` leaves."""
    cdef BestFirst order
    cdef vector[Place] places = vector[Place](1)
    cdef GrownNode *node = node_at(subtrees, &places[0])
    cdef int64_t n_leaves = 1
    cdef int32_t i, k
    if node.stored.left >= 0:
        order.offer(0, node.gain)
    while n_leaves < max_leaves and not order.empty():
        i = order.next()
        n_leaves += 1
        order.add_children(i)
        for k in range(2):
            places.push_back(places[i])
            places.back().index = subtrees[places[i].subtree].nodes[places[i].index].stored.left + k
            node = node_at(subtrees, &places.back())
            if node.stored.left >= 0:
                order.offer(<int32_t> places.size() - 1, node.gain)
    while not order.empty():
        node_at(subtrees, &places[order.next()]).stored.left = -1


cdef void cut_back(
    vector[Subtree*] &subtrees, int64_t n_subtrees, int64_t n_classes, int64_t max_leaves, double cp, int n_threads
) noexcept nogil:
    """Prune a tree of some subtrees to ``max_leaves`` (0: no limit) and by ``cp``."""
    if max_leaves > 0:
        keep_best_leaves(subtrees, max_leaves)
    if cp > 0:
        prune_subtrees(subtrees, n_subtrees, n_classes, cp, n_threads)


def pruned(
    const int32_t[::1] left, const double[::1] gains, const int64_t[:, ::1] totals, *, int64_t max_leaf_nodes=0,
    double cp=0.0,
):
    """Prune a tree given as arrays with one entry per node, root first; siblings are neighbours.

    Parameters
    ----------
    left : int32 array of shape (n_nodes,)
        The left child of each node; -1 is a leaf.
    gains : array of shape (n_nodes,)
        How much each node's split lowers the weighted Gini impurity.
    totals : int64 array of shape (n_nodes, n_classes)
        Weight of each class in each node.
    max_leaf_nodes : int
        Keep only the best splits, up to this number of leaves; 0: all.
    cp : float
        Complexity parameter: a subtree is cut off if it saves less than `cp` times the root's misclassified
        weight per additional leaf.

    Returns
    -------
    int32 array of shape (n_nodes,)
        The left children of the remaining nodes, and -1 for all others.
    """
    cdef Subtree subtree
    cdef vector[Subtree*] subtrees
    cdef vector[int32_t] stack = vector[int32_t](1)
    cdef int64_t i, k, n_classes = totals.shape[1]
    cdef int32_t n_nodes = <int32_t> left.shape[0]
    for i in range(n_nodes):
        add_node(&subtree, n_classes, 0)
        subtree.nodes[i].stored.left = left[i]
        subtree.nodes[i].gain = gains[i]
        for k in range(n_classes):
            subtree.totals[i * n_classes + k] = totals[i, k]
    subtrees.push_back(&subtree)
    cut_back(subtrees, 1, n_classes, max_leaf_nodes, cp, 1)
    result = np.full(n_nodes, -1, dtype=np.int32)
    cdef int32_t[::1] kept = result
    while stack.size():
        i = stack.back()
        stack.pop_back()
        if subtree.nodes[i].stored.left >= 0:
            kept[i] = left[i]
            stack.push_back(left[i])
            stack.push_back(left[i] + 1)
    return result
