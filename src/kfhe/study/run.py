"""Run a study: whatever of its cells is missing, in processes, into the store."""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from kfhe.study import algorithms
from kfhe.study.cells import Result, run_cells
from kfhe.study.datasets import data_folder, load, tables_of
from kfhe.study.errors import NoTargetError, StudyError
from kfhe.study.paper.catalogue import catalogue
from kfhe.study.plan import ALL_TABLES
from kfhe.study.store import Store
from kfhe.study.tables import import_pandas
from kfhe.study.versions import versions_of
from kfhe.table_files.errors import some

if TYPE_CHECKING:
    from rich.console import Console

    from kfhe.study.plan import Cell, Plan
    from kfhe.study.tables import Dataset


@dataclass
class Outcome:
    """What came of a run.

    Attributes
    ----------
    cells : int
        Number of cells of the study that can be run here.
    ran, failed : int
        Number of cells run now, and of those among them that ended in an error.
    left_out : dict of str to str
        Datasets that can't be used, and why.
    interrupted : bool
        Whether Ctrl-C or SIGTERM ended the run.
    """

    cells: int = 0
    ran: int = 0
    failed: int = 0
    left_out: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def run(
    plan: Plan,
    path: str | Path,
    *,
    data_dir: str | Path | None = None,
    n_jobs: int | None = None,
    retry_failed: bool = False,
    mix_versions: bool = False,
    console: Console | None = None,
) -> Outcome:
    """Run the cells of a plan that are not in a result file yet.

    Parameters
    ----------
    plan : Plan
        The study.
    path : path
        The result file; it is made if it isn't there.
    data_dir : path, optional
        Folder of csv or parquet files; default: the environment variable ``KFHE_DATA``.
    n_jobs : int, optional
        Number of processes; default: one for each processor. It has no influence on the results.
    retry_failed : bool
        Whether to run cells again that ended in an error.
    mix_versions : bool
        Whether to go on with a file whose results were made by other versions of the packages.
    console : rich.console.Console, optional
        Where to show the progress.

    Returns
    -------
    Outcome
        What was done.

    Raises
    ------
    StudyError
        If the study can't begin or go on; results that were stored stay stored.
    """
    import_pandas()
    algorithms.check(plan)
    folder = data_folder(data_dir)
    if ALL_TABLES in plan.datasets:
        plan = replace(plan, datasets=tuple(tables_of(folder)))
    datasets, problems = _datasets(plan, folder)
    if not datasets:
        raise StudyError("none of the datasets can be used: " + "; ".join(problems.values()))
    if console is not None:
        for dataset in datasets:
            if dataset.name not in catalogue():
                for line in (_learnt(plan, dataset), *dataset.notes):
                    console.print(line, markup=False, highlight=False, soft_wrap=True)
    with Store.write(path, plan, versions(plan), mix_versions=mix_versions) as store:
        store.note_datasets(datasets, problems)
        if retry_failed:
            store.forget_failures()
        names = {dataset.name for dataset in datasets}
        cells = [cell for cell in plan.cells() if cell.dataset in names]
        done = store.done()
        missing = [cell for cell in cells if cell not in done]
        outcome = Outcome(cells=len(cells), left_out=problems)
        try:
            for results in _shown(plan, cells, missing, _results(plan, missing, folder, n_jobs), console):
                store.add(results)
                outcome.ran += len(results)
                outcome.failed += sum(result.error is not None for result in results)
        except KeyboardInterrupt:
            outcome.interrupted = True
    return outcome


def versions(plan: Plan) -> dict[str, str]:
    """Return the versions of what a plan's results depend on."""
    names = ["kfhe", "numpy", "pandas", "scikit-learn", "scipy", *algorithms.packages(plan)]
    found = {name: known or "unknown" for name, known in versions_of(names).items() if name != "sklearn"}
    return {"python": platform.python_version(), **found}


def _datasets(plan: Plan, folder: Path | None) -> tuple[list[Dataset], dict[str, str]]:
    """Load what there is of a plan's datasets; say of each other one why it is left out."""
    datasets, problems = [], {}
    for name, entry in plan.dataset_names.items():
        try:
            datasets.append(load(entry, folder, roles=plan.roles))
        except NoTargetError:  # to be asked before hours of computing
            raise
        except StudyError as error:
            problems[name] = str(error)
    return datasets, problems


def _learnt(plan: Plan, dataset: Dataset) -> str:
    """Say what is learnt of a table that the catalogue doesn't know."""
    tested = "" if plan.true is None else f", tested against {plan.true!r}"
    classes = some([repr(label) for label in dataset.classes])
    return f"{dataset.name}: the column {dataset.target!r} is learnt{tested}; classes: {classes}"


def _results(
    plan: Plan, cells: list[Cell], folder: Path | None, n_jobs: int | None
) -> Iterator[list[Result]]:
    """Yield results in batches as they come: the algorithms on one training set are one batch."""
    data_dir = str(folder) if folder else None
    batches = [
        list(batch)
        for _, batch in groupby(cells, key=lambda cell: (cell.dataset, cell.noise, cell.repeat, cell.fold))
    ]
    n_processes = min(n_jobs or os.cpu_count() or 1, len(batches))
    if n_processes <= 1:
        yield from (run_cells(plan, batch, data_dir) for batch in batches)
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
        with closing(parallel(delayed(run_cells)(plan, batch, data_dir) for batch in batches)) as results:
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


def _shown(
    plan: Plan,
    cells: list[Cell],
    missing: list[Cell],
    results: Iterable[list[Result]],
    console: Console | None,
) -> Iterator[list[Result]]:
    """Pass results on, and show the progress."""
    if console is None:
        yield from results
        return
    from kfhe.study.progress import StudyProgress

    with StudyProgress(plan, len(cells), len(cells) - len(missing), console) as progress:
        for batch in results:
            yield batch
            progress.add(batch)


def describe(outcome: Outcome, path: Any) -> str:
    """Say in a sentence or two what came of a run."""
    stored = f"{outcome.ran} cells were run"
    if outcome.failed:
        stored += f", {outcome.failed} of them ended in an error ('kfhe study report' lists them)"
    if outcome.interrupted:
        return f"Stopped. {stored}; the results are in {path}, and the same command goes on from there."
    if not outcome.ran:
        return f"All {outcome.cells} cells are in {path} already."
    return f"{stored}; the results are in {path}."
