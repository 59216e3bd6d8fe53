"""Assembly: the parts of a tree that tasks have grown, written down as one.

All that is below a node is stored together. So it is enough to count each part: then all of them can be written at
the same time.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.string cimport memset
from libcpp.vector cimport vector

from kfhe.engine.trees.grown_tree cimport GrownTree
from kfhe.engine.trees.layout cimport CATEGORICAL, MISSING_LEFT, NUMERIC, Node
from kfhe.engine.trees.nodes cimport Buffer, RawNode

cdef struct Extent:
    int64_t n_nodes  # below the root
    int64_t n_leaves
    int64_t n_sets  # of categories

# What is in one buffer, and in those of the tasks below.
cdef struct Part:
    Extent size
    Extent start  # what is stored before it
    int32_t root  # where its root is stored; -1: nowhere, as it was cut off

# A node of a buffer, and where it is stored.
cdef struct Step:
    int32_t node
    int32_t place


cdef void assemble(
    GrownTree tree, vector[Buffer*] &buffers, int64_t n_parts, const uint32_t *members
) noexcept nogil:
    """Write a tree that growing and pruning have left, part by part; the first one has the root.

    ``members`` are the training rows that it was grown on, in the order of the leaves; they get to know theirs.
    """
    cdef vector[Part] parts = vector[Part](n_parts)
    cdef int64_t i
    for i in prange(1, n_parts, num_threads=tree.n_threads, schedule="static"):
        count(buffers[i], parts.data(), &parts[i])
        parts[i].root = -1
    count(buffers[0], parts.data(), &parts[0])
    tree.node_list.resize(1 + parts[0].size.n_nodes)
    tree.gain_list.resize(1 + parts[0].size.n_nodes)
    tree.weight_list.resize(parts[0].size.n_leaves * tree.n_classes)
    tree.set_list.resize(4 * parts[0].size.n_sets)
    parts[0].start.n_nodes = 1
    write(tree, buffers[0], parts.data(), &parts[0], members)
    for i in prange(1, n_parts, num_threads=tree.n_threads, schedule="static"):
        if parts[i].root >= 0:
            write(tree, buffers[i], parts.data(), &parts[i], members)


cdef inline int64_t task_at(const RawNode *node) noexcept nogil:
    """The part that goes on at a node, 1 or more; 0: none does."""
    return -1 - node.left if node.left < -1 else 0


cdef void add(Extent *extent, const Extent *other) noexcept nogil:
    extent.n_nodes += other.n_nodes
    extent.n_leaves += other.n_leaves
    extent.n_sets += other.n_sets


cdef void count(const Buffer *buffer, const Part *parts, Part *part) noexcept nogil:
    """Count what there is of a part."""
    cdef vector[int32_t] waiting = vector[int32_t](1)
    cdef const RawNode *node
    while waiting.size():
        node = &buffer.nodes[waiting.back()]
        waiting.pop_back()
        if task_at(node):
            add(&part.size, &parts[task_at(node)].size)
        elif node.left < 0:
            part.size.n_leaves += 1
        else:
            part.size.n_nodes += 2
            part.size.n_sets += node.category_set >= 0
            waiting.push_back(node.left)
            waiting.push_back(node.left + 1)


cdef void write(
    GrownTree tree, const Buffer *buffer, Part *parts, const Part *part, const uint32_t *members
) noexcept nogil:
    """Write a part, and tell those below where they begin."""
    cdef vector[Step] steps = vector[Step](1)
    cdef Extent next = part.start
    cdef const RawNode *node
    cdef Part *below
    cdef Step step, left, right
    steps[0].place = part.root
    while steps.size():
        step = steps.back()
        steps.pop_back()
        node = &buffer.nodes[step.node]
        if task_at(node):
            below = &parts[task_at(node)]
            below.root, below.start = step.place, next
            add(&next, &below.size)
        elif node.left < 0:
            write_leaf(tree, buffer, &step, <int32_t> next.n_leaves, members)
            next.n_leaves += 1
        else:
            left.node, left.place = node.left, <int32_t> next.n_nodes
            right.node, right.place = left.node + 1, left.place + 1
            write_split(tree, buffer, &step, &next)
            next.n_nodes += 2
            next.n_sets += node.category_set >= 0
            steps.push_back(right)
            steps.push_back(left)


cdef inline void write_leaf(
    GrownTree tree, const Buffer *buffer, const Step *step, int32_t leaf, const uint32_t *members
) noexcept nogil:
    cdef const RawNode *raw = &buffer.nodes[step.node]
    cdef int32_t *leaves = tree.row_leaves.data()
    cdef int64_t k
    memset(&tree.node_list[step.place], 0, sizeof(Node))
    tree.node_list[step.place].left = leaf
    for k in range(tree.n_classes):
        tree.weight_list[leaf * tree.n_classes + k] = <int32_t> buffer.totals[step.node * tree.n_classes + k]
    for k in range(raw.start, raw.end):
        leaves[members[k]] = leaf


cdef inline void write_split(GrownTree tree, const Buffer *buffer, const Step *step, const Extent *next) noexcept nogil:
    cdef const RawNode *raw = &buffer.nodes[step.node]
    cdef Node *node = &tree.node_list[step.place]
    cdef int k
    node.left = <int32_t> next.n_nodes
    node.feature = raw.feature
    node.kind = CATEGORICAL if raw.category_set >= 0 else NUMERIC
    if raw.missing_left:
        node.kind |= MISSING_LEFT
    node.cut = raw.cut
    node.threshold = raw.threshold
    if raw.category_set >= 0:
        node.threshold = next.n_sets
        for k in range(4):
            tree.set_list[4 * next.n_sets + k] = buffer.category_sets[4 * raw.category_set + k]
    tree.gain_list[step.place] = raw.gain
