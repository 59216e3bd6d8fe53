"""Leaf votes: the votes of leaves, from the weights of the classes in them.

A hard vote is the class with the largest weight, a soft vote is the share of each class. Shares can be shrunk by a
filter down each tree: the class shares are an estimate, and each split measures it anew. The estimate of a node is that
of its parent, moved towards its own shares by the gain N / (N + shrinkage), where N is the number of rows of the
parent: few rows are a noisy measurement, and move it little.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport LEAF, Node

import numpy as np

cdef enum:
    PARALLEL_NODES = 8192
    PARTS_PER_THREAD = 4


def leaf_classes(const int32_t[:, ::1] leaf_weights, int n_threads=1):
    """Return the class that each leaf votes for (int32): the heaviest, and the first one of equals."""
    cdef int64_t leaf, n_leaves = leaf_weights.shape[0]
    result = np.empty(n_leaves, dtype=np.int32)
    cdef int32_t[::1] classes = result
    if n_leaves < PARALLEL_NODES:
        n_threads = 1
    for leaf in prange(n_leaves, nogil=True, num_threads=n_threads, schedule="static"):
        classes[leaf] = heaviest(&leaf_weights[leaf, 0], leaf_weights.shape[1])
    return result


def leaf_shares(const int32_t[:, ::1] leaf_weights, int n_threads=1):
    """Return the share of each class in each leaf's weight."""
    cdef int64_t leaf, n_leaves = leaf_weights.shape[0]
    result = np.empty((n_leaves, leaf_weights.shape[1]))
    cdef double[:, ::1] shares = result
    if n_leaves < PARALLEL_NODES:
        n_threads = 1
    for leaf in prange(n_leaves, nogil=True, num_threads=n_threads, schedule="static"):
        write_shares(&leaf_weights[leaf, 0], leaf_weights.shape[1], &shares[leaf, 0])
    return result


# ---------------------------------------------------------------- shrinkage


# A tree, what its nodes weigh, and what its leaves vote for under some shrinkages.
cdef struct Filtered:
    const Node *nodes
    int64_t n_nodes
    const int32_t *leaf_weights
    int64_t n_leaves
    int64_t n_classes
    double *shares  # of each class in each node, and behind them the node's weight
    const double *shrinkages
    int64_t n_shrinkages
    double *votes  # by shrinkage, leaf and class


cdef void add_up(const Filtered *tree, const vector[int32_t] &some) noexcept nogil:
    """Write the weight of each class in some nodes, given parents first, and behind them the node's weight."""
    cdef int64_t i, k, n_classes = tree.n_classes, width = n_classes + 1, place = <int64_t> some.size()
    cdef const Node *node
    cdef const double *left
    cdef double *own
    while place > 0:
        place -= 1
        i = some[place]
        node, own = &tree.nodes[i], &tree.shares[i * width]
        left = &tree.shares[node.left * width]
        own[n_classes] = 0
        for k in range(n_classes):
            own[k] = (
                tree.leaf_weights[node.left * n_classes + k] if node.kind == LEAF else left[k] + left[width + k]
            )
            own[n_classes] += own[k]


cdef void add_up_below(const Filtered *tree, int32_t root) noexcept nogil:
    """Write what the nodes of a subtree weigh."""
    cdef vector[int32_t] below
    cdef vector[int32_t] waiting = vector[int32_t](1, root)
    while waiting.size():
        below.push_back(waiting.back())
        waiting.pop_back()
        if tree.nodes[below.back()].kind != LEAF:
            waiting.push_back(tree.nodes[below.back()].left + 1)
            waiting.push_back(tree.nodes[below.back()].left)
    add_up(tree, below)


cdef void divide(double *own, int64_t n_classes) noexcept nogil:
    """Turn what the classes weigh in a node into their shares."""
    cdef int64_t k
    for k in range(n_classes):
        own[k] /= own[n_classes]


# A node on the way down, and the position of its estimates: at each depth there is room for two children.
cdef struct Visit:
    int32_t node
    int32_t place


