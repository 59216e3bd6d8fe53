from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from libcpp.vector cimport vector

from kfhe.engine.trees.top_splits cimport TopSplits


# A lookup table: about which of the thresholds of a feature a value is.
cdef struct Lookup:
    double low  # where the first cell starts
    double scale  # cells per unit
    double last  # cell, as a number with a point
    int64_t most  # thresholds of a cell
    vector[uint16_t] first  # of the thresholds to look at, for each cell


cdef class CompactTrees:
    cdef uint64_t[::1] nodes
    cdef int32_t[::1] leaves  # for each node that is a leaf, its number
    cdef const int64_t[::1] tree_nodes
    cdef vector[TopSplits] tops  # of each tree
    cdef int32_t[::1] features  # that each column has the ranks of
    cdef uint16_t[::1] missing  # rank of a missing value there
    cdef double[::1] thresholds  # of all features, in order
    cdef int64_t[::1] starts  # where the thresholds of each feature start, and the end
    cdef vector[Lookup] lookups  # of each feature

    cdef void rank(
        self, const double *rows, int64_t n_features, int64_t n_rows, uint16_t *ranks
    ) noexcept nogil
    cdef void keep(self, const int32_t *kept, int64_t n_kept, uint16_t *ranks) noexcept nogil
    cdef void find_leaves(
        self, int64_t tree, const uint16_t *ranks, int64_t n_rows, int32_t *leaves
    ) noexcept nogil
