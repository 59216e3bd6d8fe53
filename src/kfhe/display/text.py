"""Text for people: numbers of things, shortened lists and names, plain text, and missing packages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

SHOWN = 6  # number of rows, categories and the like that are listed
SINGULAR = {"": "", "are": " is", "were": " was"}
# Control characters except tab and line end, and characters that change the direction of writing
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def counted(number: int | str, what: str, are: str = "") -> str:
    """Return a number of things, optionally with a verb.

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
    """Join the first few words, and add the number of others; n is the total, if `words` has only some."""
    n = len(words) if n is None else n
    return ", ".join(words[:most]) + (f" and {n - most:,} more" if n > most else "")


def plain(text: str) -> str:
    r"""Return text without control characters; tabs and line ends are kept.

    Cells, names and categories are not trusted: an escape sequence could clear or rename the
    terminal.

    Examples
    --------
    >>> from kfhe.display.text import plain
    >>> plain("\x1b[2J\x07red")
    '[2Jred'
    """
    return CONTROL.sub("", text)


def shortened(name: Any, width: int = 32) -> str:
    """Return a name on one line, with the middle omitted if it is wider than `width` characters.

    Chinese, Japanese and Korean characters and emoji have a width of two.

    Examples
    --------
    >>> from kfhe.display.text import shortened
    >>> shortened("a name that has too many words for an axis", 20)
    'a name that h…n axis'
    """
    from rich.cells import cell_len  # rich is slow to import

    def beginning(text: str, width: int) -> str:
        """Return the first characters that fit."""
        return text[: sum(taken <= width for taken in accumulate(map(cell_len, text)))]

    text = plain(" ".join(str(name).split()))
    if cell_len(text) <= width:
        return text
    end = (width - 1) // 3
    tail = beginning(text[::-1], end)[::-1]
    while tail and unicodedata.combining(tail[0]):  # a combining mark without its character
        tail = tail[1:]
    return f"{beginning(text, width - 1 - end)}…{tail}"


@contextmanager
def needed(who: str, extra: str) -> Iterator[None]:
    """Raise ImportError with installation advice if a package can't be imported.

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
