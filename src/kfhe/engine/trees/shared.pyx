"""Sums over workers of which each has some of the rows: that is all in which growing there differs.

They are made by an exchange (`kfhe.exchange`), between two steps of the same growing on each worker. One that fails
keeps its error; growing then comes to its end, and raises it.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport CATEGORICAL, LEAF, MISSING_LEFT, Node
from kfhe.engine.trees.nodes cimport Buffer, Growth, RawNode, add_node, clear

import numpy as np


cdef void sum_cells(Growth *growth, int32_t *cells, int64_t n) noexcept nogil:
    """Add up histograms, in place."""
    if not growth.broken and n:
        with gil:
            growth.broken = not put_sum(<object> growth.exchange, np.asarray(<int32_t[:n]> cells))


cdef int64_t sum_counts(Growth *growth, int64_t *totals, int64_t n_rows) noexcept nogil:
    """Add up the weights of the classes, in place, and return the sum of the numbers of rows."""
    cdef int64_t n_classes = growth.problem.n_classes
    if growth.broken:
        return n_rows
    with gil:
        weights = np.asarray(<int64_t[:n_classes]> totals)
        numbers = np.append(weights, n_rows)
        growth.broken = not put_sum(<object> growth.exchange, numbers)
        weights[:] = numbers[:n_classes]
        n_rows = numbers[n_classes]
    return n_rows


cdef bint put_sum(exchange, numbers) noexcept:
    """Put in place of some numbers the sums of those of all workers; return whether that was possible."""
    try:
        numbers[:] = exchange.sum(numbers.copy())
    except BaseException as error:
        exchange.failure = error
        return False
    return True


cdef int take_over(Buffer *buffer, tree, leaves, rows, int64_t start, uint32_t *members) except -1:
    """Read a subtree that a worker has grown into a buffer, and put the rows here of it into the order of its leaves.

    ``leaves`` are those of the rows, which are the first of ``rows``; from ``start`` on, ``members`` are theirs.
    """
    cdef const uint8_t[::1] bytes_of_nodes = tree[0]
    cdef const double[::1] gains = tree[1]
    cdef const int32_t[:, ::1] weights = tree[2]
    cdef const uint64_t[:, ::1] sets = tree[3]
    cdef const int32_t[::1] leaf_of = leaves
    cdef const uint32_t[::1] row_of = rows[0]
    cdef const Node *nodes = <const Node *> &bytes_of_nodes[0]
    cdef int64_t i, k, q, n_classes = weights.shape[1], n_leaves = weights.shape[0], n_nodes = gains.shape[0]
    cdef vector[int64_t] ends = vector[int64_t](n_leaves + 1)
    cdef vector[int64_t] places
    clear(buffer)
    for i in range(leaf_of.shape[0]):
        ends[leaf_of[i] + 1] += 1
    ends[0] = start
    for i in range(n_leaves):
        ends[i + 1] += ends[i]
    places = ends
    for i in range(leaf_of.shape[0]):
        members[places[leaf_of[i]]] = row_of[i]
        places[leaf_of[i]] += 1
    for i in range(n_nodes):
        add_node(buffer, n_classes, 0)
    for i in range(n_nodes - 1, -1, -1):  # children come after their parents
        read_node(buffer, &nodes[i], i, gains[i])
        if nodes[i].kind == LEAF:
            buffer.nodes[i].start, buffer.nodes[i].end = ends[nodes[i].left], ends[nodes[i].left + 1]
            for k in range(n_classes):
                buffer.totals[i * n_classes + k] = weights[nodes[i].left, k]
        else:
            q = nodes[i].left
            buffer.nodes[i].start, buffer.nodes[i].end = buffer.nodes[q].start, buffer.nodes[q + 1].end
            for k in range(n_classes):
                buffer.totals[i * n_classes + k] = (
                    buffer.totals[q * n_classes + k] + buffer.totals[(q + 1) * n_classes + k]
                )
    for i in range(sets.shape[0]):
        for k in range(4):
            buffer.category_sets.push_back(sets[i, k])
    return 0


cdef void read_node(Buffer *buffer, const Node *node, int64_t i, double gain) noexcept:
    """Read a node back from the form in which trees are kept."""
    cdef RawNode *raw = &buffer.nodes[i]
    raw.left = -1 if node.kind == LEAF else node.left
    raw.feature = node.feature
    raw.category_set = <int32_t> node.threshold if node.kind & CATEGORICAL else -1
    raw.missing_left = (node.kind & MISSING_LEFT) != 0
    raw.cut = node.cut
    raw.threshold = node.threshold
    raw.gain = gain
