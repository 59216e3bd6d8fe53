"""Names of columns, classes and algorithms where there is little room: in any script, on one line."""

from __future__ import annotations

import unicodedata
from itertools import accumulate
from typing import Any

from rich.cells import cell_len

from kfhe.look.plain_text import plain


def shortened(name: Any, width: int = 32) -> str:
    """Return a name on one line, with its middle left out if it is wider than `width` letters.

    Chinese, Japanese and Korean letters and emoji are as wide as two.

    Examples
    --------
    >>> from kfhe.look.names import shortened
    >>> shortened("a name that has too many words for an axis", 20)
    'a name that h…n axis'
    """
    text = plain(" ".join(str(name).split()))
    if cell_len(text) <= width:
        return text
    end = (width - 1) // 3
    tail = _beginning(text[::-1], end)[::-1]
    while tail and unicodedata.combining(tail[0]):  # a mark without its letter
        tail = tail[1:]
    return f"{_beginning(text, width - 1 - end)}…{tail}"


def _beginning(text: str, width: int) -> str:
    """Return as many of the first characters as there is room for."""
    return text[: sum(taken <= width for taken in accumulate(map(cell_len, text)))]
