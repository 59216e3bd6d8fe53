"""Sessions: one long task per worker, which communicates with the other workers and the client.

The client opens a session on all workers, starts the tasks, and asks the first worker for news, by functions
that Dask runs beside tasks. If a worker is lost, the session ends and all tasks stop. Then a new one starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import Future as Answer
from contextlib import suppress
from threading import Thread
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from distributed import Worker, get_client, get_worker, secede, wait

from kfhe.dask.peers import PeerLostError, Peers
from kfhe.dask.workers import ClusterLostError, Future, Workers

T = TypeVar("T")

NEWS_EVERY = 0.5  # seconds to wait for news from a worker
ENDS_IN = 20.0  # seconds for tasks to end
CLIENT_PATIENCE = 30.0  # seconds without the client before the scheduler is asked for it
MOST_LOSSES = 10  # maximum number of consecutive sessions that lose a worker
OVER = object()  # marks the end of the news

# ---------------------------------------------------------------- on the workers

_sessions: dict[tuple[str, str], Session] = {}  # by name of the session and address of the worker


class Session:
    """A session on a worker.

    Parameters
    ----------
    worker : Worker
        The worker.
    name : str
        The name of the session.
    client : str
        The client.
    rank, n : int
        The position of the worker, and the number of workers.
    """

    def __init__(self, worker: Worker, name: str, client: str, rank: int, n: int) -> None:
        self.peers = Peers(worker, name, rank, n)
        self.news: asyncio.Queue[Any] = asyncio.Queue()
        self.waiting: Answer[Any] | None = None  # for the answer to the last news
        self._worker, self._client = worker, client

    def tell(self, news: Any, *, wait: bool) -> Any:
        """Send news to the client and return its answer, once it has answered earlier news."""
        self.hear()
        self.waiting = Answer()
        self._worker.loop.add_callback(self.news.put_nowait, news)
        return self.hear() if wait else None

    def hear(self) -> Any:
        """Return the client's answer to the last news; raise if the client is gone."""
        while self.waiting is not None:
            try:
                answer = self.waiting.result(timeout=CLIENT_PATIENCE)
            except TimeoutError:
                if not get_client().run_on_scheduler(is_connected, self._client):
                    raise PeerLostError("the client is gone") from None
            else:
                self.waiting = None
                return answer
        return None

    def lose(self, reason: str) -> None:
        """Make the task stop as soon as it waits for anything."""
        self.peers.lose(reason)
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_exception(PeerLostError(reason))


def is_connected(client: str, dask_scheduler: Any) -> bool:
    """Return whether a client is still connected to the scheduler."""
    return client in dask_scheduler.clients


async def opened(name: str, client: str, addresses: list[str], dask_worker: Worker) -> str:
    """Open a session on a worker; return its address for peers."""
    rank = addresses.index(dask_worker.address)
    session = _sessions[name, dask_worker.address] = Session(dask_worker, name, client, rank, len(addresses))
    return await session.peers.open()


async def ended(name: str, reason: str, dask_worker: Worker) -> None:
    """End a session on a worker, and its task, if there is one."""
    session = _sessions.pop((name, dask_worker.address), None)
    if session is not None:
        session.lose(reason)
        session.peers.close()


async def news_of(name: str, answers: list[Any], dask_worker: Worker) -> tuple[list[Any], bool]:
    """Answer the last news, if any; return the next news, if there is any soon.

    Also return whether it is the end of the news.
    """
    session = _sessions.get((name, dask_worker.address))
    if session is None:
        return [], True
    if answers and session.waiting is not None and not session.waiting.done():
        session.waiting.set_result(answers[0])
    try:
        news = await asyncio.wait_for(session.news.get(), NEWS_EVERY)
    except TimeoutError:
        return [], False
    return ([], True) if news is OVER else ([news], False)


def at_work(work: Callable[..., Any], name: str, contacts: list[str], *arguments: Any) -> Any:
    """Run the long task of a worker."""
    worker = get_worker()
    session = _sessions.get((name, worker.address))
    if session is None:
        raise PeerLostError("the state of an earlier training is lost; fit again")
    secede()  # gives the thread back, because this task may wait for other tasks
    try:
        session.peers.connect(contacts)
        done = work(session, *arguments)
        session.hear()
        return done
    except BaseException:
        worker.loop.add_callback(session.peers.close)  # so that other workers stop as well
        raise
    finally:
        worker.loop.add_callback(session.news.put_nowait, OVER)


# ---------------------------------------------------------------- on the client


class Share(NamedTuple):
    """The share of the rows for a worker."""

    address: str
    n_threads: int
    first_block: int
    last_block: int  # exclusive


