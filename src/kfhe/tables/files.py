"""Table files: csv, gzipped csv, parquet and Excel, detected by their content.

A csv is read as by pandas: a column is numeric if every cell is a number, boolean if every cell is ``true``
or ``false``, and text otherwise. Empty cells, ``NA``, ``nan`` and similar words are missing. Text that is
dates or amounts is recognised when a table is used for training (`labelled`). ``-`` is standard input.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from kfhe.display.text import needed
from kfhe.files import standard_input
from kfhe.tables.errors import TableFileError, did_you_mean

if TYPE_CHECKING:
    from polars import DataFrame, DataType

SUFFIXES = (".csv", ".csv.gz", ".parquet")
WRITABLE = (*SUFFIXES, ".xlsx")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
READABLE = (*SUFFIXES, *EXCEL)
EXCEL_STARTS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_COLUMNS, _PACKED = "json jsonl ndjson feather arrow ipc orc avro xml", "zip bz2 xz zst 7z tar"
OTHERS = tuple(f".{ending}" for ending in f"{_COLUMNS} {_PACKED} pkl pickle sqlite db h5 dta sav rds".split())
OTHER_STARTS = (b"ARROW1", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"SQLite format 3")
MODEL_FILE = b'{"__metadata__":{"kfhe":'  # near the start of model files
SEPARATORS = ";\t|"  # in addition to commas


@dataclass(frozen=True)
class Dialect:
    """How a csv or Excel file is written; None: detected in the first rows.

    Attributes
    ----------
    sep : str or None
        Column separator, a single character.
    decimal : str or None
        Decimal mark: a point or a comma.
    encoding : str or None
        Encoding, by a name that Python knows, such as latin-1. None: UTF-8, or else that of Windows.
    na : tuple of str
        Words for missing values, in addition to the usual ones.
    sheet : str or None
        Sheet of an Excel file. None: the first one.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = ()
    sheet: str | None = None

    def found_in(self, start: bytes) -> Dialect:
        """Return the dialect with separator and decimal mark, detected in the first rows if need be."""
        header, _, rows = re.sub(rb'"[^"]*"', b"", start[: 1 << 16]).partition(b"\n")
        others = [mark for mark in SEPARATORS if mark.encode() in header]
        sep = self.sep or (others[0] if others and b"," not in header else ",")
        decimal = self.decimal or ("," if sep != "," and _has_decimal_commas(rows, sep) else ".")
        if decimal == sep:
            raise TableFileError(f"columns and decimals can't both be separated by {sep!r}")
        return replace(self, sep=sep, decimal=decimal)


def _has_decimal_commas(rows: bytes, sep: str) -> bool:
    """Whether there are numbers with a comma, and none with a point."""
    ends = re.escape(sep.encode())
    number = rb"(?:^|%s)\s*[-+]?\d+%s\d+\s*(?=%s|\r?$)"
    comma, point = (
        re.search(number % (ends, mark, ends), rows, re.MULTILINE) is not None for mark in (b",", rb"\.")
    )
    return comma and not point


AS_FOUND = Dialect()


class TableFile(Protocol):
    """An open table file.

    Attributes
    ----------
    name : str
        Name of the file in messages.
    columns : list of str
        Names of the columns.
    first_row : int
        Number of the first row in messages; the header of a csv is row 1.
    is_text : bool
        Whether the file stores values as text, so that types have to be guessed.
    dialect : Dialect
        The dialect; without a decimal mark, text is not interpreted.
    truths : collection of str
        Columns of booleans, which may be 1 and 0 in some cells.
    notes : list of str
        Notes on the rows that have been read, as sentences.
    schema : mapping of str to DataType
        The types of columns that are kept.
    """

    name: str
    columns: list[str]
    first_row: int
    is_text: bool
    dialect: Dialect

    @property
    def truths(self) -> Collection[str]:
        """Return the boolean columns."""

    @property
    def notes(self) -> list[str]:
        """Return the notes."""

    @property
    def schema(self) -> Mapping[str, DataType]:
        """Return the types of kept columns."""

    def read(self, text: Collection[str] = ()) -> DataFrame:
        """Return all rows; the columns in `text` are text whatever they look like."""

    def batches(
        self, kinds: Mapping[str, str], kept: Collection[str] = ()
    ) -> Iterator[tuple[DataFrame, DataFrame]]:
        """Yield rows in batches: some columns with types, and others unchanged.

        `kinds` are the types of columns: `NUMBER`, `WHOLE` or `CATEGORY`, which is text. Columns with another
        kind of text, such as dates, are returned as text.
        """


