from kfhe.engine.trees.growth cimport Growth, OpenNode

cdef void grow_by_histogram(Growth *growth, const OpenNode *root) noexcept nogil
