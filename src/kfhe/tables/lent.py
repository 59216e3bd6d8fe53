"""Streams that are lent to pyarrow, whose threads read ahead and may still do so when nobody waits for them.

A thread that asks for the interpreter once that has begun to end takes the process down with it: so all that
is lent has to be back before.
"""

from __future__ import annotations

import atexit
import io
import time
from threading import Lock
from typing import Any, TypeVar
from weakref import ref

LONGEST = 1.0  # seconds that the end of the process is put off

T = TypeVar("T")

_lent: list[ref[Any]] = []
_lock = Lock()


class LentStream(io.RawIOBase):
    """A stream of bytes; a subclass has others than those that it is given."""

    def __init__(self, content: bytes = b"") -> None:
        self._left = memoryview(content)
        _lend(self)

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def read(self, size: int = -1) -> Any:
        """Return the next bytes, so that it can be seen when they are not needed any more."""
        return _lend(memoryview(self.next_bytes(size)))

    def next_bytes(self, size: int) -> bytes:
        """Return the next bytes."""
        data = bytes(self._left if size < 0 else self._left[:size])
        self._left = self._left[len(data) :]
        return data


def _lend(given: T) -> T:
    with _lock:
        _lent[:] = [each for each in _lent if each() is not None]
        _lent.append(ref(given))
    return given


@atexit.register
def _wait() -> None:
    """Wait until all is back, or too long."""
    latest = time.monotonic() + LONGEST
    while any(each() is not None for each in _lent) and time.monotonic() < latest:
        time.sleep(0.0005)
