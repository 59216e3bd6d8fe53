"""``python -m benchmarks.cluster``: a study on a Dask cluster whose worker is killed, beside a local run.

2,000 cells run in two processes of this machine, then on two workers of a cluster, of which one is killed in
the middle. Every cell has to be there once, equal to the local one in all but its times.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter
from typing import Annotated, Any

import typer
from distributed import LocalCluster
from rich.console import Console

from kfhe.study.errors import StudyError
from kfhe.study.plan import Algorithm, Plan
from kfhe.study.run import run
from kfhe.study.store import Store

N_WORKERS = 2
TIMES = ["fit_seconds", "predict_seconds"]


def study(repeats: int) -> Plan:
    """Return a study of 400 cells for each repeat."""
    small = {"n_estimators": 10}
    names = ("KFHE-e", "KFHE-l", "AdaBoost", "Bagging")
    algorithms = (*(Algorithm(name, name, small) for name in names), Algorithm("CART", "CART"))
    datasets = ("iris", "wine", "monks2", "balance_scale")
    return Plan(datasets, algorithms, (0.0, 0.1, 0.2, 0.3, 0.4), repeats=repeats, folds=4, seed=1)


def differences(one: Path, other: Path) -> list[str]:
    """Say in what two result files differ besides the times; nothing if they are equal."""
    found = []
    with Store.read(one) as here, Store.read(other) as there:
        mine, theirs = (store.cells().drop(columns=TIMES) for store in (here, there))
        if len(mine) != len(theirs):
            found.append(f"{len(theirs):,} cells instead of {len(mine):,}")
        elif not mine.equals(theirs):
            found += [f"the column {name}" for name in mine if not mine[name].equals(theirs[name])]
        if here.traces() != there.traces():
            found.append("the traces")
    return found


@contextmanager
def killing(cluster: Any, path: Path, count: int) -> Iterator[list[int]]:
    """Kill a worker once so many cells are stored; yields the number of cells that were when it happened."""
    killed: list[int] = []
    over = Event()

    def watch() -> None:
        while not over.wait(0.02):
            if path.is_file() and (stored := _stored(path)) >= count:
                os.kill(cluster.workers[0].pid, signal.SIGKILL)
                killed.append(stored)
                return

    thread = Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def _stored(path: Path) -> int:
    try:
        with Store.read(path) as store:
            return len(store.done())
    except StudyError:  # the file is being made
        return 0


def main(
    repeats: Annotated[int, typer.Option(min=1, help="Repeats of cross-validation, 400 cells each.")] = 5,
) -> None:
    """Run a study here and on a cluster whose worker is killed, and compare."""
    console, plan = Console(highlight=False), study(repeats)
    total = len(plan.cells())
    with TemporaryDirectory() as folder:
        here, there = Path(folder, "here.sqlite"), Path(folder, "there.sqlite")
        began = perf_counter()
        run(plan, here, n_jobs=N_WORKERS, console=Console(stderr=True))
        console.print(f"here: {total:,} cells in {N_WORKERS} processes, {perf_counter() - began:.1f} s")
        settings = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": ":0"}
        with LocalCluster(n_workers=N_WORKERS, **settings) as cluster:
            began = perf_counter()
            with killing(cluster, there, total // 2) as killed:
                outcome = run(plan, there, scheduler=cluster.scheduler_address, console=Console(stderr=True))
            seconds = perf_counter() - began
        console.print(f"there: {outcome.ran:,} cells on {N_WORKERS} workers, {seconds:.1f} s")
        stored = f"{killed[0]:,}" if killed else "none was"
        console.print(f"cells that were stored when a worker was killed: {stored}")
        console.print(f"cells that ended in an error: {outcome.failed}")
        found = differences(here, there)
        again = run(plan, there, n_jobs=1).ran
    console.print(f"cells that a second run finds missing: {again}")
    console.print("all but the times is equal" if not found else f"differs in {', '.join(found)}")
    if found or again or outcome.failed or not killed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
