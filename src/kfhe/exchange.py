"""Exchange: what workers tell each other that train together, each on its own rows.

All else is done by each of them as on one machine, and comes out the same. Only where something is said of
all rows (a sum, mostly of whole numbers, which may be added up in any order) the others are asked. On one
machine there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 2**15  # bytes up to which everybody sends everybody all that is to be added up


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
        """Return the sum of numbers, or of arrays, over all workers."""
        if self.n == 1:
            return values
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
