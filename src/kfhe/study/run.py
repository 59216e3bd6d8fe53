"""Run a study: the missing cells, on this machine or on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from kfhe.display.text import counted, some
from kfhe.study import algorithms
from kfhe.study.algorithms import versions_for
from kfhe.study.cells import Result
from kfhe.study.dataset import import_pandas
from kfhe.study.errors import NoTargetError, StudyError
from kfhe.study.paper.catalogue import catalogue
from kfhe.study.plan import ALL_TABLES
from kfhe.study.sources import data_folder, loaded, tables_of
from kfhe.study.store import Store
from kfhe.study.workers import Cluster, Processes
from kfhe.tables.errors import did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from kfhe.study.dataset import Dataset, Roles
    from kfhe.study.plan import Cell, Plan


@dataclass
class Outcome:
    """The outcome of a run.

    Attributes
    ----------
    cells : int
        Number of cells of the study whose datasets are available.
    ran, failed : int
        Number of cells in this run, and number of those that failed.
    error : str or None
        The first error.
    left_out : dict of str to str
        Datasets that can't be used, with reasons.
    interrupted : bool
        Whether Ctrl-C or SIGTERM ended the run.
    """

    cells: int = 0
    ran: int = 0
    failed: int = 0
    error: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def run(
    plan: Plan,
    path: str | Path,
    *,
    data_dir: str | Path | None = None,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    mix_versions: bool = False,
    console: Console | None = None,
) -> Outcome:
    """Run the cells of a plan that are not in the result file yet.

    Parameters
    ----------
    plan : Plan
        The study.
    path : path
        The result file; it is created if it does not exist.
    data_dir : path, optional
        Folder of table files; default: the environment variable ``KFHE_DATA``.
    n_jobs : int, optional
        Number of local processes; default: one per processor. It does not affect the
        results.
    scheduler : str, optional
        Address of the scheduler of a Dask cluster to run the cells on.
    retry_failed : bool
        Whether to repeat failed cells.
    mix_versions : bool
        Whether to continue a result file with other versions of the packages.
    console : rich.console.Console, optional
        Where to show progress.

    Returns
    -------
    Outcome
        The outcome.

    Raises
    ------
    StudyError
        The study can't start or continue. Stored results are kept.
    """
    import_pandas()
    algorithms.check(plan)
    folder = data_folder(data_dir)
    if ALL_TABLES in plan.datasets:
        plan = replace(plan, datasets=tuple(tables_of(folder)))
    dataset_of = partial(loaded, plan, str(folder) if folder else None)
    with nullcontext(Processes(n_jobs)) if scheduler is None else Cluster(scheduler) as workers:
        datasets, problems = _datasets(plan, dataset_of)
        if not datasets:
            raise StudyError("none of the datasets can be used: " + "; ".join(problems.values()))
        if console is not None:
            _say_what_is_learnt(plan, datasets, console)
        with Store.write(path, plan, versions_for(plan), mix_versions=mix_versions) as store:
            store.note_datasets(datasets, problems)
            if retry_failed:
                store.forget_failures()
            names = {dataset.name for dataset in datasets}
            cells = [cell for cell in plan.cells() if cell.dataset in names]
            done = store.done()
            missing = [cell for cell in cells if cell not in done]
            outcome = Outcome(cells=len(cells), left_out=problems)
            try:
                with closing(workers.results(plan, _batches(missing), dataset_of)) as found:
                    for results in _shown(plan, cells, missing, found, console):
                        store.add(results)
                        errors = [result.error for result in results if result.error is not None]
                        outcome.ran += len(results)
                        outcome.failed += len(errors)
                        outcome.error = outcome.error or next(iter(errors), None)
            except KeyboardInterrupt:
                outcome.interrupted = True
    return outcome


def _datasets(plan: Plan, dataset_of: Callable[[str], Dataset]) -> tuple[list[Dataset], dict[str, str]]:
    """Load the available datasets of a plan; return the reasons why others are omitted."""
    datasets, problems = [], {}
    for name in plan.dataset_names:
        try:
            dataset = dataset_of(name)
            _check_folds(dataset, plan.folds)
            datasets.append(dataset)
        except NoTargetError:  # ask the user now, before hours of computing
            raise
        except StudyError as error:
            problems[name] = str(error)
    if not problems:  # the column may be in a table that is not available
        _check_columns(plan.roles, datasets)
    return datasets, problems


def _check_folds(dataset: Dataset, folds: int) -> None:
    """Raise if every class has fewer rows than there are folds."""
    if max(Counter(dataset.y.tolist()).values()) < folds:
        raise StudyError(f"{dataset.name}: no class has as many as {folds} rows; use fewer folds")


def _check_columns(roles: Roles, datasets: list[Dataset]) -> None:
    """Raise if no table has a column that the plan names; names with a star may match nothing."""
    columns = {column for each in datasets for column in (*each.X.columns, *each.dropped, each.target)}
    said = {name: "left out" for name in roles.drop if "*" not in name}
    said |= {column: f"read as {kind}" for column, kind in roles.read_as}
    for column, done in said.items():
        if column not in columns and column != roles.true:
            near = did_you_mean(column, columns)
            raise StudyError(f"no table has a column {column!r} to be {done}{near}")


def _say_what_is_learnt(plan: Plan, datasets: list[Dataset], console: Console) -> None:
    for dataset in datasets:
        if dataset.name not in catalogue():
            for line in (_learnt(plan, dataset), *dataset.notes):
                console.print(line, markup=False, highlight=False, soft_wrap=True)


def _learnt(plan: Plan, dataset: Dataset) -> str:
    """Describe the target of a table that is not in the catalogue."""
    tested = "" if plan.true is None else f", tested against {plan.true!r}"
    classes = some([repr(label) for label in dataset.classes])
    return f"{dataset.name}: target {dataset.target!r}{tested}; classes: {classes}"


def _batches(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return cells in batches; the algorithms on one training set are a batch."""
    by_rows = groupby(cells, key=lambda cell: (cell.dataset, cell.noise, cell.repeat, cell.fold))
    return [list(batch) for _, batch in by_rows]


def _shown(
    plan: Plan,
    cells: list[Cell],
    missing: list[Cell],
    results: Iterable[list[Result]],
    console: Console | None,
) -> Iterator[list[Result]]:
    """Yield results, and show the progress."""
    if console is None:
        yield from results
        return
    from kfhe.study.progress import StudyProgress

    with StudyProgress(plan, len(cells), len(cells) - len(missing), console) as progress:
        for batch in results:
            yield batch
            progress.add(batch)


def describe(outcome: Outcome, path: Any) -> str:
    """Describe the outcome of a run."""
    stored = f"{counted(outcome.ran, 'cell', 'were')} run"
    if outcome.failed:
        stored += f", {outcome.failed} of them ended in an error ('kfhe study report' lists them)"
    if outcome.error:
        stored += f", first: {shorten(outcome.error, 200)}"
    if outcome.interrupted:
        return f"Stopped. {stored}; the results are in {path}, and the same command continues it."
    if not outcome.ran:
        return f"All {outcome.cells} cells are in {path} already."
    return f"{stored}; the results are in {path}."
