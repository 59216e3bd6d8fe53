from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

cdef void add_rows(
    const uint8_t *column, const uint8_t *other_column, const uint32_t *rows, const uint16_t *classes,
    const int32_t *weights, int64_t n_rows, int64_t n_classes, int32_t *histogram, int32_t *other_histogram,
) noexcept nogil
cdef void add_counts(const uint8_t *column, const uint32_t *rows, int64_t n_rows, int32_t *histogram) noexcept nogil
cdef void add_up(int32_t *cells, const int32_t *others, int64_t n_cells) noexcept nogil
cdef void subtract(int32_t *cells, const int32_t *others, int64_t n_cells) noexcept nogil
