"""``kfhe study``: run, analyse and report studies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfhe.cli import options
from kfhe.cli.echo import echo

if TYPE_CHECKING:
    from kfhe.study.plan import Plan
    from kfhe.study.report.tables import Table

app = typer.Typer(
    help="Compare classifiers on many datasets, with and without noise.",
    no_args_is_help=True,
)
_RUN_EXAMPLES = """\b
Examples:
  kfhe study run quick
  kfhe study run paper --data-dir data --results paper.sqlite
  kfhe study run --dataset mine.csv --target label --algorithm KFHE-l --algorithm sklearn.svm.SVC --noise 0.2
  kfhe study run quick --noise 0 --noise 0.3 --noise-model border
  kfhe study run paper --data-dir data --scheduler tcp://10.0.0.1:8786
  kfhe study run my-plan.toml
"""
_PRESETS = "quick, paper, noise, others, real or careless"
_OPTIONS = {  # keys of a plan that are options
    "datasets": "--dataset",
    "algorithms": "--algorithm",
    "noise_levels": "--noise",
    "noise_model": "--noise-model",
    "target": "--target",
    "repeats": "--repeats",
}
Results = Annotated[Path, typer.Argument(help="The result file of a study.", show_default=False)]


@app.command(epilog=_RUN_EXAMPLES)
def run(
    plan: Annotated[
        str | None,
        typer.Argument(help=f"A plan: a TOML file, or one of {_PRESETS}.", show_default=False),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Result file; default: named like the plan.", show_default=False)
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="Use this dataset or table file instead; repeatable.")
    ] = None,
    target: options.StudyTarget = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(help="Use this classifier instead: a short name or an import path; repeatable."),
    ] = None,
    noise: Annotated[
        list[float] | None,
        typer.Option(help="Use this noise level instead, such as 0.2 for a fifth of the labels; repeatable."),
    ] = None,
    noise_model: Annotated[
        str | None,
        typer.Option(help="uniform, pairwise, border or neighbourhood (labels), inputs or imbalance."),
    ] = None,
    repeats: Annotated[int | None, typer.Option(help="Repeat cross-validation this often.")] = None,
    data_dir: options.DataDir = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; default: one per processor.")] = None,
    scheduler: options.Scheduler = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run cells again that ended in an error.")
    ] = False,
    mix_versions: Annotated[
        bool, typer.Option("--mix-versions", help="Continue although package versions have changed.")
    ] = False,
) -> None:
    """Run a study. Results that are in the result file already are not computed again.

    If the run is interrupted, the same command continues it. Folds, seed, dropped columns and how files are
    read are set in the plan: kfhe study plan quick > my-plan.toml.
    """
    from kfhe.cli.console import Console
    from kfhe.study.run import describe
    from kfhe.study.run import run as run_study

    options.refuse_jobs(jobs, scheduler)
    changes = {
        "datasets": tuple(dataset) if dataset else None,
        "noise_levels": noise or None,
        "noise_model": noise_model,
        "target": target,
        "repeats": repeats,
    }
    chosen = _changed(_plan(plan, results, bool(dataset)), algorithm, changes)
    file = results or Path(f"{Path(plan or 'study').stem}.sqlite")
    options.check_writable(file, option="--results")
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
        console.print(f"Left out: {problem}", style="yellow", soft_wrap=True)
    console.print(describe(outcome, file), soft_wrap=True)
    if outcome.interrupted:
        raise typer.Exit(130)
    _print_averages(file)
    console.print(f"For tables, tests and charts: kfhe study report {file}", soft_wrap=True)
    if outcome.ran and outcome.failed == outcome.ran:
        raise typer.Exit(1)


@app.command()
def analyse(results: Results) -> None:
    """Print the tables of a study: scores, ranks, tests, times and datasets."""
    from kfhe.study.analysis import Analysis
    from kfhe.study.report.tables import all_tables

    for table in all_tables(Analysis(results)):
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
    from kfhe.study.analysis import Analysis
    from kfhe.study.report import PAGE, write_report

    options.check_folder(output, [PAGE], results)
    echo(f"The report is in {write_report(Analysis(results), output, files=files)}")


@app.command()
def plan(preset: Annotated[str, typer.Argument(help=_PRESETS)] = "quick") -> None:
    """Print a plan that comes with kfhe, to change and run: kfhe study plan quick > my-plan.toml."""
    echo(_preset_text(preset), nl=False)


def _plan(given: str | None, results: Path | None, own_data: bool) -> Plan:
    """Return the plan: from a file, a preset, or the result file."""
    from kfhe.study.plan import Plan
    from kfhe.study.store import Store

    if given is not None and Path(given).suffix:
        return Plan.from_file(given)
    if given is not None or own_data:
        return Plan.from_toml(_preset_text(given or "quick"))
    if results is not None and results.is_file():
        with Store.read(results) as store:
            return store.plan
    raise typer.BadParameter("give a plan, such as quick or a TOML file, or your own data by --dataset")


def _preset_text(name: str) -> str:
    """Return the text of a preset; raise if it does not exist."""
    from kfhe.study.errors import StudyError
    from kfhe.study.plan import preset_text

    try:
        return preset_text(name)
    except StudyError as error:
        raise typer.BadParameter(str(error)) from error


def _changed(plan: Plan, algorithms: list[str] | None, changes: dict[str, Any]) -> Plan:
    from kfhe.study.errors import StudyError
    from kfhe.study.plan import Algorithm

    changes = {key: value for key, value in changes.items() if value is not None}
    if algorithms:
        known = {algorithm.name: algorithm for algorithm in plan.algorithms}
        changes["algorithms"] = tuple(known.get(name) or Algorithm(name, name) for name in algorithms)
    try:
        return replace(plan, **changes).checked()
    except StudyError as error:  # the plan itself was valid
        message = str(error)
        for key, option in _OPTIONS.items():
            message = message.replace(f"'{key}'", option, 1) if key in changes else message
        raise typer.BadParameter(message) from error


def _print_averages(results: Path) -> None:
    from kfhe.study.analysis import Analysis
    from kfhe.study.report.tables import average_ranks, finding, mean_scores

    analysis = Analysis(results)
    echo(finding(analysis))
    _print(mean_scores(analysis))
    _print(average_ranks(analysis))


def _print(table: Table) -> None:
    """Print a report's table on the terminal."""
    from rich.text import Text

    from kfhe.cli import console

    table = table.upright()
    rows = [[Text(value.text, style="bold" if value.strong else "") for value in row] for row in table.rows]
    caption = table.note or None
    shown = console.table(
        table.head, rows, numbers=True, title=table.title, caption=caption, caption_justify="left"
    )
    console.Console().print(shown)
