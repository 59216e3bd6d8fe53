from kfhe.engine.trees.growth cimport Growth, OpenNode

cdef void grow_sorted(Growth *growth, const OpenNode *root) noexcept nogil
