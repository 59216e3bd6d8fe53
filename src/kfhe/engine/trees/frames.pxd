from libc.stdint cimport uint8_t, uint32_t
from libcpp.vector cimport vector

from kfhe.engine.trees.nodes cimport Frame, Pending, Problem


# The rows of some tasks, copied together.
cdef cppclass Frames:
    vector[Frame] of_task
    vector[uint8_t] codes
    vector[uint32_t] origins


cdef void gather(
    const Problem *problem, const Frame *table, const vector[Pending] &tasks, Frames *frames, int n_threads
) noexcept nogil
