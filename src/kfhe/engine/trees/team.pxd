from libc.stdint cimport int64_t

cdef class Team:
    cdef readonly int n_threads
    cdef bint always
    cdef double seconds_per_cell[2]  # of the last tree grown alone, and of the last one grown by threads
    cdef int n_timed

    cpdef int size(self, int64_t n_cells) noexcept nogil
    cpdef void worked(self, int n_threads, int64_t n_cells, double seconds) noexcept nogil
