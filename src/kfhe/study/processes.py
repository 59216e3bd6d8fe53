"""Processes of this machine, which run a study's cells."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing
from threading import Thread
from typing import TYPE_CHECKING

from kfhe.study.cells import Result, run_cells
from kfhe.study.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kfhe.study.plan import Cell, Plan
    from kfhe.study.tables import Dataset


class Processes:
    """Workers on this machine; a single one is this process itself.

    Parameters
    ----------
    n_jobs : int, optional
        Number of processes; default: one for each processor.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def results(
        self, plan: Plan, batches: list[list[Cell]], dataset_of: Callable[[str], Dataset]
    ) -> Generator[list[Result], None, None]:
        """Yield the results of each batch as they come; each process reads a dataset once."""
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
                        "a process of the study was killed, maybe because memory ran out; what was stored is "
                        "kept. Run again, with fewer processes (--jobs)"
                    ) from error


def _follow_parent(parent: int) -> None:
    """Leave interrupts to the parent, and end with it even if it was killed and could tell nobody."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_after, args=(parent,), daemon=True).start()


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
