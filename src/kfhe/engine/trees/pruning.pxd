from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.nodes cimport Buffer

cdef void cut_back(
    vector[Buffer*] &buffers, int64_t n_parts, int64_t n_classes, int64_t max_leaves, double cp, int n_threads
) noexcept nogil
