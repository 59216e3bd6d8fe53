from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libcpp.vector cimport vector

from kfhe.engine.trees.growth cimport OpenNode, Problem, RowSet


# The rows of some subtrees, copied together.
cdef cppclass RowSets:
    vector[RowSet] of_root
    vector[uint8_t] codes
    vector[uint32_t] origins


cdef int64_t partition_rows(
    const uint8_t *column, const uint8_t *goes_left, int64_t n, uint32_t *rows, uint16_t *classes, int32_t *weights,
    uint32_t *spare_rows, uint16_t *spare_classes, int32_t *spare_weights, int64_t *left_totals, int64_t n_classes,
    int n_threads,
) noexcept nogil
cdef void gather(
    const Problem *problem, const RowSet *table, const vector[OpenNode] &roots, RowSets *row_sets, int n_threads
) noexcept nogil
