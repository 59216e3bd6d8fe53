"""``python -m benchmarks.cluster_training``: training on a Dask cluster of this machine, beside one process.

``speed``: one worker, two workers, and no cluster at all. ``memory``: a table on disk that workers can't
hold, what they need, and what they send. ``faults``: workers that are killed while they train.
``scheduler``: a scheduler that is, and training that goes on on another cluster.
"""

from __future__ import annotations

import logging
import os
import random
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from threading import Thread
from time import perf_counter, sleep
from typing import Annotated, Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import typer
from dask.distributed import Client, LocalCluster
from dask.sizeof import sizeof
from rich.console import Console
from rich.table import Table

import kfhe
import kfhe.audit
from kfhe.dask import ClusterLostError, KFHEClassifier, RobustKFHEClassifier, label_quality
from kfhe.dask.peers import Peers

N_FEATURES = 20
PART_ROWS = 250_000

app = typer.Typer(help=__doc__)
console = Console(highlight=False)


def rows(n: int, seed: int, n_features: int = N_FEATURES) -> tuple[Any, Any]:
    """Return made rows: two classes, a tenth of the labels changed."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    y = X[:, 0] * X[:, 1] + X[:, 2] + np.abs(X[:, 3]) > 0.8
    return X, np.where(rng.random(n) < 0.1, ~y, y).astype(np.int8)


def spans(n: int) -> list[int]:
    """Return the sizes of partitions."""
    return [min(PART_ROWS, n - first) for first in range(0, n, PART_ROWS)]


@contextmanager
def cluster_of(n_workers: int, **settings: Any) -> Iterator[Client]:
    """Start a cluster of worker processes of one thread each."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it tells of every death
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50, **settings
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@app.command()
def speed(
    n: Annotated[int, typer.Option("--rows", help="Rows.")] = 2_000_000,
    columns: Annotated[int, typer.Option(help="Columns.")] = N_FEATURES,
    components: Annotated[int, typer.Option(help="Components.")] = 5,
    rounds: Annotated[int, typer.Option(help="How often each is timed.")] = 3,
) -> None:
    """Time one worker, two workers, and one process with as many threads."""
    parts = [rows(size, seed, columns) for seed, size in enumerate(spans(n))]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    table = Table("", "seconds, a median", "a tree", "same model")
    settings: dict[str, Any] = {"n_estimators": components, "random_state": 0}
    medians, models = {}, {}
    for n_threads in (1, 2):
        taken = []
        for _ in range(rounds):
            model = kfhe.KFHEClassifier(**settings, n_jobs=n_threads).fit(X, y)
            taken.append(sum(model.trace_["seconds"]))
        medians[f"{n_threads} threads"], models[f"{n_threads} threads"] = float(np.median(taken)), model
    for n_workers in (1, 2):
        with cluster_of(n_workers) as client:
            given = [client.persist(da.from_array(each, chunks=PART_ROWS)) for each in (X, y)]
            given[0] = given[0].rechunk({1: -1})
            taken = []
            for _ in range(rounds):
                model = KFHEClassifier(**settings).fit(*given)
                taken.append(sum(model.trace_["seconds"]))
            name = f"{n_workers} workers"
            medians[name], models[name] = float(np.median(taken)), model
    expected = models["1 threads"].fingerprint()
    for name, seconds in medians.items():
        same = "yes" if models[name].fingerprint() == expected else "NO"
        table.add_row(name, f"{seconds:.2f}", f"{seconds / components:.2f}", same)
    console.print(f"{n:,} x {columns}, {components} components; seconds without reading the table")
    console.print(table)
    console.print(f"two workers beside one: {medians['1 workers'] / medians['2 workers']:.2f} times faster")
    console.print(
        f"one worker beside one thread: {medians['1 workers'] / medians['1 threads']:.2f} of its time"
    )
    console.print(
        f"two workers beside two threads: {medians['2 workers'] / medians['2 threads']:.2f} of their time"
    )


@app.command()
def memory(
    sizes: Annotated[list[int], typer.Option("--rows", help="Rows; may be repeated.")] = [  # noqa: B006
        1_000_000,
        3_000_000,
        10_000_000,
    ],
    limit: Annotated[str, typer.Option(help="Memory limit of each of the two workers.")] = "1400MB",
    components: Annotated[int, typer.Option(help="Components.")] = 10,
    leaves: Annotated[int, typer.Option(help="Leaves of a tree, 0: no limit.")] = 255,
) -> None:
    """Train on parquet files that two workers can't hold as numbers, and tell what they need and send."""
    table = Table(
        "rows", "as float64", "seconds a tree", "MB sent a tree", "peak MB of the workers", "training error"
    )
    for n in sizes:
        with TemporaryDirectory() as folder:
            for seed, size in enumerate(spans(n)):
                X, y = rows(size, seed)
                frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(N_FEATURES)]).assign(y=y)
                frame.to_parquet(Path(folder) / f"{seed:05}.parquet")
            with cluster_of(2, memory_limit=limit) as client:
                frame = dd.read_parquet(folder)
                client.run(count_sent)
                sent: list[int] = []

                def note(row: Any, client: Client = client, sent: list[int] = sent) -> None:
                    sent.append(sum(client.run(bytes_sent).values()))

                model = KFHEClassifier(
                    kfhe.CARTClassifier(max_leaf_nodes=leaves or None),
                    n_estimators=components,
                    random_state=0,
                ).fit(frame.drop(columns="y"), frame["y"], callbacks=[note])
                peaks = sorted(client.run(peak_memory).values())
            table.add_row(
                f"{n:,}",
                f"{n * N_FEATURES * 8 / 1e6:,.0f} MB",
                f"{np.median(model.trace_['seconds']):.2f}",
                f"{np.diff(sent).mean() / 1e6:.1f}",
                ", ".join(f"{peak / 1e6:,.0f}" for peak in peaks),
                f"{model.trace_['training_error'][-1]:.4f}",
            )
    trees = f"{components} components of at most {leaves or 'any number of'} leaves"
    console.print(f"two workers of at most {limit}, {trees}")
    console.print(table)


