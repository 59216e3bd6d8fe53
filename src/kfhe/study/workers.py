"""Workers that run the cells of a study: local processes, or those of a Dask cluster."""

from __future__ import annotations

import json
import os
import pickle
import signal
import time
import warnings
from contextlib import ExitStack, closing
from functools import cache, lru_cache
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING

from kfhe.study import algorithms
from kfhe.study.algorithms import versions_for
from kfhe.study.cells import Result, run_cells
from kfhe.study.errors import StudyError
from kfhe.study.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from distributed import Future

    from kfhe.study.dataset import Dataset
    from kfhe.study.plan import Cell

# Batches per thread of the cluster: one running, one waiting, one being stored
IN_FLIGHT = 3
KILLED = "KilledWorker: each worker that ran it died, possibly because memory ran out"


class Processes:
    """Workers on this machine; a single worker is this process itself.

    Parameters
    ----------
    n_jobs : int, optional
        Number of processes; default: one per processor.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def results(
        self, plan: Plan, batches: list[list[Cell]], dataset_of: Callable[[str], Dataset]
    ) -> Generator[list[Result], None, None]:
        """Yield the results of each batch when it is done; each process reads a dataset once."""
        n_processes = min(self.n_jobs or os.cpu_count() or 1, len(batches))
        if n_processes <= 1:
            yield from (run_cells(plan, batch, dataset_of) for batch in batches)
            return
        from joblib import Parallel, delayed, parallel_config
        from joblib.externals.loky.process_executor import TerminatedWorkerError

        with parallel_config(
            "loky",
            n_jobs=n_processes,
            inner_max_num_threads=1,
            initializer=_follow_parent,
            initargs=(os.getpid(),),
        ):
            parallel = Parallel(return_as="generator_unordered", batch_size=1)
            tasks = (delayed(run_cells)(plan, batch, dataset_of) for batch in batches)
            with closing(parallel(tasks)) as results:
                try:
                    yield from results
                except TerminatedWorkerError as error:
                    raise StudyError(
                        "a process of the study was killed, possibly because memory ran out; stored results "
                        "are kept. Run again, with fewer processes (--jobs)"
                    ) from error


def _follow_parent(parent: int) -> None:
    """Ignore interrupts, which the parent handles, and exit with the parent even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


class Cluster(ExitStack):
    """Workers of a Dask cluster, which may join and leave. The end of `with` cancels what is not done.

    Parameters
    ----------
    scheduler : str
        The address of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """

    def __init__(self, scheduler: str) -> None:
        super().__init__()
        self.scheduler = scheduler
        try:
            from kfhe.dask.connection import connected

            self._client = self.enter_context(connected(scheduler, set_as_default=False))
        except (ConnectionError, ImportError) as error:
            raise StudyError(str(error)) from error

    def results(
        self, plan: Plan, batches: list[list[Cell]], dataset_of: Callable[[str], Dataset]
    ) -> Generator[list[Result], None, None]:
        """Yield the results of each batch when it is done; each worker receives a dataset once.

        If a worker dies, its batch runs elsewhere. Dask gives up tasks that were on several dead workers,
        including tasks that were only waiting there. So their cells run again at the end, one by one; a cell
        that Dask gives up then has failed.
        """
        import dask

        text, versions = plan.to_json(), json.dumps(versions_for(plan))

        @cache
        def sent(name: str) -> Future[Dataset]:
            # As a task, because scattered data would be lost with the last worker that has them
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
                return self._client.submit(pickle.loads, pickle.dumps(dataset_of(name)), pure=False)

        def send(batch: list[Cell]) -> Future[list[Result]]:
            table = sent(batch[0].dataset)
            return self._client.submit(run_on_worker, text, versions, batch, table, pure=False)

        suspects: list[list[Cell]] = []
        for batch, results in self._ended(send, batches):
            if results is None:
                suspects += [[cell] for cell in batch]
            else:
                yield results
        for suspect in suspects:
            for (cell,), results in self._ended(send, [suspect]):
                yield results or [Result(cell, error=KILLED)]

    def _ended(
        self, send: Callable[[list[Cell]], Future[list[Result]]], batches: Iterable[list[Cell]]
    ) -> Iterator[tuple[list[Cell], list[Result] | None]]:
        """Submit batches, a few at a time; yield each that has ended, with None if it killed its workers."""
        from distributed import CancelledError, as_completed

        waiting, ended = iter(batches), as_completed(loop=self._client.loop)
        running: dict[Future[list[Result]], list[Cell]] = {}
        try:
            while True:
                for batch in islice(waiting, max(0, self._room() - len(running))):
                    future = send(batch)
                    running[future] = batch
                    ended.add(future)
                if not running:
                    return
                future = next(ended)
                results = self._results_of(future)
                batch = running.pop(future)
                future.release()  # otherwise it would run again if its worker died later
                yield batch, results
        except (OSError, CancelledError) as error:
            raise StudyError(
                f"the Dask scheduler at {self.scheduler} is gone, or has dropped the study; stored results "
                "are kept. The same command continues when it is back"
            ) from error

    def _results_of(self, future: Future[list[Result]]) -> list[Result] | None:
        from distributed import CancelledError, KilledWorker

        try:
            return future.result()
        except KilledWorker:
            return None
        except (OSError, StudyError, CancelledError):
            raise
        except Exception as error:
            raise StudyError(
                f"the cluster at {self.scheduler} can't run cells ({type(error).__name__}: {error}). Its "
                "scheduler and all workers need the packages that are installed here, in the same versions"
            ) from error

    def _room(self) -> int:
        """Return the number of batches that may be submitted to the current workers."""
        n_threads = sum(self._client.nthreads().values())
        if not n_threads:
            warnings.warn(f"the cluster at {self.scheduler} has no workers: waiting for some", stacklevel=2)
        return max(1, IN_FLIGHT * n_threads)


def run_on_worker(plan: str, versions: str, cells: list[Cell], dataset: Dataset) -> list[Result]:
    """Run some cells of a dataset in a worker.

    Parameters
    ----------
    plan, versions : str
        The study, and the versions that its results depend on, as JSON.
    cells : list of Cell
        The cells to run.
    dataset : Dataset
        Their dataset.

    Returns
    -------
    list of Result
        One for each cell, which may be an error.

    Raises
    ------
    StudyError
        The worker lacks a package, or has other versions.
    """
    return run_cells(_checked(plan, versions), cells, lambda name: dataset)


@lru_cache(maxsize=1)
def _checked(text: str, versions: str) -> Plan:
    """Return the plan; raise if this worker could give different results."""
    from distributed import get_worker

    plan, asked = Plan.from_json(text), json.loads(versions)
    here, worker = versions_for(plan), get_worker().address
    others = [f"{name} {here[name]}, not {asked.get(name)}" for name in here if here[name] != asked.get(name)]
    if others:
        raise StudyError(
            f"worker {worker} has other versions than the machine that began the study: {'; '.join(others)}"
        )
    try:
        algorithms.check(plan)
    except StudyError as error:
        raise StudyError(f"worker {worker}: {error}") from error
    return plan
