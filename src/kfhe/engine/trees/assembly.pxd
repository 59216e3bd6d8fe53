from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

from kfhe.engine.trees.grown_tree cimport GrownTree
from kfhe.engine.trees.nodes cimport Buffer

cdef void assemble(
    GrownTree tree, vector[Buffer*] &buffers, int64_t n_parts, const uint32_t *members
) noexcept nogil
