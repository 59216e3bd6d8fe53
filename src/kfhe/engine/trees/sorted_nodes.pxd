from libc.stdint cimport int32_t

from kfhe.engine.trees.nodes cimport Buffer, Frame, Pending, Problem, Workspace

cdef void grow_sorted(
    const Problem *problem, const Frame *frame, Buffer *buffer, Workspace *work, const Pending *root, int32_t *votes
) noexcept nogil
