"""What can be wrong with a table file, in words."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from shlex import quote

from kfhe.display.text import some


class TableFileError(ValueError):
    """A table file can't be used: the message names it, says what was found, and what to do."""


def did_you_mean(name: str, names: Collection[str]) -> str:
    """Return the end of a sentence that offers the names most like one, or nothing if none is."""
    bare = {other: other.strip().lower() for other in names}
    near = get_close_matches(name.strip().lower(), bare.values(), cutoff=0.6)
    found = [other for other in names if bare[other] in near]
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def no_column(source: str, column: str, columns: list[str]) -> TableFileError:
    """Return an error for a column that isn't there; it names those most like it, or else what there is."""
    near = did_you_mean(column, columns) or f"; there are {some(columns, most=20)}"
    return TableFileError(f"{source}: there is no column {column!r}{near}")


def how_to_fix(text: str) -> str:
    """Return the end of a sentence that says what to do about a value of a csv that can't be read."""
    if text.lower() in ("true", "false"):
        return "write 1 for true and 0 for false"
    if any(letter.isdigit() for letter in text):  # a value, and no word for a gap
        return "fix it: write it as the others are"
    return f"fix it, or treat it as missing: --na {quote(text)}"
