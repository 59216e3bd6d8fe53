"""Lines that commands print: plain text, so that nothing in a table or a model steers the terminal."""

from __future__ import annotations

import typer

from kfhe.look.plain_text import plain


def echo(message: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a line of plain text."""
    typer.echo(plain(message), err=err, nl=nl)
