from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.growth cimport Subtree

cdef void cut_back(
    vector[Subtree*] &subtrees, int64_t n_subtrees, int64_t n_classes, int64_t max_leaves, double cp, int n_threads
) noexcept nogil
