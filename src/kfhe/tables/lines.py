"""The lines of a csv, worked on by several threads as long as they are plain."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class Lines:
    """The lines of a stream, in blocks.

    Parameters
    ----------
    start : bytes
        What has been read of it already.
    stream : binary file
        The rest.
    size : int
        Bytes that are read for a block.
    """

    def __init__(self, start: bytes, stream: Any, size: int) -> None:
        self._start, self._stream, self._size = memoryview(start), stream, size
        self._ahead = b""  # the start of a line that has not come whole
        self._free: list[bytearray] = []

    def worked_on(self, work: Callable[[memoryview], T | None], n_threads: int) -> Iterator[T]:
        """Yield what is made of each block, in their order, up to the first of which None is made.

        Threads read and work on some blocks ahead. What is left is in `rest`.
        """
        blocks: deque[tuple[memoryview, Future[T | None]]] = deque()
        with ThreadPoolExecutor(n_threads) as threads:
            try:
                more = True
                while more or blocks:
                    while more and len(blocks) <= 2 * n_threads:
                        block = self._next_block()
                        more = block is not None
                        if block is not None:
                            blocks.append((block, threads.submit(work, block)))
                    if blocks:
                        result = blocks[0][1].result()
                        if result is None:
                            break
                        self._free.append(blocks.popleft()[0].obj)  # type: ignore[arg-type]
                        yield result
            finally:
                threads.shutdown(cancel_futures=True)
        self._ahead = b"".join([*(block for block, _ in blocks), self._ahead])

    def rest(self) -> bytes:
        """Return what has been read and not been worked on."""
        return self._ahead + self._start

    def _next_block(self) -> memoryview | None:
        """Return the next lines, in memory that is used again; None if there are none, or one is too long."""
        buffer = self._free.pop() if self._free else bytearray(2 * self._size)
        ahead = len(self._ahead)
        buffer[:ahead] = self._ahead
        filled = ahead + self._fill(memoryview(buffer)[ahead : ahead + self._size])
        end = buffer.rfind(b"\n", ahead, filled) + 1
        if filled < ahead + self._size:
            end = filled  # of the file
        self._ahead = bytes(memoryview(buffer)[end:filled])
        return memoryview(buffer)[:end] if end else None

    def _fill(self, space: memoryview) -> int:
        """Read as many bytes as there is space for, or up to the end."""
        known = self._start[: len(space)]
        space[: len(known)] = known
        self._start, filled = self._start[len(known) :], len(known)
        while filled < len(space) and (n := self._stream.readinto(space[filled:])):
            filled += n
        return filled
