"""A Dask cluster, whose workers run a study's cells; they may come and go."""

from __future__ import annotations

import json
import logging
import pickle
import warnings
from functools import cache, lru_cache
from itertools import islice
from math import inf
from queue import Empty, Queue
from time import monotonic
from typing import TYPE_CHECKING, Any

from kfhe.study import algorithms
from kfhe.study.cells import Result, run_cells
from kfhe.study.errors import StudyError
from kfhe.study.plan import Plan
from kfhe.study.versions import versions_for

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from types import TracebackType

    from distributed import Future

    from kfhe.study.plan import Cell
    from kfhe.study.tables import Dataset

# Batches on their way for each thread of the cluster: one runs, one waits for it, one is being stored
IN_FLIGHT = 3
KILLED = "KilledWorker: each worker that ran it died, maybe because memory ran out"


class Cluster:
    """Workers of a Dask cluster; `with` connects to it, and at its end takes back what is not done.

    Parameters
    ----------
    scheduler : str
        The address of the cluster's scheduler, such as ``tcp://10.0.0.1:8786``.
    """

    def __init__(self, scheduler: str) -> None:
        self.scheduler = scheduler
        self._n_threads = 0
        self._asked = -inf

    def __enter__(self) -> Cluster:
        self._distributed = _import_distributed()
        self._client = self._distributed.Client.__new__(self._distributed.Client)
        try:
            self._client.__init__(self.scheduler, name="kfhe", set_as_default=False)
        except (OSError, RuntimeError, TypeError, ValueError) as error:  # no answer, no TLS, no address
            self._client.close()  # else it would wait for an answer when Python ends
            raise StudyError(f"no Dask scheduler can be reached at {self.scheduler}: {error}") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # If it is just trying to reach a scheduler that is gone, it logs the trace of where it was
        log = logging.getLogger("distributed.client")
        log.disabled = True
        try:
            self._client.close()
        finally:
            log.disabled = False

    def results(
        self, plan: Plan, batches: list[list[Cell]], dataset_of: Callable[[str], Dataset]
    ) -> Generator[list[Result], None, None]:
        """Yield the results of each batch as they come; each worker is sent a dataset once.

        A batch whose worker dies runs elsewhere. Dask gives up those that too many workers have died with;
        they may only have been waiting beside the one that killed them. So their cells run again at the end,
        each alone: one that Dask gives up then has failed.
        """
        send = self._sender(plan, dataset_of)
        suspects: list[list[Cell]] = []
        for batch, results in self._ended(send, batches, self._room):
            if results is None:
                suspects += [[cell] for cell in batch]
            else:
                yield results
        for (cell,), results in self._ended(send, suspects, lambda: min(1, self._room())):
            yield results or [Result(cell, error=KILLED)]

    def _sender(
        self, plan: Plan, dataset_of: Callable[[str], Dataset]
    ) -> Callable[[list[Cell]], Future[list[Result]]]:
        """Return what sends a batch to the cluster."""
        import dask

        text, versions = plan.to_json(), json.dumps(versions_for(plan))

        @cache
        def sent(name: str) -> Future[Dataset]:
            # As a task, not as scattered data: those would be lost with the last worker that has them
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
                return self._client.submit(pickle.loads, pickle.dumps(dataset_of(name)), pure=False)

        def send(batch: list[Cell]) -> Future[list[Result]]:
            return self._client.submit(
                run_on_worker, text, versions, batch, sent(batch[0].dataset), pure=False
            )

        return send

    def _ended(
        self,
        send: Callable[[list[Cell]], Future[list[Result]]],
        batches: Iterable[list[Cell]],
        room: Callable[[], int],
    ) -> Iterator[tuple[list[Cell], list[Result] | None]]:
        """Send batches, a few at a time; yield each that has ended, with None if it killed its workers."""
        waiting = iter(batches)
        running: dict[Any, tuple[list[Cell], Future[list[Result]]]] = {}
        ended: Queue[Future[list[Result]]] = Queue()
        try:
            while True:
                for batch in islice(waiting, max(0, room() - len(running))):
                    future = send(batch)
                    running[future.key] = batch, future
                    future.add_done_callback(ended.put)
                if not running:
                    return
                try:
                    future = ended.get(timeout=1)
                except Empty:  # there may be more workers by now
                    continue
                results = self._results_of(future)
                batch, _ = running.pop(future.key)
                future.release()  # else it would run again if its worker died from now on
                yield batch, results
        except (OSError, self._distributed.CancelledError) as error:
            raise StudyError(
                f"the Dask scheduler at {self.scheduler} is gone, or has dropped the study; what was stored "
                "is kept. The same command goes on when it is back"
            ) from error

    def _results_of(self, future: Future[list[Result]]) -> list[Result] | None:
        try:
            return future.result()
        except self._distributed.KilledWorker:
            return None
        except (OSError, StudyError, self._distributed.CancelledError):
            raise
        except Exception as error:
            raise StudyError(
                f"the cluster at {self.scheduler} can't run cells ({type(error).__name__}: {error}). Its "
                "scheduler and all workers need the packages that are installed here, in the same versions"
            ) from error

    def _room(self) -> int:
        """Return how many batches may be on their way; workers that joined are noticed after a second."""
        if monotonic() > self._asked + 1:
            self._n_threads = sum(self._client.nthreads().values())
            self._asked = monotonic()
            if not self._n_threads:
                warnings.warn(
                    f"the cluster at {self.scheduler} has no workers: waiting for some", stacklevel=2
                )
        return max(1, IN_FLIGHT * self._n_threads)


def run_on_worker(plan: str, versions: str, cells: list[Cell], dataset: Dataset) -> list[Result]:
    """Run some cells of a dataset where this is called: in a worker.

    Parameters
    ----------
    plan, versions : str
        The study, and the versions that its results depend on, as JSON.
    cells : list of Cell
        Which of its cells.
    dataset : Dataset
        The dataset of all of them.

    Returns
    -------
    list of Result
        One for each cell; an error is a result too.

    Raises
    ------
    StudyError
        If the worker has not what the study needs, or has it in other versions.
    """
    return run_cells(_checked(plan, versions), cells, lambda name: dataset)


@lru_cache(maxsize=1)
def _checked(text: str, versions: str) -> Plan:
    """Return the plan, once it is known that this worker gives the results that any other would."""
    plan, asked = Plan.from_json(text), json.loads(versions)
    here, worker = versions_for(plan), _import_distributed().get_worker().address
    others = [f"{name} {here[name]}, not {asked.get(name)}" for name in here if here[name] != asked.get(name)]
    if others:
        raise StudyError(
            f"worker {worker} has not the versions of the machine that began the study: {'; '.join(others)}"
        )
    try:
        algorithms.check(plan)
    except StudyError as error:
        raise StudyError(f"worker {worker}: {error}") from error
    return plan


def _import_distributed() -> Any:
    """Return Dask's scheduler package, or say which extra brings it."""
    try:
        import distributed
    except ImportError as error:
        raise StudyError('a cluster needs Dask: pip install "kfhe[dask]"') from error
    return distributed
