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
    frontier: Annotated[
        bool, typer.Option("--frontier", help="Compare time against quality, at several settings, instead.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the frontier: .svg, .png or .pdf.")
    ] = None,
    scaling: Annotated[
        bool, typer.Option("--scaling", help="See how the cost of a fit grows with the table instead.")
    ] = False,
    prediction: Annotated[
        bool, typer.Option("--prediction", help="Compare how fast models predict few and many rows instead.")
    ] = False,
) -> None:
    """Train and predict with ours and with the peers that are installed, and compare.

    Everybody gets 100 components, the same rows, 10 % of the training labels changed, and the same number
    of threads. With --audit, labels of 15 datasets are changed and have to be found, others in each round.
    With --frontier, ours is looked at by stages, peers at several settings, with so many threads and with all
    there are. With --scaling, threads, rows, classes, columns and categories grow, one at a time; --data
    chooses among them. With --prediction, models of several sizes predict 1 to 100,000 rows.
    """
    if quick and full:
        raise typer.BadParameter("--quick and --full exclude each other")
    modes = {"--audit": audit, "--frontier": frontier, "--scaling": scaling, "--prediction": prediction}
    chosen = [option for option, is_on in modes.items() if is_on]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)} exclude each other")
    if chosen and (algorithm or quick or full):
        raise typer.BadParameter(f"{chosen[0]} takes none of --algorithm, --quick and --full")
    if json_file is not None:
        _check_writable(json_file, "--json")
    if picture is not None:
        _check_picture(picture, frontier)
    if audit:
        _compare_audits(data, rounds or 3, threads, json_file)
    elif frontier:
        _find_frontier(data, rounds or 3, threads, json_file, picture)
    elif scaling:
        _see_growth(data, rounds or 3, threads, json_file)
    elif prediction:
        _compare_predictions(data, rounds or 3, threads, json_file)
    else:
        _compare_speed(data, algorithm, rounds or (1 if quick else 3), threads, json_file, quick, full)


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


def _find_frontier(
    data: list[str] | None, rounds: int, threads: int, json_file: Path | None, picture: Path | None
) -> None:
    from rich.console import Console

    from benchmarks.datasets import DATASETS, FRONTIER, NATIVE
    from benchmarks.frontier import CONTENDERS, FrontierRun, closing_lines, measure, table
    from benchmarks.report import as_json
    from kfhe.files import write_whole

    numbers_only = [name for name, match in DATASETS.items() if match.algorithms != NATIVE]
    _check_names("--data", data or [], numbers_only)
    console, n_threads = _console(), sorted({threads, os.cpu_count() or threads})
    run = FrontierRun.with_settings(rounds=rounds, n_threads=n_threads)
    for dataset in dict.fromkeys(data or FRONTIER):
        with Console(stderr=True).status("") as status:
            measure(run, dataset, CONTENDERS, report=status.update)
        for number in n_threads:
            console.print(table(run, dataset, number))
        if json_file is not None:
            write_whole(json_file, as_json(run, ()))
        if picture is not None:
            from benchmarks.frontier_plot import draw
            from kfhe.plotting.base import rendered

            write_whole(picture, rendered(draw(run), picture.suffix[1:]))
    for line in closing_lines(run):
        console.print(line, highlight=False, markup=False)


def _see_growth(data: list[str] | None, rounds: int, threads: int, json_file: Path | None) -> None:
    from rich.console import Console

    from benchmarks.report import as_json
    from benchmarks.scaling import AXES, ScalingRun, closing_lines, measure, table
    from kfhe.files import write_whole

    _check_names("--data", data or [], AXES)
    console, run = _console(), ScalingRun.with_settings(rounds=rounds, n_threads=threads)
    for axis in dict.fromkeys(data or AXES):
        with Console(stderr=True).status("") as status:
            measure(run, axis, report=status.update)
        console.print(table(run, axis))
        if json_file is not None:
            write_whole(json_file, as_json(run, ()))
    for line in closing_lines(run):
        console.print(line, highlight=False, markup=False)


def _compare_predictions(data: list[str] | None, rounds: int, threads: int, json_file: Path | None) -> None:
    from rich.console import Console

    from benchmarks.prediction import (
        CONTENDERS,
        DATASETS,
        GOALS,
        METHODS,
        PredictionRun,
        closing_lines,
        measure,
        table,
    )
    from benchmarks.report import as_json
    from kfhe.files import write_whole

    _check_names("--data", data or [], DATASETS)
    console, run = _console(), PredictionRun.with_settings(rounds=rounds, n_threads=threads)
    for dataset in dict.fromkeys(data or DATASETS):
        with Console(stderr=True).status("") as status:
            measure(run, dataset, CONTENDERS, report=status.update)
        for method in METHODS:
            console.print(table(run, dataset, method))
        if json_file is not None:
            write_whole(json_file, as_json(run, GOALS))
    for line in closing_lines(run):
        console.print(line, highlight=False, markup=False)


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


def _check_picture(file: Path, frontier: bool) -> None:
    from kfhe.plotting.base import FORMATS

    if not frontier:
        raise typer.BadParameter("it is for --frontier", param_hint="--picture")
    if file.suffix[1:] not in FORMATS:
        accepted = ", ".join(f".{known}" for known in FORMATS)
        raise typer.BadParameter(f"{file}: the file's name must end in {accepted}", param_hint="--picture")
    _check_writable(file, "--picture")


def _check_writable(file: Path, option: str) -> None:
    """Find out before the long run, not after it."""
    if file.is_dir():
        raise typer.BadParameter(f"{file} is a folder", param_hint=option)
    folder = next(parent for parent in file.absolute().parents if parent.exists())
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"can't write to the folder {folder}", param_hint=option)


app = typer.Typer(pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    app(prog_name="python -m benchmarks")
