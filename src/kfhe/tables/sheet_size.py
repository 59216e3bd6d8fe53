"""The number of rows and columns of an Excel file, found out before memory is allocated for them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from string import digits
from typing import IO
from xml.parsers.expat import ExpatError, ParserCreate

from kfhe.tables.errors import TableFileError

MOST_CELLS = 100_000_000  # maximum number of cells, including empty ones
CHUNK = 1 << 20  # bytes of a sheet that are parsed at a time
SHEET = b"sheetData"  # is in each sheet, in exactly this form; sheets may be in any folder
MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8
ROW, CELLS = 0, range(1, 12)  # records of a binary sheet that begin with the number of a row or column
LETTERS, DIGITS_OF_ROW = 4, 10  # more than the name of a column or row can have
SHORTEST = 10  # minimum bytes of such a record
BINARY, LINKS = "xl/workbook.bin", "xl/_rels/workbook.bin.rels"  # in files whose sheets are binary
MACROS = b"\xd0\xcf\x11\xe0"  # first bytes of files of old Excel versions


def check_size(name: str, file: IO[bytes]) -> None:
    """Raise if a cell is so far from the others that the cells in between would not fit into memory."""
    try:
        with zipfile.ZipFile(file) as book:
            sizes = [*_sizes(book)]
    except ExpatError as error:
        raise TableFileError(f"{name}: is damaged, or no Excel file: {error}") from error
    except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return  # another format, or damaged: reading it gives the error
    for columns, rows in sizes:
        if columns * rows > MOST_CELLS:
            raise TableFileError(
                f"{name}: a sheet has {rows:,} rows and {columns:,} columns from its first cell to its last, "
                "more than can be read; delete cells far from the table, or save it as csv"
            )


def _sizes(book: zipfile.ZipFile) -> Iterator[tuple[int, int]]:
    """Yield the last column and row of each part of the file that may be a sheet."""
    binary = _linked(book) if BINARY in book.namelist() else set()
    for part in book.namelist():
        if _base(part) in binary and not _holds_macros(book, part):
            with book.open(part) as sheet:
                yield _binary_size(sheet)
        if _holds_sheet(book, part):
            with book.open(part) as sheet:
                parsed = _SheetParser()
                parsed.read(sheet)
                yield parsed.size


def _linked(book: zipfile.ZipFile) -> set[str]:
    """Return the names of the sheets and other parts of a binary file, without folders."""
    found: set[str] = set()
    parser = ParserCreate()
    parser.StartElementHandler = lambda name, attributes: found.add(_base(attributes.get("Target", "")))
    with book.open(LINKS) as links:
        parser.ParseFile(links)
    return found


def _base(part: str) -> str:
    return part.replace("\\", "/").rpartition("/")[2].lower()


def _holds_macros(book: zipfile.ZipFile, part: str) -> bool:
    with book.open(part) as file:
        return file.read(len(MACROS)) == MACROS


def _holds_sheet(book: zipfile.ZipFile, part: str) -> bool:
    """Whether a part of the file may be a sheet in XML, whatever its name."""
    rest = b""
    with book.open(part) as file:
        while chunk := file.read(CHUNK):
            if SHEET in rest + chunk:
                return True
            rest = chunk[-len(SHEET) :]  # the word may begin here
    return False


class _SheetParser:
    """The last row and column of an .xlsx sheet, whose XML can be written in many ways."""

    def __init__(self) -> None:
        self._columns, self._rows = {""}, {""}  # those with names
        self._unnamed = self._most_unnamed = self._unnamed_rows = 0  # each follows the one before
        self._parser = ParserCreate("iso-8859-1")  # accepts all bytes, and names are ASCII
        self._parser.StartElementHandler = self._start
        self._parser.StartDoctypeDeclHandler = self._refuse

    def read(self, sheet: IO[bytes]) -> None:
        """Parse a sheet; raise ExpatError if it is not XML."""
        chunk = sheet.read(CHUNK).removeprefix(MARK)
        while chunk:
            self._parser.Parse(chunk)
            chunk = sheet.read(CHUNK)
        self._parser.Parse(b"", True)

    @property
    def size(self) -> tuple[int, int]:
        """The last column and row with a cell."""
        column = max(map(_column_number, self._columns)) + self._most_unnamed
        return column, max(map(_row_number, self._rows)) + self._unnamed_rows

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        """Note a cell or a row, whatever its namespace prefix. Fast, because there are many."""
        if name == "c" or name.endswith(":c"):
            place = attributes.get("r")
            if place is None:
                self._unnamed += 1
                self._most_unnamed = max(self._most_unnamed, self._unnamed)
            else:
                letters = place.rstrip(digits)
                self._columns.add(letters)
                self._rows.add(place[len(letters) :])
        elif name == "row" or name.endswith(":row"):
            self._unnamed = 0
            self._rows.add(attributes.get("r", ""))
            self._unnamed_rows += "r" not in attributes

    def _refuse(self, *declared: object) -> None:
        """Raise, because declarations could redefine bytes; sheets have none."""
        raise ExpatError("a sheet declares a document type")


def _column_number(letters: str) -> int:
    """Return the number of a column; 0 if it has no letters, and an invalid one if it has too many."""
    number = 0
    for letter in letters.upper()[:LETTERS]:
        number = 26 * number + ord(letter) - 64
    return number


def _row_number(text: str) -> int:
    return int(text[:DIGITS_OF_ROW]) if text.isdecimal() else 0


def _binary_size(sheet: IO[bytes]) -> tuple[int, int]:
    """Return the last column and row of an .xlsb sheet."""
    last_column = last_row = 1
    for column, row in _binary_cells(sheet):
        last_column, last_row = max(last_column, column), max(last_row, row)
    return last_column, last_row


def _binary_cells(sheet: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the columns and rows of the cells of an .xlsb sheet, from its records."""
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
    """Read a variable-length integer, with seven bits per byte, lowest first; return it with its end."""
    if buffer[at] < 128:
        return buffer[at], at + 1
    number = 0
    for place in range(most):
        byte = buffer[at + place]
        number |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return number, at + place + 1
