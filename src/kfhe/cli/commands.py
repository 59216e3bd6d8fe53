"""The commands of ``kfhe`` as a typer app: one module each."""

from __future__ import annotations

from typing import Annotated

import typer

from kfhe.cli import apply, audit, data, evaluate, export, fit, plot, predict, study
from kfhe.cli.echo import echo

app = typer.Typer(
    help="Kalman Filter-based Heuristic Ensemble: a classifier for tables with wrong labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help is half as long
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=fit.EXAMPLES)(fit.fit)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command(epilog=audit.EXAMPLES)(audit.audit)
app.command(epilog=apply.EXAMPLES)(apply.apply)
app.command(epilog=plot.EXAMPLES)(plot.plot)
app.command(epilog=export.EXAMPLES)(export.export)
app.add_typer(data.app, name="data")
app.add_typer(study.app, name="study")

debug = False  # whether to show tracebacks


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        echo(f"kfhe {version('kfhe')}")
        raise typer.Exit


@app.callback()
def _root(
    traceback: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    global debug
    debug = traceback
