"""Pruning: the nodes of a grown tree in one order, and what of them stays."""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.nodes cimport Buffer


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
    cdef vector[int32_t] frontier
    cdef vector[char] kept
    cdef int64_t n_leaves = 1
    cdef int32_t i, j, best
    cdef double gain, best_gain
    kept.resize(flat.size())
    if flat[0].left >= 0:
        frontier.push_back(0)
    while n_leaves < max_leaves and frontier.size():
        best = 0
        best_gain = -INFINITY
        for i in range(<int32_t> frontier.size()):
            gain = buffers[flat[frontier[i]].buffer].nodes[flat[frontier[i]].node].gain
            if gain > best_gain or (gain == best_gain and frontier[i] < frontier[best]):
                best, best_gain = i, gain
        i = frontier[best]
        frontier[best] = frontier.back()
        frontier.pop_back()
        kept[i] = 1
        n_leaves += 1
        for j in range(flat[i].left, flat[i].left + 2):
            if flat[j].left >= 0:
                frontier.push_back(j)
    for i in range(<int32_t> flat.size()):
        if not kept[i]:
            flat[i].left = -1
