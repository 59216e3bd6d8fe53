"""Sums over the rows of all parts, exact however these are cut: they are taken in units, as whole numbers."""

from __future__ import annotations

from math import ldexp

import numpy as np
from numpy.typing import NDArray

from kfhe.dask.spread import Spread
from kfhe.dask.workers import Workers
from kfhe.engine.arrays import highest, sum_of_units, unit_of
from kfhe.engine.draws import ROWS_OF_BLOCK

Floats = NDArray[np.float64]
UnitSums = tuple[float, dict[int, int]]  # the highest of some values, and their sum by the unit that it is in

UNITS_TRIED = 3  # in which a part sums up values before the highest of all is known


def exact_total(workers: Workers, values: Spread, n: int) -> float:
    """Return the sum of n non-negative values, to the bit that one machine gets; NaN if one is not."""
    return total_and_top(workers, values, workers.parts(workers.each(unit_sums, values, n)), n)[0]


def total_and_top(workers: Workers, values: Spread, sums: list[UnitSums], n: int) -> tuple[float, float]:
    """Return the exact sum of n non-negative values, and the highest of them; NaN if one is not.

    ``sums`` is what the parts sum up to, in the units that are likely by what each knows.
    """
    top, total = float(np.max([top for top, _ in sums])), likely_total(sums, n)
    if total is None:
        unit = unit_of(top, n)
        total = in_ones(workers.parts(workers.each(sum_of_units, values, unit)), unit)
    return total, top


def in_ones(sums: list[int], unit: int) -> float:
    """Return the sum of what parts sum to in units."""
    return ldexp(float(sum(sums)), -unit)


def unit_sums(values: Floats, n: int) -> UnitSums:
    """Return the highest of values, of n in all, and their sum in the units that fit it or one a bit higher.

    The unit is that of the highest value of all parts, most often one of these.
    """
    top = highest(values)
    if np.isnan(top):
        return top, {}
    unit = unit_of(top, n)
    return top, {coarser: sum_of_units(values, coarser) for coarser in range(unit, unit - UNITS_TRIED, -1)}


def likely_total(sums: list[UnitSums], n: int) -> float | None:
    """Return the sum of all values, of n in all; NaN if one is, None if a part has not tried the unit."""
    top = float(np.max([top for top, _ in sums]))
    if np.isnan(top):
        return top
    unit = unit_of(top, n)
    tried = [some.get(unit) for _, some in sums]
    return None if None in tried else in_ones(tried, unit)  # type: ignore[arg-type]


def square_units(values: Floats, unit: int) -> int:
    """Return the sum of the squares of values, in units."""
    starts = range(0, len(values), ROWS_OF_BLOCK)  # by blocks, as memory for all squares would take longer
    return sum(sum_of_units(np.square(values[i : i + ROWS_OF_BLOCK]), unit) for i in starts)
