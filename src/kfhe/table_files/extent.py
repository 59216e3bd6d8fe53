"""How far the cells of an Excel file reach: asked before memory is taken for all that is between them."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from kfhe.table_files.errors import TableFileError

MOST_CELLS = 100_000_000  # that are read, empty ones between others counted in
CHUNK = 1 << 20  # bytes of a sheet that are looked at together
FAR_CELL = re.compile(rb'\br="([A-Z]{3}|[A-Z]{1,2}(?=[0-9]{6}))([0-9]{1,7})"')  # far to the right, or down
ROW, CELLS = 0, range(1, 12)  # records of a binary sheet that begin with the number of a row, or of a column
SHORTEST = 10  # bytes of such a record


def check_extent(name: str, file: IO[bytes]) -> None:
    """Raise if a cell stands so far from the others that memory would not hold all that is between them."""
    try:
        with zipfile.ZipFile(file) as book:
            extents = [_extent(book, part) for part in book.namelist() if part.startswith("xl/worksheets/")]
    except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return  # another format, or damaged: whoever reads it says so
    for columns, rows in extents:
        if columns * rows > MOST_CELLS:
            raise TableFileError(
                f"{name}: a sheet has {rows:,} rows and {columns:,} columns from its first cell to its last, "
                "more than can be read; delete what stands far from the table, or save it as csv"
            )


def _extent(book: zipfile.ZipFile, part: str) -> tuple[int, int]:
    """Return the last column and row of a sheet in which a cell is, if they are far; less says nothing."""
    last_column = last_row = 1
    with book.open(part) as sheet:
        for column, row in (_binary_cells if part.endswith(".bin") else _far_cells)(sheet):
            last_column, last_row = max(last_column, column), max(last_row, row)
    return last_column, last_row


def _far_cells(sheet: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the columns and rows of those cells of an .xlsx sheet that are far."""
    rest = b""
    while chunk := sheet.read(CHUNK):
        for letters, row in FAR_CELL.findall(rest + chunk):
            yield _column_number(letters), int(row)
        rest = chunk[-20:]  # where the next one may begin


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _binary_cells(sheet: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the columns and rows of cells of an .xlsb sheet: records of a kind, a length and a content."""
    buffer, at, row = b"", 0, 0
    while True:
        while at + SHORTEST > len(buffer):
            chunk = sheet.read(CHUNK)
            if not chunk:
                return
            buffer, at = buffer[at:] + chunk, max(0, at - len(buffer))
        kind, at = _number(buffer, at, 2)
        length, at = _number(buffer, at, 4)
        if kind == ROW:
            row = int.from_bytes(buffer[at : at + 4], "little") + 1
        elif kind in CELLS:
            yield int.from_bytes(buffer[at : at + 4], "little") + 1, row
        at += length


def _number(buffer: bytes, at: int, most: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, the lowest first, up to a byte without the eighth; and its end."""
    if buffer[at] < 128:
        return buffer[at], at + 1
    number = 0
    for place in range(most):
        byte = buffer[at + place]
        number |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return number, at + place + 1
