"""Rooms: memory of large arrays that is used again."""

from __future__ import annotations

from math import prod
from threading import Lock
from typing import Any
from weakref import ref

import numpy as np
import psutil
from distributed import get_worker
from numpy.typing import NDArray

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
        self._rooms: dict[int, tuple[memoryview, ref[NDArray[np.float64]]]] = {}  # and the last array in it
        self._lock = Lock()

    def __reduce__(self) -> Any:
        """Leave memory where it is: elsewhere there are other rooms."""
        return Rooms, ()

    def empty(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return an array of numbers that are not set; it is the caller's as long as anybody has it."""
        size = prod(shape)
        with self._lock:
            if not _is_plenty_left():
                self._rooms.clear()
                return np.empty(shape)
            free = (i for i, (room, last) in self._rooms.items() if len(room) == size and last() is None)
            number = next(free, len(self._rooms))
            room = self._rooms[number][0] if number in self._rooms else np.empty(size).data
            whole = np.frombuffer(room)  # views of it keep it alive, as its memory is not an array's
            self._rooms[number] = room, ref(whole)
            return whole.reshape(shape)


def _is_plenty_left() -> bool:
    """Whether this worker, if it is one, uses little of the memory that it may have."""
    try:
        limit = get_worker().memory_manager.memory_limit
    except ValueError:
        return True
    return not limit or psutil.Process().memory_info().rss < _PLENTY * limit
