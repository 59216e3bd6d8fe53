from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from kfhe.engine.trees.split cimport NodeTotals, Split


# The bins of one feature that rows of a node are in, and room to find them.
cdef struct Tallies:
    uint64_t room[256]  # zeros,
    uint64_t present[4][4]  # and these
    int64_t n_bins
    uint8_t bins[256]
    int32_t first[256]  # the weight of each class up to each of these bins
    int32_t second[256]
    double gains[256]


cdef void tally(
    const uint8_t *codes, const uint16_t *members, int64_t n_members, const uint64_t *pairs, Tallies *tallies
) noexcept nogil
cdef void cut_tallies(Tallies *tallies, uint32_t missing_bin, const NodeTotals *node, Split *best) noexcept nogil
