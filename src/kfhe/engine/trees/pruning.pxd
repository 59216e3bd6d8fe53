from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.nodes cimport Buffer

cdef struct FlatNode:
    int32_t buffer
    int32_t node
    int32_t left  # in the flat order, -1: a leaf
    int32_t place  # in the tree as it is stored


cdef void cut_back(
    vector[Buffer*] &buffers, int64_t n_classes, int64_t max_leaves, double cp, vector[FlatNode] &flat,
    vector[int32_t] &stack,
) noexcept nogil
