"""How far the cells of an Excel file reach: asked before memory is taken for all that is between them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from string import digits
from typing import IO
from xml.parsers.expat import ExpatError, ParserCreate

from kfhe.tables.errors import TableFileError

MOST_CELLS = 100_000_000  # that are read, empty ones between others counted in
CHUNK = 1 << 20  # bytes of a sheet that are looked at together
SHEET = b"sheetData"  # is in each sheet, which may be in any folder, just so: its readers compare bytes
MARK = b"\xef\xbb\xbf"  # that text is UTF-8
ROW, CELLS = 0, range(1, 12)  # records of a binary sheet that begin with the number of a row, or of a column
LETTERS, DIGITS_OF_ROW = 4, 10  # that name a column and a row, and more
SHORTEST = 10  # bytes of such a record
BINARY, LINKS = "xl/workbook.bin", "xl/_rels/workbook.bin.rels"  # in files whose sheets are binary
MACROS = b"\xd0\xcf\x11\xe0"  # how these begin


def check_extent(name: str, file: IO[bytes]) -> None:
    """Raise if a cell stands so far from the others that memory would not hold all that is between them."""
    try:
        with zipfile.ZipFile(file) as book:
            extents = [*_extents(book)]
    except ExpatError as error:
        raise TableFileError(f"{name}: is damaged, or no Excel file: {error}") from error
    except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return  # another format, or damaged: whoever reads it says so
    for columns, rows in extents:
        if columns * rows > MOST_CELLS:
            raise TableFileError(
                f"{name}: a sheet has {rows:,} rows and {columns:,} columns from its first cell to its last, "
                "more than can be read; delete what stands far from the table, or save it as csv"
            )


def _extents(book: zipfile.ZipFile) -> Iterator[tuple[int, int]]:
    """Yield the last column and row in which a cell is, of all parts of the file that may be a sheet."""
    binary = _linked(book) if BINARY in book.namelist() else set()
    for part in book.namelist():
        if _base(part) in binary and not _holds_macros(book, part):
            with book.open(part) as sheet:
                yield _binary_extent(sheet)
        if _holds_sheet(book, part):
            with book.open(part) as sheet:
                cells = _Cells()
                cells.read(sheet)
                yield cells.extent


def _linked(book: zipfile.ZipFile) -> set[str]:
    """Return what the parts that a binary file is made of are called, sheets among them, without folders."""
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
    """Whether a part of the file may be read as a sheet in XML, whatever it is called."""
    rest = b""
    with book.open(part) as file:
        while chunk := file.read(CHUNK):
            if SHEET in rest + chunk:
                return True
            rest = chunk[-len(SHEET) :]  # where it may begin
    return False


class _Cells:
    """Where the cells of an .xlsx sheet are: parsed as XML, which can be written in many ways."""

    def __init__(self) -> None:
        self._columns, self._rows = {""}, {""}  # that are named
        self._unnamed = self._most_unnamed = self._unnamed_rows = 0  # each is the next one
        self._parser = ParserCreate("iso-8859-1")  # any bytes are text in it, and names are those of UTF-8
        self._parser.StartElementHandler = self._start
        self._parser.StartDoctypeDeclHandler = self._refuse

    def read(self, sheet: IO[bytes]) -> None:
        """Read a sheet; raise ExpatError if it is no XML."""
        chunk = sheet.read(CHUNK).removeprefix(MARK)
        while chunk:
            self._parser.Parse(chunk)
            chunk = sheet.read(CHUNK)
        self._parser.Parse(b"", True)

    @property
    def extent(self) -> tuple[int, int]:
        """The column and the row that no cell is beyond."""
        column = max(map(_column_number, self._columns)) + self._most_unnamed
        return column, max(map(_row_number, self._rows)) + self._unnamed_rows

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        """Note a cell or a row, whatever prefix its name has. There are many: each takes few steps."""
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
        """Raise, as declarations can make the same bytes mean something else; no sheet has any."""
        raise ExpatError("a sheet declares a document type")


def _column_number(letters: str) -> int:
    """Return the number of a column; 0 if it has no letters, and one too far if it has too many."""
    number = 0
    for letter in letters.upper()[:LETTERS]:
        number = 26 * number + ord(letter) - 64
    return number


def _row_number(text: str) -> int:
    return int(text[:DIGITS_OF_ROW]) if text.isdecimal() else 0


def _binary_extent(sheet: IO[bytes]) -> tuple[int, int]:
    """Return the last column and row of an .xlsb sheet in which a cell is."""
    last_column = last_row = 1
    for column, row in _binary_cells(sheet):
        last_column, last_row = max(last_column, column), max(last_row, row)
    return last_column, last_row


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
