"""Rooms: memory that is used again.

A worker gives freed memory back at once (Dask sets it so), and the system clears what it hands out: for
arrays that are made anew in each iteration, this takes longer than what is computed. So the C library is told
to keep what is freed, and the largest arrays, which it never keeps, take turns in rooms. Both only as long as
the worker has plenty of memory left.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from math import prod
from threading import Lock
from typing import Any
from weakref import ref

import numpy as np
import psutil
from distributed import get_worker
from numpy.typing import NDArray

_PLENTY = 0.4  # share of a worker's memory up to which freed memory is kept
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # what the C library of Linux calls them
_KEPT, _GIVEN_BACK = (2**27, 2**25), (2**16, 2**17)  # bytes: free at the end of the heap; of one array


class Rooms:
    """Makes arrays in memory that was another array's, once nobody has that one any more.

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


class FreedMemory:
    """What the C library does with memory that this process has freed: keeps it, or gives it back at once."""

    def __init__(self) -> None:
        self._is_kept = False
        # Only where Dask has set one and users have not set the other: else it is theirs to say
        by_dask = "MALLOC_TRIM_THRESHOLD_" in os.environ and "MALLOC_MMAP_THRESHOLD_" not in os.environ
        library = ctypes.CDLL(None) if sys.platform == "linux" and by_dask else None
        self._library = library if hasattr(library, "mallopt") else None  # not every library has it

    def keep_if_plenty(self) -> None:
        """Have it kept, unless this worker has little memory left."""
        if self._library is None:
            return
        is_kept = _is_plenty_left()
        if is_kept != self._is_kept:
            self._is_kept = is_kept
            trim, mmap = _KEPT if is_kept else _GIVEN_BACK
            self._library.mallopt(_TRIM_THRESHOLD, trim)
            self._library.mallopt(_MMAP_THRESHOLD, mmap)
            if not is_kept:
                self._library.malloc_trim(0)


freed_memory = FreedMemory()


def _is_plenty_left() -> bool:
    """Whether this worker, if it is one, uses little of the memory that it may have."""
    try:
        limit = get_worker().memory_manager.memory_limit
    except ValueError:
        return True
    return not limit or _process(os.getpid()).memory_info().rss < _PLENTY * limit


@cache
def _process(pid: int) -> psutil.Process:
    """Return a process; to find out about it takes time."""
    return psutil.Process(pid)
