"""The grid of a feature: about which of its thresholds a value is. `grid.pyx` says what it is for."""

from libc.stdint cimport int64_t, uint16_t
from libcpp.vector cimport vector

from kfhe.engine.trees.crown cimport LANES


cdef struct Grid:
    double low  # where the first cell starts
    double scale  # cells per unit
    double last  # cell, as a number with a point
    int64_t most  # thresholds of a cell
    vector[uint16_t] first  # of the thresholds to look at, for each cell


cdef Grid grid_of(const vector[double] &thresholds) except *


cdef inline int64_t cell_of(const Grid *grid, double value) noexcept nogil:
    """Cell of a value: never a lower one than that of a lower value. What is no number is in the first."""
    cdef double cell = (value - grid.low) * grid.scale
    cell = cell if cell > 0 else 0
    return <int64_t> (cell if cell < grid.last else grid.last)


cdef inline void rank_values(
    const Grid *grid, const double *thresholds, const double *values, uint16_t *ranks
) noexcept nogil:
    """Count the thresholds below each value: searches that halve side by side, without a branch."""
    cdef int64_t lane, half, n = grid.most
    cdef const double *at[LANES]
    for lane in range(LANES):
        at[lane] = thresholds + grid.first[cell_of(grid, values[lane])]
    while n > 1:
        half = n // 2
        for lane in range(LANES):
            at[lane] += half * (at[lane][half - 1] < values[lane])
        n -= half
    for lane in range(LANES):
        ranks[lane] = <uint16_t> (at[lane] - thresholds + (at[lane][0] < values[lane]))
