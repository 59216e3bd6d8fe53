"""Printing lines of plain text, so that no text from a table or a model can control the terminal."""

from __future__ import annotations

import io
import os
import sys

from kfhe.display.text import plain


def echo(message: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a line of plain text."""
    try:
        print(plain(message), end="\n" if nl else "", file=sys.stderr if err else sys.stdout, flush=True)
    except BrokenPipeError:
        if not err:
            raise
        mute_errors()


def steady_streams() -> None:
    """Make the standard streams safe: replace closed ones, and escape characters that they can't encode."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def mute_errors() -> None:
    """Discard further output on standard error, because nobody reads it; the command continues."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)
