"""``kfhe study``: run a comparison of classifiers, analyse it, and report on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfhe.cli.echo import echo
from kfhe.cli.options import Scheduler, check_folder, check_writable, refuse_jobs

if TYPE_CHECKING:
    from kfhe.study.plan import Plan
    from kfhe.study.report.tables import Table

app = typer.Typer(
    help="Compare classifiers on many datasets, with and without noise.",
    no_args_is_help=True,
)
_RUN_EXAMPLES = """\b
Examples:
  kfhe study run --preset quick
  kfhe study run --preset paper --data-dir data --results paper.sqlite
  kfhe study run --dataset mine.csv --target label --algorithm KFHE-l --algorithm sklearn.svm.SVC --noise 0.2
  kfhe study run --preset quick --noise 0 --noise 0.3 --noise-model border
  kfhe study run --preset real --data-dir tables
  kfhe study run --preset paper --data-dir data --scheduler tcp://10.0.0.1:8786
  kfhe study run my-plan.toml
"""
_OPTIONS = {  # of keys of a plan that are called otherwise
    "datasets": "--dataset",
    "algorithms": "--algorithm",
    "noise_levels": "--noise",
    "noise_model": "--noise-model",
}
Results = Annotated[Path, typer.Argument(help="The result file of a study.", show_default=False)]


@app.command(epilog=_RUN_EXAMPLES)
def run(
    plan: Annotated[Path | None, typer.Argument(help="The plan, a TOML file.", show_default=False)] = None,
    preset: Annotated[
        str | None, typer.Option(help="A plan that comes along: quick, paper, noise, others or real.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="The result file; default: named like the plan.", show_default=False)
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Use this dataset or csv, parquet or Excel file instead; repeatable."),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(help="Use this short name or import path of a classifier instead; repeatable."),
    ] = None,
    noise: Annotated[
        list[float] | None,
        typer.Option(help="Use this noise level instead, such as 0.2 for a fifth of the labels; repeatable."),
    ] = None,
    noise_model: Annotated[
        str | None,
        typer.Option(
            help="What the noise is: uniform, pairwise, border or neighbourhood (labels), inputs, imbalance.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            help="The column to learn; default: the one named class, or the one that the catalogue knows.",
            show_default=False,
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Leave out columns, such as id,x_*.", metavar="COLUMNS"),
    ] = None,
    repeats: Annotated[int | None, typer.Option(help="Repeat cross-validation this often.")] = None,
    folds: Annotated[int | None, typer.Option(help="Number of folds.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of folds, noise and classifiers.")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(envvar="KFHE_DATA", help="Folder of csv or parquet files."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; default: one per processor.")] = None,
    scheduler: Scheduler = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run cells again that ended in an error.")
    ] = False,
    mix_versions: Annotated[
        bool, typer.Option("--mix-versions", help="Go on although packages have other versions by now.")
    ] = False,
) -> None:
    """Run a study; what is in the result file already is not run again.

    Ctrl-C or kill ends it, and so does a power cut: the same command goes on from there.
    """
    from kfhe.cli.console import Console
    from kfhe.study.run import describe
    from kfhe.study.run import run as run_study

    refuse_jobs(jobs, scheduler)
    changes = {
        "repeats": repeats,
        "folds": folds,
        "seed": seed,
        "noise_levels": noise or None,
        "noise_model": noise_model,
        "target": target,
        "drop": tuple(name for names in drop for name in names.split(",")) if drop else None,
    }
    chosen = _changed(_plan(plan, preset, results, bool(dataset)), dataset, algorithm, changes)
    file = results or Path(f"{plan.stem if plan else preset or 'study'}.sqlite")
    check_writable(file, option="--results")
    console = Console(stderr=True)
    outcome = run_study(
        chosen,
        file,
        data_dir=data_dir,
        n_jobs=jobs,
        scheduler=scheduler,
        retry_failed=retry_failed,
        mix_versions=mix_versions,
        console=console,
    )
    for problem in outcome.left_out.values():
        console.print(f"Left out: {problem}", style="yellow", highlight=False, soft_wrap=True)
    console.print(describe(outcome, file), markup=False, highlight=False, soft_wrap=True)
    if outcome.interrupted:
        raise typer.Exit(130)
    _print_averages(file)
    console.print(f"For tables, tests and charts: kfhe study report {file}", highlight=False, soft_wrap=True)
    if outcome.ran and outcome.failed == outcome.ran:
        raise typer.Exit(1)


@app.command()
def analyse(
    results: Results,
    cells: Annotated[
        Path | None, typer.Option(help="Also write all cells to this file: .csv, .csv.gz or .parquet.")
    ] = None,
) -> None:
    """Print the tables of a study: scores with ranks, average ranks, the tests, and what was learnt."""
    from kfhe.study.analyse import Analysis
    from kfhe.study.report.tables import all_tables

    if cells is not None:
        check_writable(cells, results, option="--cells")
    analysis = Analysis(results)
    if cells is not None:  # first, as whoever reads what is printed may stop reading
        from kfhe.look.counts import counted
        from kfhe.study.report import write_cells

        echo(f"{counted(len(analysis.cells), 'cell', 'are')} in {write_cells(analysis, cells)}", err=True)
    for table in all_tables(analysis):
        if table.section in ("ranks", "metrics", "scores", "tests", "times", "datasets"):
            _print(table)


@app.command()
def report(
    results: Results,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")] = Path("report"),
    files: Annotated[
        bool, typer.Option(help="Write tables (csv, LaTeX) and figures (SVG, PNG) as files, too.")
    ] = True,
) -> None:
    """Write a page with the charts, tables and tests of a study; it needs no network."""
    from kfhe.study.analyse import Analysis
    from kfhe.study.report import PAGE, write_report

    check_folder(output, [PAGE], results)
    echo(f"The report is in {write_report(Analysis(results), output, files=files)}")


@app.command()
def plan(
    preset: Annotated[str, typer.Argument(help="quick, paper, noise, others or real")] = "quick",
) -> None:
    """Print a preset, to be changed and run: kfhe study plan quick > mine.toml."""
    echo(_preset_text(preset), nl=False)


def _plan(path: Path | None, preset: str | None, results: Path | None, own_data: bool) -> Plan:
    """Return the plan that is asked for: a file, a preset, or the one in the result file."""
    from kfhe.study.plan import Plan
    from kfhe.study.store import Store

    if path is not None and preset is not None:
        raise typer.BadParameter("a plan and a preset can't be run at once")
    if path is not None:
        return Plan.from_file(path)
    if preset is not None or own_data:
        return Plan.from_toml(_preset_text(preset or "quick"))
    if results is not None and results.is_file():
        with Store.read(results) as store:
            return store.plan
    raise typer.BadParameter(
        "give a plan, a --preset such as quick or paper, or --dataset with your own file"
    )


def _preset_text(name: str) -> str:
    """Return the text of a preset; one that is not there is a mistake of the command's user."""
    from kfhe.study.errors import StudyError
    from kfhe.study.plan import preset_text

    try:
        return preset_text(name)
    except StudyError as error:
        raise typer.BadParameter(str(error)) from error


