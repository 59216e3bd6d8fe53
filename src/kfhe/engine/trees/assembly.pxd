from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.grown_tree cimport GrownTree
from kfhe.engine.trees.nodes cimport Buffer

cdef void assemble(
    GrownTree tree, vector[Buffer*] &buffers, int64_t n_parts, int32_t *leaf_at, int n_threads
) noexcept nogil
