from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

cdef void build(
    const uint8_t *column, const uint32_t *rows, const uint16_t *classes, const int32_t *weights,
    int64_t n_rows, int64_t n_classes, int64_t n_bins, int32_t *histogram,
) noexcept nogil

cdef void build_two(
    const uint8_t *column, const uint8_t *other_column, const uint32_t *rows, const uint16_t *classes,
    const int32_t *weights, int64_t n_rows, int64_t n_classes, int64_t n_bins, int64_t n_other_bins,
    int32_t *histogram, int32_t *other_histogram,
) noexcept nogil

cdef void build_from_lines(
    const uint8_t *lines, int64_t length, const uint32_t *rows, const uint16_t *classes, const int32_t *weights,
    int64_t n_rows, int64_t n_classes, const int32_t *features, int64_t n_features, const int64_t *offsets,
    int32_t *histograms,
) noexcept nogil

cdef void build_counts(
    const uint8_t *column, const uint32_t *rows, int64_t n_rows, int64_t n_bins, int32_t *histogram
) noexcept nogil

cdef void add_up(int32_t *histogram, const int32_t *other, int64_t n_cells) noexcept nogil
cdef void subtract(int32_t *histogram, const int32_t *other, int64_t n_cells) noexcept nogil
