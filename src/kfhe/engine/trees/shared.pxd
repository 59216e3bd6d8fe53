from libc.stdint cimport int32_t, int64_t, uint32_t

from kfhe.engine.trees.nodes cimport Buffer, Growth

cdef void sum_cells(Growth *growth, int32_t *cells, int64_t n) noexcept nogil
cdef int64_t sum_counts(Growth *growth, int64_t *totals, int64_t n_rows) noexcept nogil
cdef int take_over(Buffer *buffer, tree, leaves, rows, int64_t start, uint32_t *members) except -1
