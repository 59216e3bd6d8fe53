"""Exchange: sums over workers that train together, each on its own rows.

Everything else is computed by each worker as on one machine, with the same result. Only statements about all
rows need the others: sums, mostly of integers, which may be added in any order. On one machine there are no
others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from itertools import accumulate, pairwise
from math import ldexp
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kfhe.engine import arrays

Floats = NDArray[np.float64]

SMALL = 2**18  # bytes that a worker sends to all at once, to save a second round


if TYPE_CHECKING:
    from functools import cached_property

    kept = cached_property
else:

    class kept:  # noqa: N801
        """A `functools.cached_property` without its lock, which would make worker threads wait.

        Since 3.12, Python's has no lock.
        """

        def __init__(self, make: Callable[[Any], Any]) -> None:
            self._make, self.__doc__ = make, make.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            made = instance.__dict__[self._name] = self._make(instance)
            return made


class Exchange:
    """Communication with the other workers; this class is for one machine, where there are none.

    All workers must call the same methods in the same order.

    Attributes
    ----------
    n : int
        The number of workers.
    rank : int
        The position of this worker, from 0. Rows are in the order of the workers.
    failure : BaseException or None
        An error that occurred where it could not be raised.

    Examples
    --------
    >>> from kfhe.exchange import Exchange
    >>> Exchange().sum(3)
    3
    """

    n, rank = 1, 0
    failure: BaseException | None = None

    def swap(self, things: list[Any]) -> list[Any]:
        """Send each worker one of the items, and return those received."""
        return things

    def gather(self, thing: Any) -> list[Any]:
        """Return the values of all workers."""
        return self.swap([thing] * self.n)

    def first(self, make: Callable[[], Any]) -> Any:
        """Return the result of the first worker, so that differences between machines don't matter."""
        return self.gather(make() if self.rank == 0 else None)[0]

    def sum(self, values: Any) -> Any:
        """Return the sum of numbers, tuples of numbers, or arrays over all workers."""
        if self.n == 1:
            return values
        if isinstance(values, tuple):
            return tuple(map(sum, zip(*self.gather(values), strict=True)))
        if self.n == 2 or getattr(values, "nbytes", 0) * (self.n - 1) <= SMALL:
            return sum(self.gather(values))
        bounds = [values.size * q // self.n for q in range(self.n + 1)]
        flat = values.reshape(-1)
        mine = sum(self.swap([flat[a:b] for a, b in pairwise(bounds)]))
        return np.concatenate(self.gather(mine)).reshape(values.shape)

    def all(self, function: Callable[[NDArray[Any]], Any], values: NDArray[Any]) -> Any:
        """Return the result of a function of all rows' values, which are sent to the first worker."""
        if self.n == 1:
            return function(values)
        parts = self.swap([values if q == 0 else None for q in range(self.n)])
        return self.first(lambda: function(np.concatenate(parts)))

    def for_each(
        self, function: Callable[[NDArray[Any]], NDArray[Any]], values: NDArray[Any]
    ) -> NDArray[Any]:
        """Return this worker's rows of the result of a function of all rows' values."""
        if self.n == 1:
            return function(values)
        parts = self.swap([values if q == 0 else None for q in range(self.n)])
        own: list[Any] = [None] * self.n
        if self.rank == 0:
            own = np.split(function(np.concatenate(parts)), [*accumulate(map(len, parts[:-1]))])
        found: NDArray[Any] = self.swap(own)[0]
        return found

    def exact_sum(self, values: Floats, n_threads: int = 1) -> float:
        """Return the exact sum of non-negative values, one per row, wherever the rows are."""
        if self.n == 1:
            return arrays.exact_sum(values, n_threads)
        unit = self._unit(arrays.highest(values, n_threads), len(values))
        if unit is None:
            return np.nan
        return ldexp(float(self.sum(arrays.sum_of_units(values, unit, n_threads))), -unit)

    def effective_sample_size(self, weights: Floats, n_threads: int = 1) -> float:
        """Return the effective sample size of weights, one per row, that sum to 1."""
        if self.n == 1:
            return arrays.effective_sample_size(weights, n_threads)
        unit = self._unit(arrays.highest(weights, n_threads) ** 2, len(weights))
        assert unit is not None
        return 1 / ldexp(float(self.sum(arrays.squares_of_units(weights, unit, n_threads))), -unit)

    def _unit(self, top: float, n_values: int) -> int | None:
        """Return the fixed-point unit for all values, given the highest here; None if any value is NaN."""
        tops, numbers = zip(*self.gather((top, n_values)), strict=True)
        highest = float(np.max(tops))
        return None if np.isnan(highest) else arrays.unit_of(highest, sum(numbers))

    def shares(self, sizes: Sequence[int]) -> list[list[int]]:
        """Assign tasks to the workers by size; return the positions of the tasks of each."""
        shares: list[list[int]] = [[] for _ in range(self.n)]
        loads = [(0, q) for q in range(self.n)]
        heapify(loads)
        for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
            load, q = loads[0]
            shares[q].append(i)
            heapreplace(loads, (load + sizes[i], q))
        return shares


ALONE = Exchange()
