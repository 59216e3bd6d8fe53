from libc.stdint cimport int32_t, int64_t, uint32_t

from kfhe.engine.trees.split cimport NodeTotals, Row, Split

cdef void scan_histogram(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, const NodeTotals *node,
    int64_t *left, Split *best,
) noexcept nogil

cdef void sweep_sorted(
    const uint32_t *order, int64_t n_rows, const Row *rows, uint32_t missing_bin, const NodeTotals *node,
    int64_t *left, Split *best,
) noexcept nogil

cdef void split_histogram(
    const int32_t *histogram, const int32_t *counts, int32_t feature, int64_t n_bins, bint categorical,
    const NodeTotals *node, double *scratch, int64_t *left, Split *split,
) noexcept nogil
