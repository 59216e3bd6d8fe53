"""Subtrees: the one loop that grows them, whichever way their nodes are worked on."""

from libc.stdint cimport int32_t, int64_t

from kfhe.engine.trees.nodes cimport (
    Buffer, Growth, Pending, Problem, Workspace, add_children, is_terminal, key_of_child, record, settle_children,
    totals_of,
)
from kfhe.engine.trees.split cimport NodeTotals, Split


cdef void grow_subtree(Growth *growth, const Pending *root, const Way *way) noexcept nogil:
    """Grow a subtree, node by node. The smaller child is worked on first: then few nodes wait."""
    cdef const Problem *problem = growth.problem
    cdef Buffer *buffer = growth.buffer
    cdef Workspace *work = growth.work
    cdef size_t bottom = work.stack.size()
    cdef Pending task, small, large
    cdef NodeTotals totals
    cdef Split best
    cdef int32_t left
    cdef int64_t n_left
    work.stack.push_back(root[0])
    while work.stack.size() > bottom:
        task = work.stack.back()
        work.stack.pop_back()
        best.score = 0
        if not is_terminal(problem, buffer, task.node, task.depth):
            if way.passes_on(growth, &task):
                continue
            totals = totals_of(problem, buffer, task.node)
            way.search(growth, &task, &totals, &best)
        if best.score <= 0:
            way.close(growth, &task, buffer.nodes[task.node].start)
            continue
        record(problem, buffer, task.node, &best, &totals)
        left = add_children(problem, buffer, task.node)
        n_left = way.partition(growth, &task, &best, &buffer.totals[left * problem.n_classes])
        settle_children(problem, buffer, task.node, n_left)
        name_children(&task, left, n_left, &small, &large)
        way.hand_on(growth, &task, &small, &large)
        work.stack.push_back(large)
        work.stack.push_back(small)


cdef inline void name_children(
    const Pending *task, int32_t left, int64_t n_left, Pending *small, Pending *large
) noexcept nogil:
    """Tell both children what they are: node, rows, depth and key."""
    cdef bint left_is_small = 2 * n_left <= task.end - task.start
    cdef Pending *first = small if left_is_small else large
    cdef Pending *second = large if left_is_small else small
    small[0] = large[0] = task[0]
    small.depth = large.depth = task.depth + 1
    first.node, second.node = left, left + 1
    first.end = second.start = task.start + n_left
    first.key, second.key = key_of_child(task.key, 0), key_of_child(task.key, 1)
