"""Grids: cells of equal width, so that a value is compared with the few thresholds of its cell only.

Rounding can't hurt: what is in a higher cell is higher, for values and thresholds alike. For each cell as many
thresholds are looked at as the fullest has, from its own first one on, or from an earlier one if these are too few.
"""

from libc.math cimport isinf
from libc.stdint cimport int64_t, uint16_t
from libcpp.vector cimport vector

cdef enum:
    MOST_CELLS = 4096


cdef Grid grid_of(const vector[double] &thresholds) except *:
    """Grid for the thresholds of a feature, which are in order."""
    cdef Grid grid
    cdef int64_t i, cell, n = thresholds.size(), n_cells = 1, n_finite = n
    cdef vector[int64_t] filled
    while n_cells < min(n, <int64_t> MOST_CELLS):
        n_cells *= 2
    while n_finite > 1 and isinf(thresholds[n_finite - 1]):
        n_finite -= 1
    grid.low = thresholds[0] if n else 0
    grid.last = <double> (n_cells - 1)
    grid.scale = grid.last / (thresholds[n_finite - 1] - grid.low) if n_finite > 1 else 0
    filled.resize(n_cells + 1)
    for i in range(n):
        filled[cell_of(&grid, thresholds[i]) + 1] += 1
    grid.most = 0
    for cell in range(n_cells):
        grid.most = max(grid.most, filled[cell + 1])
        filled[cell + 1] += filled[cell]
    for cell in range(n_cells):
        grid.first.push_back(<uint16_t> max(min(filled[cell], n - grid.most), <int64_t> 0))
    return grid
