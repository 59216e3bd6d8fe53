from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.split cimport NodeTotals, Split

cdef void scan_histogram(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, const NodeTotals *node,
    int64_t *left, Split *best,
) noexcept nogil

cdef void split_histogram(
    const int32_t *histogram, const int32_t *counts, int32_t feature, int64_t n_bins, bint categorical,
    const NodeTotals *node, double *scratch, int64_t *left, Split *split,
) noexcept nogil

cdef NodeTotals add_up(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, vector[int64_t] &classes
) noexcept nogil
