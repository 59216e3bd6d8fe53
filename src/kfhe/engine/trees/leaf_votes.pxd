from libc.stdint cimport int32_t, int64_t


cdef inline int32_t heaviest(const int32_t *weights, int64_t n_classes) noexcept nogil:
    """Class of the largest weight; the first one of equals."""
    cdef int64_t k, best = 0
    for k in range(1, n_classes):
        if weights[k] > weights[best]:
            best = k
    return <int32_t> best


cdef inline void write_shares(const int32_t *weights, int64_t n_classes, double *shares) noexcept nogil:
    """Share of each class in the weight of all."""
    cdef int64_t k, total = 0
    for k in range(n_classes):
        total += weights[k]
    for k in range(n_classes):
        shares[k] = <double> weights[k] / <double> total
