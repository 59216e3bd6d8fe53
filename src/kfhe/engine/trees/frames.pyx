"""Frames: the rows of tasks, copied together in memory.

The rows of one task are spread over the whole table, which is large. So all tasks take their rows from a strip of a
column while it is in the cache, and each column is read from memory only once for many tasks.
"""

from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libcpp.algorithm cimport lower_bound
from libcpp.vector cimport vector

from kfhe.engine.trees.nodes cimport Frame, Pending, Problem

cdef enum:
    STRIP = 262144  # rows; their bins in one column fit the cache of a core


cdef void gather(
    const Problem *problem, const Frame *table, const vector[Pending] &tasks, Frames *frames, int n_threads
) noexcept nogil:
    """Make a frame for each task: the table's, or one of its own if its rows are far apart."""
    cdef int64_t f, t, n, n_gathered = 0, n_tasks = <int64_t> tasks.size()
    cdef Frame *frame
    frames.of_task.assign(n_tasks, table[0])
    for t in range(n_tasks):
        n = tasks[t].end - tasks[t].start
        if problem.n_rows > 4 * n:
            frames.of_task[t].stride = n
            n_gathered += n
    if n_gathered == 0:
        return
    frames.codes.resize(n_gathered * problem.n_features)
    frames.origins.resize(n_gathered)
    n_gathered = 0
    for t in range(n_tasks):
        frame = &frames.of_task[t]
        if frame.stride < table.stride:
            frame.codes = &frames.codes[n_gathered * problem.n_features]
            frame.origin = &frames.origins[n_gathered]
            n_gathered += frame.stride
    for f in prange(problem.n_features, num_threads=n_threads, schedule="dynamic"):
        hand_out(&table.codes[f * table.stride], table.stride, tasks, frames, f)
    for t in prange(n_tasks, num_threads=n_threads, schedule="dynamic"):
        number_rows(&frames.of_task[t], tasks[t].start, tasks[t].end)


cdef void hand_out(
    const uint8_t *column, int64_t n_rows, const vector[Pending] &tasks, Frames *frames, int64_t f
) noexcept nogil:
    """Copy the bins of one column, strip by strip; the rows of a task are in their order."""
    cdef int64_t i, t, start = 0
    cdef const Frame *frame
    cdef const uint32_t *row
    cdef const uint32_t *end
    cdef uint8_t *target
    while start < n_rows:
        for t in range(<int64_t> tasks.size()):
            frame = &frames.of_task[t]
            if frame.origin == NULL:
                continue
            row = lower_bound(&frame.rows[tasks[t].start], &frame.rows[tasks[t].end], <uint32_t> start)
            end = lower_bound(row, <const uint32_t *> &frame.rows[tasks[t].end], <uint32_t> (start + STRIP))
            target = <uint8_t *> &frame.codes[f * frame.stride + (row - &frame.rows[tasks[t].start])]
            for i in range(end - row):
                target[i] = column[row[i]]
        start += STRIP


cdef void number_rows(const Frame *frame, int64_t start, int64_t end) noexcept nogil:
    """Let the rows of a task be positions in its frame, which knows where they come from."""
    cdef uint32_t *origin = <uint32_t *> frame.origin
    cdef int64_t i
    if origin == NULL:
        return
    for i in range(end - start):
        origin[i] = frame.rows[start + i]
        frame.rows[start + i] = i
