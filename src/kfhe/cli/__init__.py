"""The command ``kfhe``: one module per command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kfhe.cli import data, export, study
from kfhe.cli.bench import bench
from kfhe.study.errors import StudyError

app = typer.Typer(
    help="Kalman Filter-based Heuristic Ensemble: a classifier for labels that can't be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(bench)
app.command(epilog=export.EXAMPLES)(export.export)
app.add_typer(data.app, name="data")
app.add_typer(study.app, name="study")


_debug = False


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    global _debug
    _debug = debug


def main() -> None:
    """Run the command line: 0 it worked, 1 it failed, 2 it was used wrongly."""
    try:
        app()
    except Exception as error:
        if _debug:
            raise
        if isinstance(error, StudyError):
            typer.echo(f"kfhe: {error}", err=True)
        else:
            typer.echo(f"kfhe: {type(error).__name__}: {error} (kfhe --debug ... shows where)", err=True)
        sys.exit(1)