def shares(threads: dict[str, int], n_blocks: int) -> list[Share]:
    """Assign blocks of rows to workers by their threads; each gets at least one, or is left out."""
    threads = dict([*threads.items()][:n_blocks])
    found, first, seats, n_seats = list[Share](), 0, 0, sum(threads.values())
    for rank, (address, n_threads) in enumerate(threads.items()):
        seats += n_threads
        last = max(first + 1, min(n_blocks * seats // n_seats, n_blocks - (len(threads) - 1 - rank)))
        found.append(Share(address, n_threads, first, last))
        first = last
    return found


def together(
    workers: Workers,
    n_blocks: int,
    place: Callable[[list[Share]], Sequence[tuple[Any, ...]]],
    work: Callable[..., Any],
    told: Callable[[Any], Any],
    finish: Callable[[list[Future]], T],
) -> T:
    """Run a task on all workers together; if a worker is lost, start again.

    Parameters
    ----------
    workers : Workers
        The workers.
    n_blocks : int
        Number of blocks of rows.
    place : callable
        Places the rows on the workers; returns the arguments for each.
    work : callable
        The task, with a `Session` and the arguments.
    told : callable
        Answers the news from the first worker.
    finish : callable
        Gets the results of the tasks.
    """
    for _ in range(MOST_LOSSES):
        try:
            return _one_session(workers, n_blocks, place, work, told, finish)
        except PeerLostError as error:
            reason = str(error)
    raise ClusterLostError(f"too many workers died: {reason}")


def _one_session(
    workers: Workers,
    n_blocks: int,
    place: Callable[[list[Share]], Sequence[tuple[Any, ...]]],
    work: Callable[..., Any],
    told: Callable[[Any], Any],
    finish: Callable[[list[Future]], T],
) -> T:
    placed = shares(workers.threads(), n_blocks)
    name, addresses, client = uuid4().hex, [share.address for share in placed], workers.client
    futures: list[Future] = []
    reason = "the training is over"
    try:
        arguments = place(placed)
        contacts = asked(workers, addresses, opened, name, client.id, addresses)
        with workers.watched():
            futures += [
                client.submit(at_work, work, name, contacts, *own, workers=[address], pure=False)
                for address, own in zip(addresses, arguments, strict=True)
            ]
        del arguments  # the tasks have them now
        answers, is_over = list[Any](), False
        while not is_over:
            ((news, is_over),) = asked(workers, addresses[:1], news_of, name, answers)
            if not news:
                check(workers, addresses, futures)
            answers = [told(each) for each in news]
        while any(future.status == "pending" for future in futures):
            with suppress(TimeoutError, CancelledError):
                wait(futures, timeout=NEWS_EVERY)
            check(workers, addresses, futures)
        check(workers, addresses, futures)
        with workers.watched():
            return finish(futures)
    except BaseException as error:
        reason = str(error) or type(error).__name__
        raise
    finally:
        ending = Thread(target=end, args=(workers, name, reason, futures), daemon=True)
        ending.start()  # in a thread, because a worker that hangs does not answer
        ending.join(ENDS_IN)


def asked(workers: Workers, addresses: list[str], function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return the results of a function on some workers, which runs beside their tasks."""
    with workers.watched():
        try:
            found = workers.client.run(function, *arguments, workers=addresses)
            return [found[address] for address in addresses]
        except (OSError, KeyError) as error:
            raise PeerLostError(f"a worker is gone: {error}") from error


def check(workers: Workers, addresses: list[str], futures: list[Future]) -> None:
    """Raise if a worker is gone or a task has failed; the original error, if it is known."""
    gone = set(addresses) - set(workers.threads())
    if gone:
        raise PeerLostError(f"the worker at {', '.join(sorted(gone))} is gone")
    if not any(future.status in ("error", "lost", "cancelled") for future in futures):
        return
    with suppress(TimeoutError, CancelledError):
        wait(futures, timeout=ENDS_IN)
    errors = [future.exception() for future in futures if future.status == "error"]
    raise min(
        errors, key=lambda error: isinstance(error, PeerLostError), default=PeerLostError("a task is lost")
    )


def end(workers: Workers, name: str, reason: str, futures: list[Future]) -> None:
    """End a session on all remaining workers, and wait for its tasks."""
    with suppress(Exception):  # the cluster may be gone
        client = workers.client
        client.run(ended, name, reason, on_error="ignore")
        running = {key for keys in client.processing().values() for key in keys}
        wait([future for future in futures if future.key in running], timeout=ENDS_IN)
