"""Exchange: what workers tell each other that train together, each on its own rows.

All else is done by each of them as on one machine, and comes out the same. Only where something is said of
all rows (a sum, mostly of whole numbers, which may be added up in any order) the others are asked. On one
machine there are none.
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

SMALL = 2**15  # bytes up to which everybody sends everybody all that is to be added up


if TYPE_CHECKING:
    from functools import cached_property

    kept = cached_property
else:

    class kept:  # noqa: N801
        """A `functools.cached_property` without its lock: workers that are threads would wait for each other.

        Python has none from 3.12 on.
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
    """What a worker knows of the others; here, that there are none.

    Where there are others, all of them have to ask the same questions in the same order.

    Attributes
    ----------
    n : int
        How many workers there are.
    rank : int
        The number of this one: 0, 1 and so on. The rows of the first come first.
    failure : BaseException or None
        What went wrong where no error could be raised.

    Examples
    --------
    >>> from kfhe.exchange import Exchange
    >>> Exchange().sum(3)
    3
    """

    n, rank = 1, 0
    failure: BaseException | None = None

    def swap(self, things: list[Any]) -> list[Any]:
        """Send each worker one of some things, and return what each has sent here."""
        return things

    def gather(self, thing: Any) -> list[Any]:
        """Return what each worker has of something."""
        return self.swap([thing] * self.n)

    def first(self, make: Callable[[], Any]) -> Any:
        """Return what the first worker makes: so chance of one machine can't part them."""
        return self.gather(make() if self.rank == 0 else None)[0]

    def sum(self, values: Any) -> Any:
        """Return the sum of numbers, tuples of them, or arrays, over all workers."""
        if self.n == 1:
            return values
        if isinstance(values, tuple):
            return tuple(map(sum, zip(*self.gather(values), strict=True)))
        if getattr(values, "nbytes", 0) <= SMALL:
            return sum(self.gather(values))
        bounds = [values.size * q // self.n for q in range(self.n + 1)]
        flat = values.reshape(-1)
        mine = sum(self.swap([flat[a:b] for a, b in pairwise(bounds)]))
        return np.concatenate(self.gather(mine)).reshape(values.shape)

    def all(self, function: Callable[[NDArray[Any]], Any], values: NDArray[Any]) -> Any:
        """Return what a function gives for the values of all rows, which are sent to the first worker."""
        if self.n == 1:
            return function(values)
        parts = self.swap([values if q == 0 else None for q in range(self.n)])
        return self.first(lambda: function(np.concatenate(parts)))

    def for_each(
        self, function: Callable[[NDArray[Any]], NDArray[Any]], values: NDArray[Any]
    ) -> NDArray[Any]:
        """Return the own rows of what a function gives for the values of all rows: a value for each row."""
        if self.n == 1:
            return function(values)
        parts = self.swap([values if q == 0 else None for q in range(self.n)])
        own: list[Any] = [None] * self.n
        if self.rank == 0:
            own = np.split(function(np.concatenate(parts)), [*accumulate(map(len, parts[:-1]))])
        found: NDArray[Any] = self.swap(own)[0]
        return found

    def exact_sum(self, values: Floats, n_threads: int = 1) -> float:
        """Return the sum of non-negative values, one per row, to the same bit wherever the rows are."""
        if self.n == 1:
            return arrays.exact_sum(values, n_threads)
        unit = self._unit(arrays.highest(values, n_threads), len(values))
        if unit is None:
            return np.nan
        return ldexp(float(self.sum(arrays.sum_of_units(values, unit, n_threads))), -unit)

    def effective_sample_size(self, weights: Floats, n_threads: int = 1) -> float:
        """Return how many equal weights some, one per row, which sum to 1, are worth."""
        if self.n == 1:
            return arrays.effective_sample_size(weights, n_threads)
        unit = self._unit(arrays.highest(weights, n_threads) ** 2, len(weights))
        assert unit is not None
        return 1 / ldexp(float(self.sum(arrays.squares_of_units(weights, unit, n_threads))), -unit)

    def _unit(self, top: float, n_values: int) -> int | None:
        """Return the unit to sum all values in, by the highest here; None if one is NaN somewhere."""
        tops, numbers = zip(*self.gather((top, n_values)), strict=True)
        highest = float(np.max(tops))
        return None if np.isnan(highest) else arrays.unit_of(highest, sum(numbers))

    def shares(self, sizes: Sequence[int]) -> list[list[int]]:
        """Share pieces of work out among the workers, by their sizes; return the numbers of those of each."""
        shares: list[list[int]] = [[] for _ in range(self.n)]
        loads = [(0, q) for q in range(self.n)]
        heapify(loads)
        for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
            load, q = loads[0]
            shares[q].append(i)
            heapreplace(loads, (load + sizes[i], q))
        return shares


ALONE = Exchange()
