"""Quoted line breaks of a csv: those that are meant, and quotes that have swallowed rows."""

from __future__ import annotations

import re

from kfhe.tables.errors import TableFileError, some

MOST_LINES = 20  # that one field may have
FEW_LINES = 3  # that may look like rows and yet be text

_TO_CLOSING = re.compile(rb'[^"]*(?:""[^"]*)*"')


class QuotedLines:
    """Follows the quotes of a csv as its bytes go by, and remembers the fields of several lines.

    Parameters
    ----------
    name : str
        What messages call the file.
    sep : str
        What separates columns.
    """

    def __init__(self, name: str, sep: str) -> None:
        self._name = name
        self._sep = sep.encode()
        self._opening = re.compile(rb'(?:\A|(?<=[%s\n\r]))"' % re.escape(self._sep))
        self._line = 1  # of the first byte that has not been looked at
        self._columns = 0
        self._rest = b""  # the start of a line that has not come whole
        self._opened: int | None = None  # line in which a quote was opened that is not closed yet
        self._inside: list[bytes] = []  # what has come since
        self._first_lines: list[int] = []
        self._swallowed: TableFileError | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes; none at all end the file."""
        if self._line == 1 and not self._columns:
            self._columns = data.split(b"\n", 1)[0].count(self._sep) + 1
        data = data or b"\n"
        breaks, end = data.count(b"\n"), data.rfind(b"\n") + 1
        if self._opened is not None or b'"' in data or b'"' in self._rest:
            lines = self._rest + data[:end] if end else b""
            if self._opened is not None or _breaks_inside(lines):
                self._follow(lines)
        self._line += breaks
        self._rest = data[end:] if end else self._rest + data

    def skip(self, lines: int) -> None:
        """Pass over whole lines in which all quotes are closed."""
        self._line += lines

    def check(self, *, at_end: bool = False) -> None:
        """Raise if rows were swallowed.

        Raises
        ------
        TableFileError
            If a field has many lines, or at the end a quote is still open.
        """
        if self._swallowed is not None:
            raise self._swallowed
        if at_end and self._opened is not None:
            raise TableFileError(
                f'{self._name}: a quote (") is opened in line {self._opened} and never closed: '
                f"{_shown(b''.join(self._inside))}"
            )

    def notes(self) -> list[str]:
        """Return what was noticed, in a sentence."""
        count = len(self._first_lines)
        if not count:
            return []
        where = some([str(line) for line in self._first_lines])
        found = f"{count} values have line breaks in quotes; they begin in lines {where}"
        if count == 1:
            found = f"1 value has a line break in quotes; it begins in line {where}"
        return [f'{self._name}: {found}. If that is not meant, a quote (") is missing or too many there.']

    def _follow(self, lines: bytes) -> None:
        """Go from quote to quote; only those at the start of a field open one."""
        position = 0
        while True:
            if self._opened is None:
                opening = self._opening.search(lines, position)
                if opening is None:
                    return
                position = opening.end()
                self._opened = self._line + lines.count(b"\n", 0, position)
            closing = _TO_CLOSING.match(lines, position)
            if closing is None:
                self._inside.append(lines[position:])
                return
            self._close(b"".join(self._inside) + closing.group()[:-1])
            position = closing.end()

    def _close(self, field: bytes) -> None:
        line, self._opened, self._inside = self._opened, None, []
        if line is None or b"\n" not in field:
            return
        self._first_lines.append(line)
        lines = field.split(b"\n")
        between = lines[1:-1]
        rows = self._columns > 2 and all(text.count(self._sep) == self._columns - 1 for text in between)
        if len(lines) > MOST_LINES or (rows and len(between) >= FEW_LINES):
            self._swallowed = self._swallowed or TableFileError(
                f"{self._name}: line {line}: a value in quotes runs over {len(lines)} lines: "
                f'{_shown(field)}; a quote (") is missing or too many there. Fix it, or write the text '
                "on one line"
            )


def _breaks_inside(lines: bytes) -> bool:
    """Whether there may be line breaks in quotes: a quick look, and never wrong if each quote is closed."""
    import numpy as np

    content = np.frombuffer(lines, dtype=np.uint8)
    quotes, breaks = (np.flatnonzero(content == mark) for mark in b'"\n')
    return bool((np.searchsorted(quotes, breaks) % 2).any())


def _shown(field: bytes) -> str:
    return f"{field[:40].decode(errors='replace')!r} ..."