def read_table(
    path: str | os.PathLike[str], text: Collection[str] = (), dialect: Dialect = AS_FOUND
) -> DataFrame:
    r"""Read a csv, parquet or Excel file.

    Parameters
    ----------
    path : path
        The file; ``-`` for standard input.
    text : collection of str
        Columns that are text even if they look like numbers.
    dialect : Dialect
        How a csv is written; default: detected.

    Returns
    -------
    polars.DataFrame
        All rows, numbers, booleans and text.

    Raises
    ------
    TableFileError
        The file does not exist, or can't be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from kfhe.tables.files import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "pets.csv"
    ...     _ = path.write_text("name,legs\nTom,4\n,2\n")
    ...     read_table(path).to_dict(as_series=False)
    {'name': ['Tom', None], 'legs': [4, 2]}
    """
    with open_table(path, dialect) as table:
        return table.read(text)


@contextmanager
def open_table(path: str | os.PathLike[str], dialect: Dialect = AS_FOUND) -> Iterator[TableFile]:
    """Open a csv, parquet or Excel file; ``-`` is standard input. The first bytes show the format."""
    name = "standard input" if str(path) == "-" else str(path)
    try:
        with _open_bytes(path) as stream:
            start = stream.peek(64)[:64]
            is_excel = name.endswith(EXCEL) or start.startswith(EXCEL_STARTS)
            _check_kind(name, start)
            if dialect.sheet is not None and not is_excel:
                raise TableFileError(f"{name}: has no sheets; only Excel files have them")
            if is_excel:
                with needed("Excel files need python-calamine", "excel"):
                    from kfhe.tables.excel import ExcelTable
                yield ExcelTable(name, stream, dialect)
                return
            with needed("table files need polars", "frames"):
                from kfhe.tables.csv import CsvTable
                from kfhe.tables.parquet import ParquetTable
            if name.endswith(".parquet") or start.startswith(b"PAR1"):
                yield ParquetTable(name, stream, dialect)
            else:
                if name.endswith(".gz") or start.startswith(b"\x1f\x8b"):
                    stream = cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
                yield CsvTable(name, stream, dialect)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableFileError(
            f"{name}: is damaged: its compressed data can't be unpacked ({error})"
        ) from error


def _check_kind(name: str, start: bytes) -> None:
    """Raise if a file has an unsupported format, by its ending or its first bytes."""
    if MODEL_FILE in start:
        raise TableFileError(f"{name}: is a model file, not a table")
    ending = next((each for each in OTHERS if name.lower().endswith(each)), None)
    if ending or start.startswith(OTHER_STARTS):
        kind = f"{ending} files are" if ending else "this kind of file is"
        raise TableFileError(f"{name}: {kind} not supported; accepted are {', '.join(READABLE)}")


@contextmanager
def _open_bytes(path: str | os.PathLike[str]) -> Iterator[Any]:
    if str(path) == "-":
        yield standard_input()
        return
    path = Path(path)
    if path.is_dir():
        raise TableFileError(f"{path}: is a folder; give a file: {', '.join(READABLE)}")
    try:
        file = path.open("rb")
    except FileNotFoundError:
        near = did_you_mean(path.name, [each.name for each in path.parent.glob("*")])
        raise TableFileError(f"{path}: there is no such file{near}") from None
    except OSError as error:
        raise TableFileError(f"{path}: can't be read: {error.strerror}") from error
    with file:
        yield file


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise unless a path's ending is that of a format that can be written; ``-`` is a csv."""
    name = str(path)
    if Path(name).is_dir():
        raise TableFileError(f"{name}: is a folder; give the name of a file")
    is_device = os.path.exists(name) and not os.path.isfile(name)
    if name != "-" and not name.endswith(WRITABLE) and not is_device:
        raise TableFileError(f"{name}: the name must end in {', '.join(WRITABLE)}")
