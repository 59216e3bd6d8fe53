from libc.stdint cimport int64_t


cdef inline int64_t largest(const double *values, int64_t n) noexcept nogil:
    """Position of the largest value; the first one of equals."""
    cdef int64_t k, best = 0
    for k in range(1, n):
        if values[k] > values[best]:
            best = k
    return best
