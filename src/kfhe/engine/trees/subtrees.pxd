from libc.stdint cimport int64_t

from kfhe.engine.trees.nodes cimport Growth, Pending
from kfhe.engine.trees.splitter cimport NodeTotals, Split

# A way to work on nodes: what differs between those of many rows and those of few.
cdef struct Way:
    # Leave a node to another way, or to later; return whether that was done.
    bint (*passes_on)(Growth *growth, Pending *task) noexcept nogil
    # Find the best split; one of score 0 if there is none.
    void (*search)(Growth *growth, Pending *task, const NodeTotals *totals, Split *best) noexcept nogil
    # Move the rows that go left to the front, add their classes up in the left child, return how many they are.
    int64_t (*partition)(Growth *growth, const Pending *task, const Split *split, int64_t *left_totals) noexcept nogil
    # Leave to the children what the node's search has found out and they can use.
    void (*hand_on)(Growth *growth, const Pending *task, Pending *small, Pending *large) noexcept nogil
    # Write down which training rows are in a leaf.
    void (*close)(Growth *growth, const Pending *task) noexcept nogil

cdef void grow_subtree(Growth *growth, const Pending *root, const Way *way) noexcept nogil
cdef void grow_best_first(
    Growth *growth, const Pending *root, const Way *way, int64_t max_leaves
) noexcept nogil
