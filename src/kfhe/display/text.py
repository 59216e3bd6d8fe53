"""Text for people: counted nouns, the first few of many, shortened and plain names, and what to install."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

SHOWN = 6  # rows, categories and the like that are named one by one
SINGULAR = {"": "", "are": " is", "were": " was"}
# Control characters but tab and line end, and those that turn the direction of writing
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def counted(number: int | str, what: str, are: str = "") -> str:
    """Return a number of things, and the verb that goes with it.

    Examples
    --------
    >>> from kfhe.display.text import counted
    >>> counted(1, "row"), counted(1200, "row"), counted("no", "class")
    ('1 row', '1,200 rows', 'no classes')
    >>> counted(1, "cell", "were"), counted(2, "cell", "were")
    ('1 cell was', '2 cells were')
    """
    if number == 1:
        return f"1 {what}{SINGULAR[are]}"
    number = f"{number:,}" if isinstance(number, int) else number
    return f"{number} {what}{'es' if what.endswith('s') else 's'} {are}".rstrip()


def some(words: Sequence[str], n: int | None = None, most: int = SHOWN) -> str:
    """Join the first few of some words, and say how many more there are; n in all, if these are not all."""
    n = len(words) if n is None else n
    return ", ".join(words[:most]) + (f" and {n - most:,} more" if n > most else "")


def plain(text: str) -> str:
    r"""Return text without control characters; tabs and line ends stay.

    Cells, names and categories come from anywhere: an escape sequence in them could clear or rename the
    terminal that shows them.

    Examples
    --------
    >>> from kfhe.display.text import plain
    >>> plain("\x1b[2J\x07red")
    '[2Jred'
    """
    return CONTROL.sub("", text)


def shortened(name: Any, width: int = 32) -> str:
    """Return a name on one line, with its middle left out if it is wider than `width` letters.

    Chinese, Japanese and Korean letters and emoji are as wide as two.

    Examples
    --------
    >>> from kfhe.display.text import shortened
    >>> shortened("a name that has too many words for an axis", 20)
    'a name that h…n axis'
    """
    from rich.cells import cell_len  # rich is slow to import

    def beginning(text: str, width: int) -> str:
        """Return as many of the first characters as fit."""
        return text[: sum(taken <= width for taken in accumulate(map(cell_len, text)))]

    text = plain(" ".join(str(name).split()))
    if cell_len(text) <= width:
        return text
    end = (width - 1) // 3
    tail = beginning(text[::-1], end)[::-1]
    while tail and unicodedata.combining(tail[0]):  # a mark without its letter
        tail = tail[1:]
    return f"{beginning(text, width - 1 - end)}…{tail}"


@contextmanager
def needed(who: str, extra: str) -> Iterator[None]:
    """Say of a package that can't be imported here who needs it, and which extra brings it.

    Examples
    --------
    >>> from kfhe.display.text import needed
    >>> with needed("a telescope needs lenses", "telescope"):
    ...     import lenses
    Traceback (most recent call last):
    ImportError: a telescope needs lenses: pip install "kfhe[telescope]"
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f'{who}: pip install "kfhe[{extra}]"', name=error.name) from error
