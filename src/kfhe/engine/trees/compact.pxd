from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef enum:
    LANES = 16  # rows that go down a tree side by side, so that memory is never waited for alone


cdef class CompactTrees:
    cdef uint64_t[::1] nodes
    cdef int32_t[::1] leaves  # for each node that is a leaf, its number
    cdef const int64_t[::1] tree_nodes
    cdef int32_t[::1] features  # that each column has the ranks of
    cdef uint32_t[::1] missing  # rank of a missing value there, shifted by 16
    cdef double[::1] thresholds  # of all features, in order
    cdef int64_t[::1] starts  # where the thresholds of each feature start, and the end

    cdef void rank(
        self, const double *rows, int64_t n_features, int64_t n_rows, uint32_t *ranks
    ) noexcept nogil
    cdef void find_leaves(
        self, int64_t tree, const uint32_t *ranks, int64_t n_rows, int32_t *leaves
    ) noexcept nogil
