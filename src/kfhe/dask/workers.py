"""Workers: functions run on each part of the rows, where it is; what they leave there, and sums of it.

A part of something is never changed, only something new made of it. So Dask knows what each follows from, and
when a worker is lost, its parts are made again, by the same functions from the same data, elsewhere.
"""

from __future__ import annotations

from asyncio import run_coroutine_threadsafe
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import CancelledError, wait
from contextlib import contextmanager
from time import monotonic
from typing import Any, Self
from weakref import finalize

from dask.base import annotate
from distributed import Client, KilledWorker, get_client
from distributed import Future as AnyFuture

from kfhe.dask.calls import Call, Item
from kfhe.dask.spread import Future, Shared, Spread, Step, all_picked, picked, program_of

FEW_PARTS = 4  # to each of which all that they need is sent at once, rather than from one to the next
AT_ONCE = 2  # parts that are added up by one task: neighbours, which are on one worker most often
PATIENCE = 60.0  # seconds without a single worker before training gives up
LOOK_EVERY = 5.0  # seconds between two looks at whether there are workers


class ClusterLostError(ConnectionError):
    """The scheduler of a Dask cluster, or too many of its workers, were lost during training."""


class Workers:
    """The workers of a Dask cluster, and on them a number of parts of rows.

    Parameters
    ----------
    client : Client
        The cluster.
    n_parts : int
        How many parts there are.
    """

    def __init__(self, client: Client, n_parts: int) -> None:
        self.client, self.n_parts = client, n_parts
        self._steps: list[Step] = []  # that are still to be started
        self._wanted: list[Spread] = []  # what is asked for soon
        self._following: list[Callable[[], None]] = []  # what note tasks that follow from that
        self._homes: list[str | None] = [None] * n_parts  # the worker of each part, if that is known
        self._is_noting, self._noted = False, dict[str, Call]()  # tasks that are to be sent together
        self._sent: list[Future] = []  # those that were sent last
        self._spent: list[Any] = []  # tasks that nobody needs any more, still to be let go

    @classmethod
    def here(cls, n_parts: int) -> Self:
        """Return the workers of the client that is current; raise if there is none."""
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "there is no Dask cluster to train on; make a client first, such as "
                "distributed.Client() for one on this machine"
            ) from None
        return cls(client, n_parts)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def run(self, function: Callable[..., Any], *arguments: Any, at: str | None = None) -> Future:
        """Run a function on a worker, that at an address if it is there; arguments may be tasks."""
        with self.together():
            call = Call(function, arguments, at)
            self._noted[call.key] = call
            task: Future = AnyFuture(call.key, self.client)
            return task

    @contextmanager
    def together(self) -> Iterator[None]:
        """Send all tasks that are run meanwhile to Dask at once, and only then let go what nobody needs.

        Dask's client sends one message, and the next one not before 10 ms have passed.
        """
        if self._is_noting:
            yield
            return
        self._is_noting = True
        try:
            yield
            if self._noted:
                self._send(self._noted)
        except Exception as error:  # a closed client raises errors of several kinds
            self._check(error)
            raise
        finally:
            self._noted, self._is_noting = {}, False

    def _send(self, calls: dict[str, Call]) -> None:
        """Send tasks to Dask, then let go those that were sent before, and what nobody needs any more."""
        tasks = {key: (call, call.tasks) for key, call in calls.items()}
        places = {key: call.place for key, call in calls.items()}
        with annotate(workers=places.get, allow_other_workers=True):
            self._sent = self.client.get(tasks, [*tasks], sync=False, fifo_timeout=0)
        self._spent.clear()

    def let_go(self, thing: Any) -> None:
        """Let go what has tasks that nobody needs any more, but not before others have been sent."""
        self._spent.append(thing)

    def n_threads(self) -> int:
        """Return how many threads all workers have together now."""
        return sum(self._threads().values()) or 1

    def homes(self) -> list[str | None]:
        """Return a worker for each part: neighbours share one, and each thread gets as many."""
        threads = self._threads()
        seats = [address for address in sorted(threads) for _ in range(threads[address])]
        self._homes = [seats[p * len(seats) // self.n_parts] if seats else None for p in range(self.n_parts)]
        return self._homes

    def _threads(self) -> dict[str, int]:
        """Return how many threads each worker has now."""
        try:
            threads: dict[str, int] = self.client.nthreads()
            return threads
        except Exception as error:  # a closed client raises errors of several kinds
            self._check(error)
            raise

    def each(self, function: Callable[..., Any], *arguments: Any) -> Spread:
        """Run a function for each part: of what is spread it gets that part, of all else the whole.

        It runs when something is asked for that depends on it, in one task with all that leads there.
        """
        spread, step = Spread.of_step(function, arguments)
        self._steps.append(step)
        return spread

    def shared(self, value: Any) -> Any:
        """Return a value as an argument of functions; it is sent to the workers before these are to run."""
        return Shared(value) if self.n_parts <= FEW_PARTS else self.run(as_is, value)

    def _start(self, spreads: Sequence[Spread]) -> None:
        """Start what is still to make some spreads, in a program with all that has to do with it.

        What is wanted soon is started along.
        """
        steps = [spread.place()[0] for spread in spreads]
        if not any(steps):
            return
        steps = [*(spread.place()[0] for spread in self._wanted), *steps]
        program, self._steps = program_of([step for step in steps if step is not None], self._steps)
        if program.given[0] and self.n_parts > FEW_PARTS:
            program.given[0] = self.run(as_is, program.given[0])
        # Else Dask would send all that a task needs elsewhere, if the worker that has it is still busy
        tasks = [self.run(program, *program.given_to(p), at=self._homes[p]) for p in range(self.n_parts)]
        for i, spread in enumerate(program.made):
            spread.start(tasks, (i,) if len(program.made) > 1 else ())
            finalize(spread, self.let_go, tasks).atexit = False

    def pieces(self, spread: Spread, whole: Container[int] = ()) -> Sequence[Any]:
        """Return tasks of which each returns just a part; of some parts, items of all that theirs return."""
        with self.together():
            self._start([spread])
            _, tasks, path = spread.place()
            if not path:
                return tasks
            return [
                Item(task, path) if p in whole else self.run(picked, task, path)
                for p, task in enumerate(tasks)
            ]

    def home(self, p: int) -> str | None:
        """Return the worker of a part, if there is such a part and it is known."""
        return self._homes[p] if p < self.n_parts else None

    def everywhere(self, spread: Spread) -> Any:
        """Return what functions get as a list of all parts; if there is just one, without a task for it."""
        if self.n_parts == 1:
            return self.each(in_list, spread)
        return self.pieces(spread) if spread.small is None else spread.small

    def want(self, spread: Spread) -> Spread:
        """Have the parts of something small brought here with whatever is asked for next; return it."""
        self._wanted.append(spread)
        return spread

    def follow(self, note: Callable[[], None]) -> None:
        """Have tasks noted that need what is wanted: to be sent with it, and not before it."""
        if self.n_parts == 1:  # then all of it is one task
            note()
        else:
            self._following.append(note)

    def parts(self, spread: Spread) -> list[Any]:
        """Return all parts: for what is small."""
        if spread.brought is None:
            if spread not in self._wanted:
                self.want(spread)
            self.bring()
        parts, spread.brought = spread.brought, None
        assert parts is not None
        return parts

    def bring(self) -> None:
        """Bring here what is wanted: in one go, as each task and each wait take time."""
        following, self._following = self._following, []
        with self.together():
            groups = self._small()
            for note in following:
                note()
            groups += self._small()  # what was noted may have been wanted as well
        for (_, some), found in zip(groups, self.result([small for small, _ in groups]), strict=True):
            is_picked = any(spread.place()[2] for spread in some)
            for i, spread in enumerate(some):
                spread.brought = [each[i] if is_picked else each for each in found]

    def _small(self) -> list[tuple[Sequence[Future], list[Spread]]]:
        """Return tasks that return nothing but parts of what is wanted, and what that is."""
        spreads, self._wanted = self._wanted, []
        self._start(spreads)
        groups: dict[int, tuple[Sequence[Future], list[Spread]]] = {}  # by the tasks that return them
        for spread in spreads:
            tasks = spread.place()[1]
            groups.setdefault(id(tasks), (tasks, []))[1].append(spread)
        found_by: list[tuple[Sequence[Future], list[Spread]]] = []
        for tasks, some in groups.values():
            paths = [spread.place()[2] for spread in some]
            small = [self.run(all_picked, task, paths) if any(paths) else task for task in tasks]
            found_by.append((small, some))
            for i, spread in enumerate(some):
                spread.small = [Item(task, (i,)) for task in small] if any(paths) else small
        return found_by

    def addends(self, futures: Sequence[Future]) -> Sequence[Future]:
        """Return a few things whose sum is that of what tasks return; workers add up neighbours."""
        while len(futures) > AT_ONCE:
            futures = [
                self.run(added_up, futures[first : first + AT_ONCE])
                for first in range(0, len(futures), AT_ONCE)
            ]
        return futures

    def sum(self, futures: Sequence[Future]) -> Future:
        """Return the sum of what tasks return, added up by workers."""
        return futures[0] if len(futures) == 1 else self.run(added_up, self.addends(futures))

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of what a function returns for the parts, which is small."""
        return added_up(self.parts(self.each(function, *arguments)))

    def result(self, futures: Any) -> Any:
        """Return what tasks have returned; wait for it, as long as there are workers."""
        try:
            self.let_go(futures)
            return self._gathered(futures)
        except KilledWorker as error:
            raise ClusterLostError(f"too many workers died: {error}") from error
        except (Exception, CancelledError) as error:
            self._check(error)
            raise

    def _gathered(self, futures: Any) -> Any:
        """Wait for what tasks return; raise if there is no worker left for long."""
        loop = self.client.loop.asyncio_loop  # type: ignore[union-attr]
        gathered = run_coroutine_threadsafe(self.client.gather(futures, asynchronous=True), loop)
        alone_since: float | None = None
        try:
            while not wait([gathered], timeout=LOOK_EVERY).done:
                self._check(None)
                if self.client.scheduler_info()["workers"]:
                    alone_since = None
                elif alone_since is None:
                    alone_since = monotonic()
                elif monotonic() - alone_since > PATIENCE:
                    raise ClusterLostError(f"there has been no worker for {PATIENCE:.0f} seconds")
            return gathered.result()
        finally:
            gathered.cancel()

    def _check(self, error: BaseException | None) -> None:
        """Raise if the scheduler is gone."""
        if self.client.status != "running":
            raise ClusterLostError("the scheduler is gone") from error


def added_up(values: list[Any]) -> Any:
    """Return the sum of values: numbers or arrays."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def in_list(value: Any) -> list[Any]:
    """Return the list of a single part."""
    return [value]


def as_is(value: Any) -> Any:
    """Return a value; a task that does is where other tasks can get it."""
    return value
