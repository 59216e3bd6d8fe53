"""Plain text: what others wrote, without what a terminal would obey."""

from __future__ import annotations

import re

# Control characters but tab and line end, and those that turn the direction of writing
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    r"""Return text without control characters; tabs and line ends stay.

    Cells, names and categories come from anywhere: an escape sequence in them could colour, clear or rename
    the terminal that they are shown on.

    Examples
    --------
    >>> from kfhe.look.plain_text import plain
    >>> plain("\x1b[2J\x07red")
    '[2Jred'
    """
    return OBEYED.sub("", text)
