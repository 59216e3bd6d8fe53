from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.nodes cimport Buffer, Frame, Pending, Problem, Workspace

cdef int64_t scratch_size(const Problem *problem) noexcept nogil

cdef void grow_by_histogram(
    const Problem *problem, Frame *frame, Buffer *buffer, Workspace *work, const Pending *root, int64_t task_rows,
    vector[Pending] *tasks, int n_threads, int32_t *votes,
) noexcept nogil
