from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.layout cimport Node

cdef void add_cut_tree(
    const Node[::1] tree, const uint64_t *sets, vector[Node] &nodes
) except *