def count_sent() -> None:
    """Have a worker count what it sends to others."""
    swap = Peers.swap
    Peers.sent = 0  # type: ignore[attr-defined]

    def counted(self: Peers, things: list[Any]) -> list[Any]:
        Peers.sent += sum(sizeof(thing) for q, thing in enumerate(things) if q != self.rank)  # type: ignore[attr-defined]
        return swap(self, things)

    Peers.swap = counted  # type: ignore[method-assign]


def bytes_sent() -> int:
    """Return how many bytes a worker has sent to others so far."""
    return int(Peers.sent)  # type: ignore[attr-defined]


def peak_memory() -> int:
    """Return the most memory that a process has had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@app.command()
def faults(
    n: Annotated[int, typer.Option("--rows", help="Rows.")] = 60_000,
    components: Annotated[int, typer.Option(help="Components.")] = 6,
    kills: Annotated[int, typer.Option(help="How often a worker is killed, in fits and in audits.")] = 10,
) -> None:
    """Kill a worker at random moments of fits and of audits; every result has to be the same."""
    X, y = rows(n, 0)
    given = [da.from_array(each, chunks=(n // 5, *each.shape[1:])) for each in (X, y)]
    settings: dict[str, Any] = {"n_estimators": components, "random_state": 0}
    several: dict[str, Any] = {"n_estimators": 10 * components, "random_state": 0, "early_stopping": False}
    different = 0
    found: list[tuple[str, Callable[[], Any], Any]] = [
        (
            "models",
            lambda: KFHEClassifier(**settings).fit(*given).fingerprint(),
            kfhe.KFHEClassifier(**settings).fit(X, y).fingerprint(),
        ),
        (
            "audits",
            lambda: label_quality(*given, **several).votes.tobytes(),
            kfhe.audit.label_quality(X, y, **several).votes.tobytes(),
        ),
    ]
    with cluster_of(2) as client:
        for what, there, expected in found:
            same = equal_in_spite_of_kills(client, there, expected, kills)
            console.print(f"{same} of {kills} {what} are equal to that of one process")
            different += kills - same
    raise typer.Exit(int(different > 0))


def equal_in_spite_of_kills(client: Client, there: Callable[[], Any], expected: Any, kills: int) -> int:
    """Count in how many of some trials, in each of which a worker is killed, what is found is as expected."""
    there()  # imports take time
    began = perf_counter()
    there()
    usual, same = perf_counter() - began, 0
    for trial in range(kills):
        client.wait_for_workers(2)
        moment = random.Random(trial).uniform(0.05, 0.9) * usual
        killer = Thread(target=kill_one, args=(client, trial, moment))
        began = perf_counter()
        killer.start()
        equal = there() == expected
        taken = perf_counter() - began
        killer.join()
        same += equal
        found = "the same" if equal else "ANOTHER"
        console.print(f"killed after {moment:.1f} of {usual:.1f} s: {found}, after {taken:.1f} s")
    return same


def kill_one(client: Client, trial: int, moment: float) -> None:
    """Kill one of the workers after some seconds."""
    pids = sorted(client.run(os.getpid).values())
    sleep(moment)
    os.kill(random.Random(trial).choice(pids), signal.SIGKILL)


@app.command()
def scheduler(
    n: Annotated[int, typer.Option("--rows", help="Rows.")] = 60_000,
    components: Annotated[int, typer.Option(help="Components.")] = 8,
) -> None:
    """Kill the scheduler in the middle of fits; each has to go on to the same model on another cluster."""
    X, y = rows(n, 0)
    settings: dict[str, Any] = {"n_estimators": components, "random_state": 0}
    given = [da.from_array(each, chunks=(n // 4, *each.shape[1:])) for each in (X, y)]
    same = 0
    for kind, local in (
        (KFHEClassifier, kfhe.KFHEClassifier),
        (RobustKFHEClassifier, kfhe.RobustKFHEClassifier),
    ):
        model = kind(**settings, warm_start=True)
        with processes() as killed:

            def kill(row: Any, killed: Popen[bytes] = killed) -> None:
                if row.iteration == components // 2:
                    killed.kill()
                    killed.wait()

            try:
                model.fit(*given, callbacks=[kill])
            except ClusterLostError as error:
                console.print(f"{kind.__name__}: {error}")
        with processes():
            model.fit(*given)
        equal = model.fingerprint() == local(**settings).fit(X, y).fingerprint()
        same += equal
        console.print("it went on to the same model" if equal else "it went on to ANOTHER MODEL")
    raise typer.Exit(int(same < 2))


@contextmanager
def processes() -> Iterator[Popen[bytes]]:
    """Start a scheduler and two workers, each a process of its own, and a client; yield the scheduler."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    scheduler = ["dask_scheduler", "--host", address, "--no-dashboard"]
    worker = ["dask_worker", address, "--nthreads", "1", "--no-dashboard"]
    begun = [
        Popen([sys.executable, "-m", f"distributed.cli.{name}", *options], stdout=DEVNULL, stderr=DEVNULL)
        for name, *options in (scheduler, worker, worker)
    ]
    try:
        with Client(address, timeout=30) as client:
            client.wait_for_workers(2)
            yield begun[0]
    finally:
        for process in begun:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    app()
