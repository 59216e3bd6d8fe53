"""Workers that are threads of this process, each with some of the rows."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from kfhe.exchange import Exchange


class InThreads(Exchange):
    """An exchange over a list that all threads share."""

    def __init__(self, rank, board, barrier):
        self.rank, self.n, self._board, self._barrier = rank, barrier.parties, board, barrier

    def swap(self, things):
        assert len(things) == self.n
        self._board[self.rank] = things
        self._barrier.wait()
        received = [self._board[q][self.rank] for q in range(self.n)]
        self._barrier.wait()
        return received


def together(n, work):
    """What a function of an exchange gives in each of n threads."""
    barrier, board = Barrier(n, timeout=60), [None] * n

    def begin(rank):
        try:
            return work(InThreads(rank, board, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(n) as pool:
        return [*pool.map(begin, range(n))]
