"""The command ``kfhe``: one module per command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kfhe.cli import data, study
from kfhe.cli.bench import bench
from kfhe.study.errors import StudyError

app = typer.Typer(
    help="Kalman Filter-based Heuristic Ensemble: a classifier for labels that can't be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(bench)
app.add_typer(data.app, name="data")
app.add_typer(study.app, name="study")


@app.callback()
def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if debug:
        # Whatever goes wrong now reaches Python's own traceback
        sys.excepthook = sys.__excepthook__


def main() -> None:
    """Run the command line: 0 it worked, 1 it failed, 2 it was used wrongly."""
    sys.excepthook = _explain
    app()


def _explain(kind: type[BaseException], error: BaseException, trace: object) -> None:
    """Say in a line what went wrong; Python then ends with exit code 1."""
    if issubclass(kind, StudyError):
        print(f"kfhe: {error}", file=sys.stderr)
    else:
        print(f"kfhe: {kind.__name__}: {error} (kfhe --debug ... shows where)", file=sys.stderr)
