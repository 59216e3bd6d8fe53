"""Growth: how a subtree grows, with either splitter.

Depth first, a subtree is grown completely. Best first, it is grown up to a number of leaves.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport CATEGORICAL, MISSING_LEFT, NUMERIC
from kfhe.engine.trees.splitter cimport BestFirst, NodeTotals, Split, cut_of, draw_features, is_terminal, key_of_child

import numpy as np

# ---------------------------------------------------------------- nodes


cdef void clear(Subtree *subtree) noexcept nogil:
    subtree.nodes.clear()
    subtree.totals.clear()
    subtree.category_sets.clear()


cdef int32_t add_node(Subtree *subtree, int64_t n_classes, int64_t count) noexcept nogil:
    cdef GrownNode node
    memset(&node, 0, sizeof(GrownNode))
    node.stored.left = -1
    node.count = count
    subtree.nodes.push_back(node)
    subtree.totals.resize(subtree.nodes.size() * n_classes)
    return <int32_t> subtree.nodes.size() - 1


cdef NodeTotals totals_of(const Growth *growth, int32_t index) noexcept nogil:
    cdef NodeTotals totals
    cdef int64_t k
    totals.n_classes = growth.problem.n_classes
    totals.classes = &growth.subtree.totals[index * totals.n_classes]
    totals.weight = totals.squares = 0
    for k in range(totals.n_classes):
        totals.weight += totals.classes[k]
        totals.squares += totals.classes[k] * totals.classes[k]
    totals.count = growth.subtree.nodes[index].count
    totals.min_count = growth.problem.rules.min_samples_leaf
    totals.weighted = growth.problem.weighted
    return totals


cdef bint stays_leaf(const Growth *growth, const OpenNode *node) noexcept nogil:
    """Whether a node is not split, whatever its splits are."""
    cdef int64_t n_classes = growth.problem.n_classes
    return growth.broken or is_terminal(
        growth.problem.rules, &growth.subtree.totals[node.index * n_classes], n_classes,
        growth.subtree.nodes[node.index].count, node.depth,
    )


cdef void record(Growth *growth, int32_t index, const Split *split, const NodeTotals *totals) noexcept nogil:
    """Write a split into its node."""
    cdef const Problem *problem = growth.problem
    cdef Subtree *subtree = growth.subtree
    cdef GrownNode *node = &subtree.nodes[index]
    cdef int64_t feature = split.feature
    cdef int q
    node.gain = split.score - <double> totals.squares / <double> totals.weight
    node.stored.feature = <uint16_t> feature
    node.stored.kind = CATEGORICAL if split.categorical else NUMERIC
    if split.missing_left:
        node.stored.kind |= MISSING_LEFT
    if split.categorical:
        node.stored.threshold = <double> (subtree.category_sets.size() // 4)
        for q in range(4):
            subtree.category_sets.push_back(split.left_bins[q])
    else:
        node.stored.cut = <uint8_t> cut_of(
            split[0], problem.n_bins[feature], &problem.low[256 * feature], &problem.high[256 * feature],
            &node.stored.threshold,
        )


cdef void count_children(Growth *growth, int32_t index, int64_t n_left, int64_t n_of_all) noexcept nogil:
    """Divide a node's rows between its children: the right one has those that the left one has not.

    ``n_left`` rows go left here, and ``n_of_all`` on all workers.
    """
    cdef int64_t k, n_classes = growth.problem.n_classes
    cdef const GrownNode *parent = &growth.subtree.nodes[index]
    cdef GrownNode *left = &growth.subtree.nodes[parent.stored.left]
    cdef GrownNode *right = &left[1]
    cdef const int64_t *totals = &growth.subtree.totals[index * n_classes]
    cdef int64_t *of_left = &growth.subtree.totals[parent.stored.left * n_classes]
    left.start = parent.start
    left.end = right.start = parent.start + <uint32_t> n_left
    right.end = parent.end
    left.count = n_of_all if growth.problem.weighted else 0
    for k in range(n_classes):
        of_left[n_classes + k] = totals[k] - of_left[k]
        if not growth.problem.weighted:
            left.count += of_left[k]
    right.count = parent.count - left.count


# ---------------------------------------------------------------- sums over workers
#
# Sums are made by an exchange (`kfhe.exchange`), between two steps of the same growth on each worker. If one
# fails, the exchange keeps its error, growth ends, and the error is raised.


cdef void sum_cells(Growth *growth, int32_t *cells, int64_t n) noexcept nogil:
    """Add up histograms, in place."""
    if not growth.broken and n:
        with gil:
            growth.broken = not put_sum(<object> growth.exchange, np.asarray(<int32_t[:n]> cells))


cdef bint put_sum(exchange, numbers) noexcept:
    """Replace numbers by their sums over all workers; return whether that was possible."""
    try:
        numbers[:] = exchange.sum(numbers.copy())
    except BaseException as error:
        exchange.failure = error
        return False
    return True


# ---------------------------------------------------------------- one node


cdef void search(
    Growth *growth, const Splitter *splitter, OpenNode *node, const NodeTotals *totals, Split *best
) noexcept nogil:
    """Search all features; or some in the node's random order, and more until one has a split."""
    cdef const Problem *problem = growth.problem
    cdef int32_t *drawn = growth.work.drawn.data()
    cdef int64_t i = 0, n = problem.rules.max_features
    if n >= problem.n_features:
        splitter.search(growth, node, totals, problem.features, problem.n_features, best)
        return
    while i < problem.n_features and (i == 0 or best.score <= 0):
        draw_features(i, i + n, problem.n_features, problem.rules, node.key, drawn)
        splitter.search(growth, node, totals, &drawn[i], n, best)
        i, n = i + n, 1


