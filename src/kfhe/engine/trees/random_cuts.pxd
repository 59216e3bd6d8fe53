from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

from kfhe.engine.trees.split cimport NodeTotals, Row, Split

cdef uint64_t cut_number(uint64_t seed, uint64_t tree, uint64_t key, int64_t feature) noexcept nogil
cdef void cut_histogram(
    const int32_t *histogram, const int32_t *counts, int64_t n_bins, uint64_t number, const NodeTotals *node,
    int64_t *left, Split *best,
) noexcept nogil
cdef void cut_members(
    const uint8_t *codes, const uint16_t *members, int64_t n, const Row *rows, const uint64_t *pairs, int64_t n_bins,
    uint64_t number, const NodeTotals *node, int64_t *left, uint8_t *found, Split *best,
) noexcept nogil
