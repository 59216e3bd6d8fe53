from libc.stdint cimport int64_t, uint32_t, uint64_t

from kfhe.engine.trees.split cimport NodeTotals, Row, Split

cdef void sweep(
    const uint32_t *order, int64_t n_entries, const Row *rows, const uint64_t *pairs, uint32_t missing_bin,
    const NodeTotals *node, int64_t *left, Split *best,
) noexcept nogil
