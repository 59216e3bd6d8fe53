from kfhe.engine.trees.nodes cimport Growth, Pending

cdef void grow_by_histogram(Growth *growth, const Pending *root) noexcept nogil
