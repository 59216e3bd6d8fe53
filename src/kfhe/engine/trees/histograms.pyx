"""Histograms: the weight of each class in each bin of one feature, for the rows of one node.

One integer per bin and class: adding up integers is exact, so a histogram may be built in any
order, and a node's histogram minus that of one child is that of the other child.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset


cdef void build(
    const uint8_t *column, const uint32_t *rows, const uint16_t *classes, const int32_t *weights,
    int64_t n_rows, int64_t n_classes, int64_t n_bins, int32_t *histogram,
) noexcept nogil:
    cdef int64_t i
    memset(histogram, 0, n_bins * n_classes * sizeof(int32_t))
    for i in range(n_rows):
        histogram[column[rows[i]] * n_classes + classes[i]] += weights[i]


cdef void build_counts(
    const uint8_t *column, const uint32_t *rows, int64_t n_rows, int64_t n_bins, int32_t *histogram
) noexcept nogil:
    cdef int64_t i
    memset(histogram, 0, n_bins * sizeof(int32_t))
    for i in range(n_rows):
        histogram[column[rows[i]]] += 1


cdef void subtract(int32_t *histogram, const int32_t *other, int64_t n_cells) noexcept nogil:
    cdef int64_t i
    for i in range(n_cells):
        histogram[i] -= other[i]
