from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.growth cimport Problem, Subtree
from kfhe.engine.trees.layout cimport Node

cdef class GrownTree:
    cdef readonly int64_t n_classes
    cdef vector[Node] node_list
    cdef vector[double] gain_list
    cdef vector[int32_t] weight_list  # of the leaves
    cdef vector[uint64_t] set_list
    cdef vector[int32_t] row_leaves
    cdef int n_threads  # that have grown it, and share its rows

    cdef void find_leaves(self, const Problem *problem, const int32_t *weights) noexcept nogil

cdef copied(const void *data, size_t size, dtype)
cdef void assemble(
    GrownTree tree, vector[Subtree*] &subtrees, int64_t n_subtrees, const uint32_t *members
) noexcept nogil
cdef int take_over(Subtree *subtree, tree, leaves, rows, int64_t start, uint32_t *members) except -1
