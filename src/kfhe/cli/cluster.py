"""Training on more rows than fit into memory, on a local or another cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from kfhe.cli.bars import bar
from kfhe.cli.options import LabelledFiles, Model, Training

if TYPE_CHECKING:
    from distributed import Client

    from kfhe.base import BaseKFHE
    from kfhe.cli.console import Console
    from kfhe.dask.memory import Need
    from kfhe.tables.parts import PartedTable


def train_in_parts(
    labelled: LabelledFiles, training: Training, model: Model, scheduler: str | None, console: Console
) -> tuple[BaseKFHE, dict[str, int], float]:
    """Train on parquet files, which are read part by part.

    Parameters
    ----------
    labelled, training, model
        What to train, and on what.
    scheduler : str or None
        Address of the scheduler; None: workers on this machine.
    console : Console
        Where to report progress.
    """
    import kfhe.dask
    from kfhe.cli.console import notes_on_classes, tell, without_warnings

    data = labelled.open_parts()
    console.print(_overview(data))
    with _cluster(scheduler, training.n_jobs) as client:
        counts = _class_counts(client, data)
        console.print(_classes(data, counts))
        for note in notes_on_classes(data.view.target, counts):
            console.print(note, style="yellow")
        need = _need(client, data, len(counts), model)
        console.print(f"{_statement(need)}. Rows are read and binned first.")
        _check(need)
        classifier = training.new_model(model, labelled.categorical_features(data), kfhe.dask)
        classifier.set_params(n_jobs=None, verbose=int(console.is_terminal))  # workers set their own threads
        started = perf_counter()
        with without_warnings():
            classifier.fit(*data.frames(), groups=data.groups())
        seconds = perf_counter() - started
        tell(getattr(classifier, "remarks_", ()))
        return classifier.to_local(), counts, seconds


def _overview(data: PartedTable) -> str:
    """Describe what is going to be read."""
    from kfhe.display.text import counted

    n_categories = sum(data.categorical)
    return (
        f"{data.name}: {counted(data.n_rows, 'row')} in {counted(len(data.files), 'file')}, read part by "
        f"part; {counted(n_categories, 'column')} of categories, "
        f"{len(data.categorical) - n_categories:,} of numbers or dates"
    )


def _classes(data: PartedTable, counts: dict[str, int]) -> str:
    """Describe the classes, and the number of ignored rows."""
    from kfhe.display.text import some
    from kfhe.tables.labelled import without_label

    n_without = data.n_rows - sum(counts.values())
    classes = some([f"{label} ({count:,})" for label, count in counts.items()])
    without = f"; {without_label(n_without)}" if n_without else ""
    return f"Target {data.view.target!r}: {classes}{without}"


@contextmanager
def _cluster(scheduler: str | None, n_jobs: int | None) -> Iterator[Client]:
    """Connect to a cluster, or start one on this machine."""
    from kfhe.dask.connection import connected, local_cluster
    from kfhe.engine.threads import thread_count

    with local_cluster(thread_count(n_jobs)) if scheduler is None else connected(scheduler) as client:
        if not client.nthreads():
            raise ValueError(f"the cluster at {scheduler} has no workers; start some first")
        yield client


def _class_counts(client: Client, data: PartedTable) -> dict[str, int]:
    """Let the workers read the labels."""
    from distributed import as_completed

    futures = client.map(data.view.classes, data.parts, pure=False)
    with bar("Labels", len(futures)) as advance:
        for _ in as_completed(futures):
            advance(1)
    return data.class_counts(client.gather(futures))


def _need(client: Client, data: PartedTable, n_classes: int, model: Model) -> Need:
    from kfhe.dask.memory import TableSize, needed

    part_bytes = max(part.n_bytes for part in data.parts)
    size = TableSize(data.n_rows, len(data.categorical), data.n_dates, n_classes, part_bytes)
    return needed(client, size, robust=model is Model.robust)


def _statement(need: Need) -> str:
    """Describe how much memory training takes."""
    from kfhe.dask.memory import in_words

    workers = "the worker; it" if need.n_workers == 1 else f"each of {need.n_workers} workers; each"
    has = "has no limit" if need.usable is None else f"has {in_words(need.usable)}"
    return f"Training will take about {in_words(need.bytes)} of memory on {workers} {has}"


def _check(need: Need) -> None:
    """Raise if the workers have less memory than training takes."""
    if need.usable is not None and need.bytes > need.usable:
        raise ValueError(
            f"{_statement(need)}: too little. Leave columns out (--drop), train on fewer files, or use a "
            "cluster with more memory or more workers (--scheduler); --model kfhe-l takes less than robust"
        )
