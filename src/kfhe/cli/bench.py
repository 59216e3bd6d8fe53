"""``kfhe bench``: ours and its peers, timed on the same data in one run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer


def bench(
    data: Annotated[
        list[str] | None, typer.Option(help="A dataset, may be repeated. An unknown name lists them.")
    ] = None,
    algorithm: Annotated[
        list[str] | None, typer.Option(help="A peer, may be repeated. Ours is always there.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="How often each timing is taken; 3, or 1 with --quick.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads for everybody.")] = 2,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the results as JSON.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small datasets only.")] = False,
    full: Annotated[bool, typer.Option("--full", help="All datasets, the million rows too.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Compare the search for wrong labels with cleanlab instead.")
    ] = False,
) -> None:
    """Train and predict with ours and with the peers that are installed, and compare.

    Everybody gets 100 components, the same rows, 10 % of the training labels changed, and the same number
    of threads. With --audit, labels of 15 datasets are changed and have to be found, others in each round.
    """
    if audit:
        if algorithm or quick or full:
            raise typer.BadParameter("--audit takes none of --algorithm, --quick and --full")
        _bench_audit(data, rounds or 3, threads, json_file)
        return
    from rich.console import Console

    from kfhe.bench.algorithms import ALGORITHMS
    from kfhe.bench.datasets import DATASETS, FULL, QUICK, USUAL
    from kfhe.bench.report import as_json, closing_lines, table
    from kfhe.bench.runner import Run, measure

    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other")
    _check_names("--data", data or [], DATASETS)
    _check_names("--algorithm", algorithm or [], ALGORITHMS)
    if json_file is not None:
        _check_writable(json_file)
    console = Console()
    if not console.is_terminal:
        console.width = 150  # room for all columns
    run = Run.with_settings(rounds=rounds or (1 if quick else 3), n_threads=threads)
    for dataset in dict.fromkeys(data or (QUICK if quick else FULL if full else USUAL)):
        with Console(stderr=True).status("") as status:
            measure(run, dataset, algorithm or (), report=status.update)
        if dataset in run.tables:
            console.print(table(run, dataset))
        if json_file is not None:  # after each dataset, so that a run cut short loses little
            _write(json_file, as_json(run))
    if not run.tables:
        for name, reason in run.left_out.items():
            typer.echo(f"{name}: {reason}", err=True)
        raise typer.Exit(1)
    for line in closing_lines(run):
        console.print(line, highlight=False, markup=False)
    if json_file is not None:
        typer.echo(f"The results are in {json_file}")


def _bench_audit(data: list[str] | None, rounds: int, threads: int, json_file: Path | None) -> None:
    from rich.console import Console

    from kfhe.bench.audit import DATASETS, GOALS, AuditRun, closing_lines, comparison, estimates, measure
    from kfhe.bench.report import as_json

    _check_names("--data", data or [], DATASETS)
    if json_file is not None:
        _check_writable(json_file)
    run = AuditRun.with_settings(rounds=rounds, n_threads=threads)
    for dataset in dict.fromkeys(data or DATASETS):
        with Console(stderr=True).status("") as status:
            measure(run, dataset, report=status.update)
        if json_file is not None:
            _write(json_file, as_json(run, GOALS))
    console = Console()
    if not console.is_terminal:
        console.width = 150
    if run.tables:
        console.print(comparison(run))
        console.print(estimates(run))
    for line in closing_lines(run):
        console.print(line, highlight=False, markup=False)
    if not run.tables:
        raise typer.Exit(1)
    if json_file is not None:
        typer.echo(f"The results are in {json_file}")


def _check_names(option: str, names: Iterable[str], known: Iterable[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(
            f"there is no {unknown[0]!r}; known are {', '.join(known)}", param_hint=option
        )


def _check_writable(file: Path) -> None:
    """Find out before the long run, not after it."""
    if file.is_dir():
        raise typer.BadParameter(f"{file} is a folder", param_hint="--json")
    if not os.access(file.parent, os.W_OK):
        raise typer.BadParameter(f"can't write to the folder {file.parent}", param_hint="--json")


def _write(file: Path, text: str) -> None:
    """Write all of the file or nothing."""
    unfinished = file.with_name(f"{file.name}.part")
    try:
        unfinished.write_text(f"{text}\n")
        unfinished.replace(file)
    except OSError as error:
        typer.echo(f"Can't write {file}: {error.strerror}", err=True)
        raise typer.Exit(1) from None
