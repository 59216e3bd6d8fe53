"""``python -m benchmarks``: ours and its peers, timed on the same data in one run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console


def main(
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
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other")
    if json_file is not None:
        _check_writable(json_file)
    if not audit:
        _compare_speed(data, algorithm, rounds or (1 if quick else 3), threads, json_file, quick, full)
        return
    if algorithm or quick or full:
        raise typer.BadParameter("--audit takes none of --algorithm, --quick and --full")
    _compare_audits(data, rounds or 3, threads, json_file)


def _compare_speed(
    data: list[str] | None,
    algorithm: list[str] | None,
    rounds: int,
    threads: int,
    json_file: Path | None,
    quick: bool,
    full: bool,
) -> None:
    from rich.console import Console

    from benchmarks.algorithms import NAMES
    from benchmarks.datasets import DATASETS, FULL, QUICK, USUAL
    from benchmarks.report import as_json, closing_lines, table
    from benchmarks.runner import Run, measure
    from kfhe.files import write_whole

    _check_names("--data", data or [], DATASETS)
    _check_names("--algorithm", algorithm or [], NAMES)
    console = _console()
    run = Run.with_settings(rounds=rounds, n_threads=threads)
    for dataset in dict.fromkeys(data or (QUICK if quick else FULL if full else USUAL)):
        with Console(stderr=True).status("") as status:
            measure(run, dataset, algorithm or (), report=status.update)
        if dataset in run.tables:
            console.print(table(run, dataset))
        if json_file is not None:  # after each dataset, so that a run cut short loses little
            write_whole(json_file, as_json(run))
    if not run.tables:
        for name, reason in run.left_out.items():
            typer.echo(f"{name}: {reason}", err=True)
        raise typer.Exit(1)
    for line in closing_lines(run):
        console.print(line, highlight=False, markup=False)
    if json_file is not None:
        typer.echo(f"The results are in {json_file}")


def _compare_audits(data: list[str] | None, rounds: int, threads: int, json_file: Path | None) -> None:
    from rich.console import Console

    from benchmarks.audit import DATASETS, GOALS, AuditRun, closing_lines, comparison, estimates, measure
    from benchmarks.report import as_json
    from kfhe.files import write_whole

    _check_names("--data", data or [], DATASETS)
    run = AuditRun.with_settings(rounds=rounds, n_threads=threads)
    for dataset in dict.fromkeys(data or DATASETS):
        with Console(stderr=True).status("") as status:
            measure(run, dataset, report=status.update)
        if json_file is not None:
            write_whole(json_file, as_json(run, GOALS))
    console = _console()
    if run.tables:
        console.print(comparison(run))
        console.print(estimates(run))
    for line in closing_lines(run):
        console.print(line, highlight=False, markup=False)
    if not run.tables:
        raise typer.Exit(1)
    if json_file is not None:
        typer.echo(f"The results are in {json_file}")


def _console() -> Console:
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = 150  # room for all columns
    return console


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
    folder = next(parent for parent in file.absolute().parents if parent.exists())
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"can't write to the folder {folder}", param_hint="--json")


app = typer.Typer(pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