cdef void filter_down(
    const Filtered *tree, int32_t root, const double *given, const int32_t *part_of, double *kept
) noexcept nogil:
    """Write the estimates of the leaves of a subtree, whose root has some ``given``, for all shrinkages at once.

    Where another part begins (``part_of`` is -1 or less), they are ``kept`` for it.
    """
    cdef int64_t b, k, n_classes = tree.n_classes, size = tree.n_shrinkages * n_classes, child
    cdef const Node *nodes = tree.nodes
    cdef vector[double] estimates = vector[double](2 * size)
    cdef vector[Visit] visits = vector[Visit](1)
    cdef Visit visit, left, right
    cdef const double *parents
    cdef double *children
    cdef double gain
    visits[0].node = root
    memcpy(estimates.data(), given, size * sizeof(double))
    while visits.size():
        visit = visits.back()
        visits.pop_back()
        if part_of != NULL and part_of[visit.node] < 0:
            memcpy(&kept[(-1 - part_of[visit.node]) * size], &estimates[visit.place * size], size * sizeof(double))
            continue
        left.node, left.place = nodes[visit.node].left, visit.place // 2 * 2 + 2
        right.node, right.place = left.node + 1, left.place + 1
        if nodes[visit.node].kind == LEAF:
            for b in range(tree.n_shrinkages):
                for k in range(n_classes):
                    tree.votes[(b * tree.n_leaves + left.node) * n_classes + k] = (
                        estimates[visit.place * size + b * n_classes + k]
                    )
            continue
        if <int64_t> estimates.size() < (left.place + 2) * size:
            estimates.resize(2 * (left.place + 2) * size)
        parents = &tree.shares[visit.node * (n_classes + 1)]
        children = &tree.shares[left.node * (n_classes + 1)]
        divide(children, n_classes)
        divide(&children[n_classes + 1], n_classes)
        for b in range(tree.n_shrinkages):
            gain = parents[n_classes] / (parents[n_classes] + tree.shrinkages[b])
            for child in range(2):
                filter_once(
                    &estimates[visit.place * size + b * n_classes], gain, tree.shrinkages[b] == 0, n_classes, parents,
                    &children[child * (n_classes + 1)], &estimates[(left.place + child) * size + b * n_classes],
                )
        visits.push_back(right)
        visits.push_back(left)


cdef inline void filter_once(
    const double *before, double gain, bint exact, int64_t n_classes, const double *parents, const double *own,
    double *estimates,
) noexcept nogil:
    """Move an estimate; ``exact``: set it to the child's own shares, without rounding errors."""
    cdef int64_t k
    for k in range(n_classes):
        estimates[k] = own[k] if exact else before[k] + gain * (own[k] - parents[k])


cdef void divide_tree(
    const Filtered *tree, int64_t most, vector[int32_t] &upper, vector[int32_t] &roots, int32_t *part_of
) noexcept nogil:
    """Divide a tree into the subtrees of at most so many nodes and the nodes above them, parents first.

    ``part_of`` of the root of subtree 0, 1 and so on becomes -1, -2 and so on.
    """
    cdef int64_t i
    cdef int32_t node, left
    cdef vector[int32_t] waiting = vector[int32_t](1)
    for i in range(tree.n_nodes - 1, -1, -1):  # children come after their parents
        left = tree.nodes[i].left
        part_of[i] = 1 if tree.nodes[i].kind == LEAF else 1 + part_of[left] + part_of[left + 1]
    while waiting.size():
        node = waiting.back()
        waiting.pop_back()
        if part_of[node] <= most:
            roots.push_back(node)
            part_of[node] = -<int32_t> roots.size()
            continue
        upper.push_back(node)
        waiting.push_back(tree.nodes[node].left + 1)
        waiting.push_back(tree.nodes[node].left)


