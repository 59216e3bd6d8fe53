"""The command ``kfhe``: one module per command."""

from __future__ import annotations

import typer

from kfhe.cli.bench import bench
from kfhe.cli.demo import demo

app = typer.Typer(
    help="Kalman Filter-based Heuristic Ensemble: a classifier for labels that can't be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(bench)
app.command()(demo)


@app.callback()
def _root() -> None:
    """Keep the commands' names, however many there are."""


def main() -> None:
    """Run the command line."""
    app()
