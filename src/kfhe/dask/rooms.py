"""Rooms: memory of large arrays that is used again."""

from __future__ import annotations

from math import prod
from sys import getrefcount
from threading import Lock
from typing import Any

import numpy as np
import psutil
from distributed import get_worker
from numpy.typing import NDArray

_FREE = 3  # references to a room that nobody is in: of the list, the loop, and the call that counts them

_PLENTY = 0.5  # share of a worker's memory up to which rooms are kept


class Rooms:
    """Makes arrays in memory that was another array's, once nobody has that one any more.

    A worker gives freed memory back at once (Dask sets it so), and the system clears what it hands out: for
    an array that is made anew in each iteration, this takes longer than what is computed. A worker that has
    little memory left keeps none for later.

    Examples
    --------
    >>> from kfhe.dask.rooms import Rooms
    >>> rooms = Rooms()
    >>> first, second = (rooms.empty((1000, 2)) for _ in range(2))
    >>> place = first.ctypes.data
    >>> del first
    >>> rooms.empty((1000, 2)).ctypes.data == place
    True
    """

    def __init__(self) -> None:
        self._rooms: list[NDArray[np.uint8]] = []
        self._lock = Lock()

    def __reduce__(self) -> Any:
        """Leave memory where it is: elsewhere there are other rooms."""
        return Rooms, ()

    def empty(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return an array of numbers that are not set; it is the caller's as long as anybody has it."""
        n_bytes = 8 * prod(shape)
        with self._lock:
            if not _is_plenty_left():
                self._rooms.clear()
                return np.empty(shape)
            for room in self._rooms:
                if room.nbytes == n_bytes and getrefcount(room) == _FREE:
                    return room.view(np.float64).reshape(shape)
            self._rooms.append(np.empty(n_bytes, dtype=np.uint8))
            return self._rooms[-1].view(np.float64).reshape(shape)


def _is_plenty_left() -> bool:
    """Whether this worker, if it is one, uses little of the memory that it may have."""
    try:
        limit = get_worker().memory_manager.memory_limit
    except ValueError:
        return True
    return not limit or psutil.Process().memory_info().rss < _PLENTY * limit