cdef void filter_tree(Filtered *tree, int n_threads) noexcept nogil:
    """Write the votes of a tree; threads share the subtrees of a large one."""
    cdef int64_t b, r, size = tree.n_shrinkages * tree.n_classes, most = tree.n_nodes
    cdef vector[int32_t] part_of = vector[int32_t](tree.n_nodes)
    cdef vector[int32_t] upper, roots
    cdef vector[double] first = vector[double](size)
    cdef vector[double] kept
    if n_threads > 1 and tree.n_nodes >= PARALLEL_NODES:
        most = tree.n_nodes // (PARTS_PER_THREAD * n_threads)
    else:
        n_threads = 1
    divide_tree(tree, most, upper, roots, part_of.data())
    kept.resize(<int64_t> roots.size() * size)
    for r in prange(<int64_t> roots.size(), num_threads=n_threads, schedule="dynamic"):
        add_up_below(tree, roots[r])
    add_up(tree, upper)
    divide(tree.shares, tree.n_classes)
    for b in range(tree.n_shrinkages):
        memcpy(&first[b * tree.n_classes], tree.shares, tree.n_classes * sizeof(double))
    filter_down(tree, 0, first.data(), part_of.data(), kept.data())
    for r in prange(<int64_t> roots.size(), num_threads=n_threads, schedule="dynamic"):
        filter_down(tree, roots[r], &kept[r * size], NULL, NULL)


def shrunken_shares(nodes, const int32_t[:, ::1] leaf_weights, const double[::1] shrinkages, int n_threads=1):
    """Return what each leaf of a tree votes for, for each of some shrinkages.

    The result has the shape (n_shrinkages, n_leaves, n_classes). Without shrinkage they are the leaf's shares.
    """
    cdef const uint8_t[::1] data = nodes.view(np.uint8)
    cdef Filtered tree
    result = np.empty((shrinkages.shape[0], leaf_weights.shape[0], leaf_weights.shape[1]))
    cdef double[:, :, ::1] votes = result
    tree.nodes, tree.n_nodes = <const Node *> &data[0], data.shape[0] // <int64_t> sizeof(Node)
    tree.leaf_weights = &leaf_weights[0, 0]
    tree.n_leaves, tree.n_classes = leaf_weights.shape[0], leaf_weights.shape[1]
    tree.shrinkages, tree.n_shrinkages, tree.votes = &shrinkages[0], shrinkages.shape[0], &votes[0, 0, 0]
    cdef double[::1] shares = np.empty(tree.n_nodes * (tree.n_classes + 1))
    tree.shares = &shares[0]
    with nogil:
        filter_tree(&tree, n_threads)
    return result


cdef void filter_one(
    const Node *nodes, int64_t n_nodes, const int32_t *leaf_weights, int64_t n_leaves, int64_t n_classes,
    const double *shrinkage, double *votes,
) noexcept nogil:
    """Write the votes of one of many trees."""
    cdef Filtered tree
    cdef vector[double] shares = vector[double](n_nodes * (n_classes + 1))
    tree.nodes, tree.n_nodes, tree.leaf_weights, tree.n_leaves = nodes, n_nodes, leaf_weights, n_leaves
    tree.n_classes, tree.shrinkages, tree.n_shrinkages, tree.votes = n_classes, shrinkage, 1, votes
    tree.shares = shares.data()
    filter_tree(&tree, 1)


def shrunken_shares_of_all(
    const Node[::1] nodes, const int32_t[:, ::1] leaf_weights, const int64_t[::1] tree_nodes,
    const int64_t[::1] tree_leaves, double shrinkage, int n_threads=1,
):
    """Return what each leaf of many trees votes for."""
    cdef int64_t t, n_classes = leaf_weights.shape[1]
    result = np.empty((leaf_weights.shape[0], n_classes))
    cdef double[:, ::1] votes = result
    if nodes.shape[0] < PARALLEL_NODES:
        n_threads = 1
    for t in prange(tree_nodes.shape[0] - 1, nogil=True, num_threads=n_threads, schedule="dynamic"):
        filter_one(
            &nodes[tree_nodes[t]], tree_nodes[t + 1] - tree_nodes[t], &leaf_weights[tree_leaves[t], 0],
            tree_leaves[t + 1] - tree_leaves[t], n_classes, &shrinkage, &votes[tree_leaves[t], 0],
        )
    return result
