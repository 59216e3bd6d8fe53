"""The rows of a csv, some at a time: checked to be of one width, their quotes followed."""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from kfhe.display.text import counted
from kfhe.tables.errors import TableFileError, some

LONGEST = 1 << 26  # bytes that a row may have
MOST_LINES = 20  # that a value may have
FEW_LINES = 3  # that may look like rows and yet be text


class Block(NamedTuple):
    """Neighbouring rows.

    Attributes
    ----------
    first_row : int
        Number of the first one; the header is row 1.
    rows : bytes or list of list of str
        Lines without any quote, or the cells of each row.
    """

    first_row: int
    rows: bytes | list[list[str]]


class Blocks:
    """Cuts a csv into blocks, one after the other.

    Polars takes a quote within a value, as in ``5" and 6``, for one around it, and fills up rows that are
    too short. So lines with quotes are cut into cells by Python's csv module, and separators are counted.

    Parameters
    ----------
    name : str
        What messages call the file.
    sep : str
        What separates columns.
    pieces : iterator of bytes
        The file, in UTF-8.

    Attributes
    ----------
    header : list of str
        The first row.
    """

    def __init__(self, name: str, sep: str, pieces: Iterator[bytes]) -> None:
        self._name, self._sep, self._pieces = name, sep, pieces
        self._rest = b""  # that has been read, and is not cut yet
        self._line, self._row = 1, 1  # numbers of the next ones
        self._broken: list[int] = []  # lines in which values begin that have line breaks
        self.header: list[str] = []
        while not self.header and (lines := self._lines()):
            self.header = next(iter(self._cells(lines, most=1)), [])
        self._row = 2

    def __iter__(self) -> Iterator[Block]:
        while lines := self._lines():
            rows: bytes | list[list[str]]
            if b'"' in lines:
                rows = self._cells(lines)
                for row, cells in enumerate(rows, self._row):
                    self._check_width(row, len(cells))
                n_rows = len(rows)
            else:
                rows, n_rows = self._checked(lines)
            if n_rows:
                self._row += n_rows
                yield Block(self._row - n_rows, rows)

    def notes(self) -> list[str]:
        """Return what was noticed, in a sentence."""
        count = len(self._broken)
        if not count:
            return []
        where = some([str(line) for line in self._broken])
        found = f"{count} values have line breaks in quotes; they begin in lines {where}"
        if count == 1:
            found = f"1 value has a line break in quotes; it begins in line {where}"
        return [f'{self._name}: {found}. If that is not meant, a quote (") is missing or too many there.']

    def check_widths(self, block: Block) -> None:
        """Raise if a row of a block of lines has too few or too many cells."""
        assert isinstance(block.rows, bytes)
        for row, line in enumerate(block.rows.splitlines(), block.first_row):
            self._check_width(row, line.count(self._sep.encode()) + 1)

    def _lines(self) -> bytes:
        """Return the next whole lines; nothing at the end."""
        data = self._rest
        while not (end := max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1):
            if len(data) > LONGEST:
                raise self._too_long(LONGEST)
            piece = next(self._pieces, b"")
            data += piece
            if not piece:
                end = len(data)
                break
        self._rest = data[end:]
        return data[:end]

    def _checked(self, lines: bytes) -> tuple[bytes, int]:
        """Return lines without quotes, blank ones left out, and their number."""
        import numpy as np

        if b"\r" in lines:
            lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not lines.endswith(b"\n"):
            lines += b"\n"
        content = np.frombuffer(lines, dtype=np.uint8)
        ends = np.flatnonzero(content == ord("\n"))
        self._line += len(ends)
        blank = np.diff(ends, prepend=-1) == 1
        if blank.any():
            lines = re.sub(rb"\n{2,}", b"\n", lines).lstrip(b"\n")
        n_rows = len(ends) - int(np.count_nonzero(blank))
        n_marks = int(np.count_nonzero(content == ord(self._sep)))
        if n_marks != n_rows * (len(self.header) - 1):
            self.check_widths(Block(self._row, lines))
        return lines, n_rows

    def _cells(self, lines: bytes, most: int | None = None) -> list[list[str]]:
        """Return the cells of the rows in some lines, and in those that a quote in them reaches into."""
        waiting = deque(_decoded(lines))
        n_lines, done, ended = len(waiting), 0, False

        def fed() -> Iterator[str]:
            nonlocal ended
            while not ended:
                while waiting:
                    yield waiting.popleft()
                more = self._lines()  # which is asked for only if a quote is open
                waiting.extend(_decoded(more))
                ended = not more

        reader = csv.reader(fed(), delimiter=self._sep)
        rows: list[list[str]] = []
        try:
            for cells in reader:
                if ended or reader.line_num > done + 1:
                    self._check_breaks(cells, self._line + done, closed=not ended)
                done = reader.line_num
                if cells:
                    rows.append(cells)
                if done >= n_lines or len(rows) == most:
                    break
        except csv.Error:
            raise self._too_long(csv.field_size_limit()) from None
        self._line += done
        self._rest = "".join(waiting).encode(errors="surrogateescape") + self._rest
        return rows

    def _check_breaks(self, cells: list[str], line: int, *, closed: bool) -> None:
        """Note the line breaks in a row, which begins in a line; raise if a quote has swallowed rows."""
        for j, cell in enumerate(cells):
            lines = cell.split("\n")
            where = f"{self._name}: {{}} line {line}"
            shown = f"{cell[:40]!r} ..."
            if not closed and j == len(cells) - 1:
                opened = where.format('a quote (") is opened in')
                raise TableFileError(f"{opened} and never closed: {shown}")
            between, marks = lines[1:-1], len(self.header) - 1
            rows = marks > 1 and all(text.count(self._sep) == marks for text in between)
            if len(lines) > MOST_LINES or (rows and len(between) >= FEW_LINES):
                raise TableFileError(
                    f"{self._name}: line {line}: a value in quotes runs over {len(lines)} lines: {shown}; a "
                    'quote (") is missing or too many there. Fix it, or write the text on one line'
                )
            if len(lines) > 1:
                self._broken.append(line)
                line += len(lines) - 1

    def _check_width(self, row: int, width: int) -> None:
        """Raise unless a row has as many cells as the header."""
        expected = len(self.header)
        if width == expected:
            return
        header = f"{self._name}: row {row} has {counted(width, 'value')}, but the header (row 1) names"
        if expected == 1:
            raise TableFileError(f"{header} one column; leave titles above the header out of the file")
        raise TableFileError(
            f"{header} {expected} columns; fix the row; a value with {self._sep!r} in it needs quotes"
        )

    def _too_long(self, size: int) -> TableFileError:
        return TableFileError(
            f'{self._name}: a row has more than {size >> 10} kB; is a quote (") never closed?'
        )


def _decoded(lines: bytes) -> Iterator[str]:
    """Return lines as text; bytes that are not UTF-8 are found later, in their columns."""
    return iter(io.StringIO(lines.decode(errors="surrogateescape"), newline=""))
