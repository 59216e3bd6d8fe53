"""Table files: csv, gzipped csv, parquet and Excel, opened by what they are.

A csv is read as pandas does by default: a column in which every cell is a number is numeric, one of ``true``
and ``false`` is boolean, any other holds text. Cells such as an empty one, ``NA`` or ``nan`` are gaps.
What text stands for, such as dates, is found out when it is learnt from (`labelled`). ``-`` is a pipe.
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
MODEL_FILE = b'{"__metadata__":{"kfhe":'  # is near the start of each
SEPARATORS = ";\t|"  # besides commas


@dataclass(frozen=True)
class Dialect:
    """How a csv or Excel file is written; None stands for what its first rows look like.

    Attributes
    ----------
    sep : str or None
        What separates columns: one letter.
    decimal : str or None
        What separates the fraction of a number: a point or a comma.
    encoding : str or None
        A name that Python knows, such as latin-1; None is UTF-8 or, if it can't be that, what Windows writes.
    na : tuple of str
        Words that are gaps, besides the usual ones.
    sheet : str or None
        Of an Excel file, the sheet to read; None is the first one.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = ()
    sheet: str | None = None

    def found_in(self, start: bytes) -> Dialect:
        """Return the dialect with separator and decimal mark, if need be as the file's start has them."""
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
        What messages call it.
    columns : list of str
        Names of the columns.
    first_row : int
        Number of the first row in messages: the header of a csv is row 1.
    is_text : bool
        Whether values are written as text, so that their types are a guess.
    dialect : Dialect
        How it is written; without a decimal mark, text is text.
    truths : collection of str
        Columns that hold true and false, though maybe as 1 and 0 in some cells.
    notes : list of str
        What was noticed in the rows that have been read, in sentences.
    schema : mapping of str to DataType
        The types that columns are kept in.
    """

    name: str
    columns: list[str]
    first_row: int
    is_text: bool
    dialect: Dialect

    @property
    def truths(self) -> Collection[str]:
        """Return the columns of true and false."""

    @property
    def notes(self) -> list[str]:
        """Return what was noticed."""

    @property
    def schema(self) -> Mapping[str, DataType]:
        """Return the types of kept columns."""

    def read(self, text: Collection[str] = ()) -> DataFrame:
        """Return all rows; the columns `text` hold text whatever they look like."""

    def batches(
        self, kinds: Mapping[str, str], kept: Collection[str] = ()
    ) -> Iterator[tuple[DataFrame, DataFrame]]:
        """Yield the rows of some columns, and columns that are kept as they are written, batch by batch.

        `kinds` tells what the columns are read as: `NUMBER`, `WHOLE`, `CATEGORY`, which is text; or by what
        reading, where they are text: then they stay text here.
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
        Columns that hold text even if it looks like numbers.
    dialect : Dialect
        How a csv is written; default: as its first rows look.

    Returns
    -------
    polars.DataFrame
        All rows, numbers, booleans and text.

    Raises
    ------
    TableFileError
        If there is no such file, or it can't be read.

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
    """Open a csv, parquet or Excel file; ``-`` is standard input; first bytes tell what it is."""
    name = "standard input" if str(path) == "-" else str(path)
    try:
        with _open_bytes(path) as stream:
            start = stream.peek(64)[:64]
            is_excel = name.endswith(EXCEL) or start.startswith(EXCEL_STARTS)
            _check_kind(name, start)
            if dialect.sheet is not None and not is_excel:
                raise TableFileError(f"{name}: has no sheets; a sheet can be chosen of Excel files only")
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
    """Raise if a file is of a kind that is not read, by its ending or its first bytes."""
    if MODEL_FILE in start:
        raise TableFileError(f"{name}: is a model file, where a table is needed")
    ending = next((each for each in OTHERS if name.lower().endswith(each)), None)
    if ending or start.startswith(OTHER_STARTS):
        kind = f"{ending} files are" if ending else "this kind of file is"
        raise TableFileError(f"{name}: {kind} not read; accepted are {', '.join(READABLE)}")


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
    """Raise unless a path's ending says which kind of table to write; ``-`` is a csv."""
    name = str(path)
    if Path(name).is_dir():
        raise TableFileError(f"{name}: is a folder; give the name of a file")
    is_device = os.path.exists(name) and not os.path.isfile(name)
    if name != "-" and not name.endswith(WRITABLE) and not is_device:
        raise TableFileError(f"{name}: the ending must tell what to write: {', '.join(WRITABLE)}")
