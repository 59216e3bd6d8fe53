"""Lines that commands print: plain text, so that nothing in a table or a model steers the terminal."""

from __future__ import annotations

import sys

from kfhe.look.plain_text import plain


def echo(message: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a line of plain text."""
    end = "\n" if nl else ""
    if err and sys.stderr is not None:  # typer, which is slow to start, would do the same
        print(plain(message), end=end, file=sys.stderr, flush=True)
        return
    import typer

    typer.echo(plain(message), err=err, nl=nl)
