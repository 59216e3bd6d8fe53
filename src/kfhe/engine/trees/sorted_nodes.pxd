from kfhe.engine.trees.nodes cimport Growth, Pending

cdef void grow_sorted(Growth *growth, const Pending *root) noexcept nogil
