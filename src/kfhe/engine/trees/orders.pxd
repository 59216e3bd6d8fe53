from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef void sort_members(
    const uint8_t *codes, const uint16_t *members, int64_t n_members, int64_t n_bins, uint32_t *order
) noexcept nogil

cdef int64_t part_members(uint16_t *members, int64_t n, const uint8_t *side, uint16_t *spare) noexcept nogil

cdef void part_order(
    uint32_t *order, int64_t n, const uint8_t *side, uint8_t wanted, uint32_t *target
) noexcept nogil

cdef int64_t copy_side(
    const uint32_t *order, int64_t n, const uint8_t *side, uint8_t wanted, uint32_t *target
) noexcept nogil