def _changed(
    plan: Plan, datasets: list[str] | None, algorithms: list[str] | None, changes: dict[str, Any]
) -> Plan:
    from kfhe.study.errors import StudyError
    from kfhe.study.plan import Algorithm

    given = {key: value for key, value in changes.items() if value is not None}
    if datasets:
        given["datasets"] = tuple(datasets)
    if algorithms:
        known = {algorithm.name: algorithm for algorithm in plan.algorithms}
        given["algorithms"] = tuple(known.get(name) or Algorithm(name, name) for name in algorithms)
    try:
        return replace(plan, **given).checked()
    except StudyError as error:  # the plan was in order before
        message = str(error)
        for key in changes | given:
            message = message.replace(f"'{key}'", _OPTIONS.get(key, f"--{key}"), 1)
        raise typer.BadParameter(message) from error


def _print_averages(results: Path) -> None:
    from kfhe.study.analyse import Analysis
    from kfhe.study.report.tables import average_ranks, finding, mean_scores

    analysis = Analysis(results)
    echo(finding(analysis))
    _print(mean_scores(analysis))
    _print(average_ranks(analysis))


def _print(table: Table) -> None:
    """Print a report's table on the terminal."""
    from rich.markup import escape
    from rich.table import Table as RichTable

    from kfhe.cli.console import Console

    table = table.upright()
    shown = RichTable(title=table.title, caption=table.note or None, caption_justify="left")
    for position, name in enumerate(table.head):
        shown.add_column(name, justify="right" if position else "left")
    for row in table.rows:
        shown.add_row(*(f"[bold]{escape(v.text)}[/]" if v.strong else escape(v.text) for v in row))
    Console().print(shown)
