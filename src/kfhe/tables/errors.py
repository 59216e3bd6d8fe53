"""Errors of table files, and their wording."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from shlex import quote

from kfhe.display.text import some


class TableFileError(ValueError):
    """A table file can't be used. The message names it, what was found, and what to do."""


def did_you_mean(name: str, names: Collection[str]) -> str:
    """Return the end of a sentence that suggests similar names, if there are any."""
    bare = {other: other.strip().lower() for other in names}
    near = get_close_matches(name.strip().lower(), bare.values(), cutoff=0.6)
    found = [other for other in names if bare[other] in near]
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def no_column(source: str, column: str, columns: list[str]) -> TableFileError:
    """Return the error for a missing column; it suggests similar names, or lists all."""
    near = did_you_mean(column, columns) or f"; there are {some(columns, most=20)}"
    return TableFileError(f"{source}: there is no column {column!r}{near}")


def how_to_fix(text: str) -> str:
    """Return the end of a sentence on how to fix a value of a csv."""
    if text.lower() in ("true", "false"):
        return "write 1 for true and 0 for false"
    if any(letter.isdigit() for letter in text):  # a value rather than a word for missing ones
        return "fix it: write it as the others are"
    return f"fix it, or treat it as missing: --na {quote(text)}"
