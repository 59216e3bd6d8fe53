"""Table files: csv, gzipped csv, parquet and Excel, read whole or in batches; all but Excel are written, too.

A csv is read as pandas does by default: a column in which every cell is a number is numeric, one of ``true``
and ``false`` is boolean, any other holds text. Cells such as an empty one, ``NA`` or ``nan`` are gaps.
Separators other than commas, and decimal commas, are recognised by the first rows, or told by a `Dialect`.
What text stands for, such as dates, is found out when it is learnt from (`labelled`). ``-`` is a pipe.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from kfhe.files import standard_input
from kfhe.tables.csv import AS_FOUND, CsvTable
from kfhe.tables.dialect import Dialect
from kfhe.tables.errors import TableFileError, did_you_mean
from kfhe.tables.excel import ExcelTable, import_calamine
from kfhe.tables.output import SUFFIXES, write_batches, write_table
from kfhe.tables.parquet import ParquetTable

if TYPE_CHECKING:
    from polars import DataFrame, DataType

READABLE = (*SUFFIXES, ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
EXCEL = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # how such files begin
_COLUMNS, _PACKED = "json jsonl ndjson feather arrow ipc orc avro xml", "zip bz2 xz zst 7z tar"
_OTHERS = f"{_COLUMNS} {_PACKED} pkl pickle sqlite db h5 dta sav rds".split()
OTHERS = tuple(f".{ending}" for ending in _OTHERS)  # kinds of files that are not read
OTHER_STARTS = (b"ARROW1", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"SQLite format 3")
MODEL_FILE = b'{"__metadata__":{"kfhe":'  # is near the start of each

__all__ = [
    "READABLE",
    "SUFFIXES",
    "Dialect",
    "TableFile",
    "TableFileError",
    "open_table",
    "read_table",
    "write_batches",
    "write_table",
]


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
    decimal : str or None
        The decimal mark of numbers in text; None: text is text.
    truths : collection of str
        Columns that hold true and false, though maybe as 1 and 0 in some cells.
    notes : list of str
        What was noticed in the rows that have been read, in sentences.
    """

    name: str
    columns: list[str]
    first_row: int
    is_text: bool

    @property
    def decimal(self) -> str | None:
        """Return the decimal mark."""

    @property
    def truths(self) -> Collection[str]:
        """Return the columns of true and false."""

    @property
    def notes(self) -> list[str]:
        """Return what was noticed."""

    def read(self, text: Collection[str] = ()) -> DataFrame:
        """Return all rows; the columns `text` hold text whatever they look like."""

    def batches(
        self, numbers: Collection[str], text: Collection[str], special: Collection[str] = ()
    ) -> Iterator[DataFrame]:
        """Yield the rows of some columns; `special` ones may come as text or otherwise."""

    def kept_batches(
        self, kept: Collection[str], numbers: Collection[str], text: Collection[str], special: Collection[str]
    ) -> Iterator[tuple[DataFrame, DataFrame]]:
        """Yield what `batches` yields, each with the columns `kept` of its rows, as they are written."""

    def kept_schema(self, kept: Collection[str]) -> dict[str, DataType]:
        """Return the types that kept columns have."""


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
    if name.endswith(READABLE[len(SUFFIXES) :]):
        import_calamine(name)
    check_polars()
    with _told_as_table_file_error(name), _open_bytes(path) as stream:
        if MODEL_FILE in stream.peek(64)[:64]:
            raise TableFileError(f"{name}: is a model file, where a table is needed")
        _refuse_others(name, stream.peek(16)[:16])
        start = stream.peek(4)[:4]
        if name.endswith(".parquet") or start == b"PAR1":
            _refuse_sheet(name, dialect)
            yield ParquetTable(name, stream, dialect.na)
        elif name.endswith(READABLE[len(SUFFIXES) :]) or start in EXCEL:
            yield ExcelTable(name, stream, dialect)
        elif name.endswith(".gz") or start[:2] == b"\x1f\x8b":
            with gzip.open(stream) as unpacked:
                _refuse_sheet(name, dialect)
                yield CsvTable(name, cast("IO[bytes]", unpacked), dialect)
        else:
            _refuse_sheet(name, dialect)
            yield CsvTable(name, stream, dialect)


def _refuse_others(name: str, start: bytes) -> None:
    """Raise if a file is of a kind that is not read, by its ending or its first bytes."""
    ending = next((each for each in OTHERS if name.lower().endswith(each)), None)
    if ending or start.startswith(OTHER_STARTS):
        kind = f"{ending} files are" if ending else "this kind of file is"
        raise TableFileError(f"{name}: {kind} not read; accepted are {', '.join(READABLE)}")


def _refuse_sheet(name: str, dialect: Dialect) -> None:
    if dialect.sheet is not None:
        raise TableFileError(f"{name}: has no sheets; a sheet can be chosen of Excel files only")


@contextmanager
def _open_bytes(path: str | os.PathLike[str]) -> Iterator[Any]:
    if str(path) == "-":
        yield standard_input()
        return
    if Path(path).is_dir():
        raise TableFileError(f"{path}: is a folder; give a file: {', '.join(READABLE)}")
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise TableFileError(f"{path}: there is no such file{_similar_file(Path(path))}") from None
    except OSError as error:
        raise TableFileError(f"{path}: can't be read: {error.strerror}") from error
    with file:
        yield file


def _similar_file(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return ""
    return did_you_mean(path.name, names)


@contextmanager
def _told_as_table_file_error(name: str) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableFileError(
            f"{name}: is damaged: its compressed data can't be unpacked ({error})"
        ) from error


def check_polars() -> None:
    """Raise unless polars is there, and say which extra brings it. It is slow to load, so it is not yet."""
    try:
        found = find_spec("polars")
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise TableFileError('table files need polars: pip install "kfhe[frames]"')
