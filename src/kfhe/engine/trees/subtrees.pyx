"""Subtrees: the loops that grow them, whichever way their nodes are worked on.

Depth first, a subtree is grown whole. Best first, of all nodes that wait the one whose split gains most is split next,
until there are enough leaves: what would be cut off is never grown.
"""

from libc.stdint cimport int32_t, int64_t
from libcpp.algorithm cimport pop_heap, push_heap
from libcpp.vector cimport vector

from kfhe.engine.trees.nodes cimport (
    Buffer, Growth, Pending, Problem, Workspace, add_children, is_terminal, record, settle_children,
    totals_of,
)
from kfhe.engine.trees.shared cimport sum_counts
from kfhe.engine.trees.splitter cimport NodeTotals, Split, key_of_child


cdef void grow_subtree(Growth *growth, const Pending *root, const Way *way) noexcept nogil:
    """Grow a subtree, node by node. The smaller child is worked on first: then few nodes wait."""
    cdef Workspace *work = growth.work
    cdef size_t bottom = work.stack.size()
    cdef Pending task, small, large
    cdef Split split
    cdef bint terminal
    work.stack.push_back(root[0])
    while work.stack.size() > bottom:
        task = work.stack.back()
        work.stack.pop_back()
        terminal = growth.broken or is_terminal(growth.problem, growth.buffer, task.node, task.depth)
        if not terminal and way.passes_on(growth, &task):
            continue
        if find_split(growth, way, &task, terminal, &split):
            part(growth, way, &task, &split, &small, &large)
            work.stack.push_back(large)
            work.stack.push_back(small)


cdef bint find_split(
    Growth *growth, const Way *way, Pending *task, bint terminal, Split *split
) noexcept nogil:
    """Find a node's best split and write it down; return whether there is one: else the node is a leaf."""
    cdef const Problem *problem = growth.problem
    cdef Buffer *buffer = growth.buffer
    cdef NodeTotals totals
    split.score = split.feature = 0
    if not terminal:
        totals = totals_of(problem, buffer, task.node)
        way.search(growth, task, &totals, split)
    if split.score <= 0:
        way.close(growth, task)
        return False
    record(problem, buffer, task.node, split, &totals)
    return True


cdef void part(
    Growth *growth, const Way *way, const Pending *task, const Split *split, Pending *small, Pending *large
) noexcept nogil:
    """Part a node's rows between two children, which get to know what they are."""
    cdef const Problem *problem = growth.problem
    cdef Buffer *buffer = growth.buffer
    cdef int32_t left = add_children(problem, buffer, task.node)
    cdef int64_t n_left = way.partition(growth, task, split, &buffer.totals[left * problem.n_classes])
    cdef int64_t n_of_all = n_left
    if growth.exchange != NULL:
        n_of_all = sum_counts(growth, &buffer.totals[left * problem.n_classes], n_left)
    settle_children(problem, buffer, task.node, n_left, n_of_all)
    name_children(buffer, task, left, n_left, small, large)
    way.hand_on(growth, task, small, large)


cdef inline void name_children(
    const Buffer *buffer, const Pending *task, int32_t left, int64_t n_left, Pending *small, Pending *large
) noexcept nogil:
    """Tell both children what they are: node, rows, depth and key."""
    cdef bint left_is_small = buffer.nodes[left].count <= buffer.nodes[left + 1].count
    cdef Pending *first = small if left_is_small else large
    cdef Pending *second = large if left_is_small else small
    small[0] = large[0] = task[0]
    small.depth = large.depth = task.depth + 1
    first.node, second.node = left, left + 1
    first.end = second.start = task.start + n_left
    first.key, second.key = key_of_child(task.key, 0), key_of_child(task.key, 1)


# ---------------------------------------------------------------- best first


cdef struct Place:
    int32_t parent
    int32_t depth


# A node that has its split, and may be parted by it.
cdef struct Waiting:
    Pending task
    Split split
    double gain


cdef bint comes_first(const Place *places, int32_t a, int32_t b) noexcept nogil:
    """Whether a node comes before another in the order in which pruning lists the nodes of a tree.

    That is the order of their parents, from the root down and the left side first; then that of the sides.
    """
    cdef int32_t p = places[a].parent, q = places[b].parent
    cdef bint shallower = places[p].depth < places[q].depth
    if p == q:
        return a < b
    while places[p].depth > places[q].depth:
        p = places[p].parent
    while places[q].depth > places[p].depth:
        q = places[q].parent
    if p == q:
        return shallower
    while places[p].parent != places[q].parent:
        p, q = places[p].parent, places[q].parent
    return p < q


cdef cppclass PartedLater:
    const Place *places
    const Waiting *waiting

    bint call "operator()"(int32_t a, int32_t b) noexcept nogil const:
        """Whether the split of a gains less than that of b; on a tie, whether b comes first."""
        if this.waiting[a].gain != this.waiting[b].gain:
            return this.waiting[a].gain < this.waiting[b].gain
        return comes_first(this.places, this.waiting[b].task.node, this.waiting[a].task.node)


cdef void grow_best_first(
    Growth *growth, const Pending *root, const Way *way, int64_t max_leaves
) noexcept nogil:
    """Grow a tree until it has so many leaves."""
    cdef vector[Waiting] waiting
    cdef vector[int32_t] heap  # positions in waiting
    cdef vector[Place] places  # of all nodes
    cdef PartedLater parted_later
    cdef Pending children[2]
    cdef Waiting node
    cdef int32_t top
    cdef int64_t n_leaves = 1
    cdef int i
    places.resize(1)
    places[0].parent = places[0].depth = 0
    children[0] = root[0]
    if wait(growth, way, &children[0], waiting):
        heap.push_back(0)
    while n_leaves < max_leaves and heap.size():
        parted_later.places, parted_later.waiting = places.data(), waiting.data()
        pop_heap(heap.begin(), heap.end(), parted_later)
        top = heap.back()
        heap.pop_back()
        node = waiting[top]
        part(growth, way, &node.task, &node.split, &children[0], &children[1])
        n_leaves += 1
        places.resize(growth.buffer.nodes.size())
        for i in range(2):
            places[children[i].node].parent, places[children[i].node].depth = node.task.node, children[i].depth
        for i in range(2):
            if wait(growth, way, &children[i], waiting):
                heap.push_back(<int32_t> waiting.size() - 1)
                parted_later.places, parted_later.waiting = places.data(), waiting.data()
                push_heap(heap.begin(), heap.end(), parted_later)
    for i in range(<int> heap.size()):
        node = waiting[heap[i]]
        way.close(growth, &node.task)


cdef bint wait(Growth *growth, const Way *way, Pending *task, vector[Waiting] &waiting) noexcept nogil:
    """Let a node wait with its split; return whether it has one."""
    cdef Waiting node
    cdef bint terminal = growth.broken or is_terminal(growth.problem, growth.buffer, task.node, task.depth)
    if not find_split(growth, way, task, terminal, &node.split):
        return False
    node.task, node.gain = task[0], growth.buffer.nodes[task.node].gain
    waiting.push_back(node)
    return True
