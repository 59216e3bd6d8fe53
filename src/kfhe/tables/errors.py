"""What can be wrong with a table file, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from difflib import get_close_matches
from shlex import quote

SHOWN = 6  # rows, categories and the like that are named one by one


class TableFileError(ValueError):
    """A table file can't be used: the message names it, says what was found, and what to do."""


def did_you_mean(name: str, names: Collection[str]) -> str:
    """Return the end of a sentence that offers the names most like one, or nothing if none is."""
    bare = {other: other.strip().lower() for other in names}
    near = get_close_matches(name.strip().lower(), bare.values(), cutoff=0.6)
    found = [other for other in names if bare[other] in near]
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


def no_column(source: str, column: str, columns: list[str]) -> TableFileError:
    """Return an error for a column that isn't there; it names those most like it, and the others."""
    known = ", ".join(columns[:20]) + (f" and {len(columns) - 20} more" if len(columns) > 20 else "")
    near = did_you_mean(column, columns) or f"; there are {known}"
    return TableFileError(f"{source}: there is no column {column!r}{near}")


def how_to_fix(text: str) -> str:
    """Return the end of a sentence that says what to do about a value of a csv that can't be read."""
    if text.lower() in ("true", "false"):
        return "write 1 for true and 0 for false"
    if any(letter.isdigit() for letter in text):  # a value, and no word for a gap
        return "fix it: write it as the others are"
    return f"fix it, or treat it as missing: --na {quote(text)}"


def check_names(source: str, columns: list[str]) -> None:
    """Raise if two columns have the same name, or none."""
    if columns.count("") > 1:
        places = [str(place) for place, column in enumerate(columns, 1) if not column]
        raise TableFileError(f"{source}: columns {some(places)} have no name in the header; name them")
    twice = [repr(column) for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise TableFileError(f"{source}: there are several columns named {', '.join(twice)}; rename them")


def some(words: list[str], n: int | None = None) -> str:
    """Join the first few of some words, and say how many more there are; n in all, if these are not all."""
    n = len(words) if n is None else n
    return ", ".join(words[:SHOWN]) + (f" and {n - SHOWN} more" if n > SHOWN else "")
