from libc.stdint cimport int32_t, int64_t

from kfhe.engine.trees.split cimport NodeTotals, Split

cdef int64_t scratch_size(int64_t n_classes) noexcept nogil

cdef void split_categories(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, const NodeTotals *node,
    double *scratch, int64_t *left, Split *best,
) noexcept nogil