cdef bint find_split(Growth *growth, const Splitter *splitter, OpenNode *node, Split *split) noexcept nogil:
    """Find and store a node's best split; return whether there is one, otherwise the node is a leaf."""
    cdef NodeTotals totals
    split.score = split.feature = 0
    if not stays_leaf(growth, node):
        totals = totals_of(growth, node.index)
        search(growth, splitter, node, &totals, split)
    if split.score <= 0:
        splitter.close(growth, node)
        return False
    record(growth, node.index, split, &totals)
    return True


cdef void split_node(
    Growth *growth, const Splitter *splitter, const OpenNode *node, const Split *split, OpenNode *small, OpenNode *large
) noexcept nogil:
    """Divide the rows of a node between two children, and set up the children."""
    cdef Subtree *subtree = growth.subtree
    cdef int64_t n_left, n_of_all, n_classes = growth.problem.n_classes
    cdef int32_t left = add_node(subtree, n_classes, 0)
    add_node(subtree, n_classes, 0)
    subtree.nodes[node.index].stored.left = left
    n_left = n_of_all = splitter.partition(growth, node, split, &subtree.totals[left * n_classes])
    if growth.exchange != NULL:
        n_of_all = subtree.n_left[node.index]
        memcpy(
            &subtree.totals[left * n_classes], &subtree.left_totals[node.index * n_classes],
            n_classes * sizeof(int64_t),
        )
    count_children(growth, node.index, n_left, n_of_all)
    name_children(growth, node, left, n_left, small, large)
    splitter.hand_on(growth, node, small, large)


cdef inline void name_children(
    const Growth *growth, const OpenNode *node, int32_t left, int64_t n_left, OpenNode *small, OpenNode *large
) noexcept nogil:
    """Set up both children: rows, depth and key. The smaller child has fewer rows, whatever their weight."""
    cdef bint left_is_small = 2 * n_left <= node.end - node.start
    if growth.exchange != NULL:  # only the weight is the same on all workers
        left_is_small = growth.subtree.nodes[left].count <= growth.subtree.nodes[left + 1].count
    cdef OpenNode *first = small if left_is_small else large
    cdef OpenNode *second = large if left_is_small else small
    small[0] = large[0] = node[0]
    small.depth = large.depth = node.depth + 1
    first.index, second.index = left, left + 1
    first.end = second.start = node.start + n_left
    first.key, second.key = key_of_child(node.key, 0), key_of_child(node.key, 1)


# ---------------------------------------------------------------- all nodes


cdef void grow_depth_first(Growth *growth, const OpenNode *root, const Splitter *splitter) noexcept nogil:
    """Grow a subtree node by node. The smaller child comes first, so that few nodes wait."""
    cdef Workspace *work = growth.work
    cdef size_t bottom = work.stack.size()
    cdef OpenNode node, small, large
    cdef Split split
    work.stack.push_back(root[0])
    while work.stack.size() > bottom:
        node = work.stack.back()
        work.stack.pop_back()
        if splitter.defers(growth, &node):
            continue
        if find_split(growth, splitter, &node, &split):
            split_node(growth, splitter, &node, &split, &small, &large)
            work.stack.push_back(large)
            work.stack.push_back(small)


# A node with a split, which waits to be divided.
cdef struct Waiting:
    OpenNode node
    Split split


cdef void grow_best_first(Growth *growth, const OpenNode *root, const Splitter *splitter) noexcept nogil:
    """Grow a tree until it has ``growth.max_leaves`` leaves."""
    cdef BestFirst order
    cdef vector[Waiting] waiting = vector[Waiting](1)  # by their numbers, in the order as in the subtree
    cdef OpenNode children[2]
    cdef Waiting parent
    cdef int64_t n_leaves = 1
    waiting[0].node = root[0]
    offer(growth, splitter, &waiting[0], order)
    while n_leaves < growth.max_leaves and not order.empty():
        parent = waiting[order.next()]
        split_node(growth, splitter, &parent.node, &parent.split, &children[0], &children[1])
        waiting.resize(order.add_children(parent.node.index) + 2)
        for child in children:
            waiting[child.index].node = child
            offer(growth, splitter, &waiting[child.index], order)
        n_leaves += 1
    while not order.empty():
        splitter.close(growth, &waiting[order.next()].node)


cdef void offer(Growth *growth, const Splitter *splitter, Waiting *waiting, BestFirst &order) noexcept nogil:
    """Add a node to the waiting ones, if it has a split."""
    if find_split(growth, splitter, &waiting.node, &waiting.split):
        order.offer(waiting.node.index, growth.subtree.nodes[waiting.node.index].gain)
