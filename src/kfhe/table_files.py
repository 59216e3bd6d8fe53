"""Table files: csv, gzipped csv and parquet, read whole or in batches, and written; ``-`` is a pipe.

A csv is read as pandas does by default: a column in which every cell is a number is numeric, one of ``true`` and
``false`` is boolean, any other holds text, dates too. Cells such as an empty one, ``NA`` or ``nan`` are gaps.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO, Protocol

SUFFIXES = (".csv", ".csv.gz", ".parquet")
# What pandas.read_csv takes for a gap.
GAPS = [
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "<NA>",
    "N/A",
]
GAPS += ["NA", "NULL", "NaN", "None", "n/a", "nan", "null"]

BLOCK = 4 << 20  # bytes of a csv that are read at once
PROBE = 64 << 10  # bytes that tell the columns
ROWS = 1 << 16  # rows of a parquet file that are read at once


class TableFileError(ValueError):
    """A table file can't be used: the message names it, says what was found, and what to do."""


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
    """

    name: str
    columns: list[str]
    first_row: int

    def read(self, text: Collection[str] = ()) -> Any:
        """Return all rows as a pyarrow table; the columns `text` hold text whatever they look like."""

    def batches(self, numbers: Collection[str], text: Collection[str]) -> Iterator[Any]:
        """Yield the rows of some columns, in the order of the file, as pyarrow record batches."""


def read_table(path: str | os.PathLike[str], text: Collection[str] = ()) -> Any:
    """Read a csv or parquet file.

    Parameters
    ----------
    path : path
        The file; ``-`` for standard input.
    text : collection of str
        Columns that hold text even if it looks like numbers.

    Returns
    -------
    pyarrow.Table
        All rows, numbers, booleans and text.

    Raises
    ------
    TableFileError
        If there is no such file, or it can't be read.

    Examples
    --------
    >>> from kfhe.table_files import read_table
    >>> with open("pets.csv", "w") as file:
    ...     _ = file.write("name,legs\\nTom,4\\n,2\\n")
    >>> read_table("pets.csv").to_pydict()
    {'name': ['Tom', None], 'legs': [4, 2]}
    """
    with open_table(path) as table:
        return table.read(text)


@contextmanager
def open_table(path: str | os.PathLike[str]) -> Iterator[TableFile]:
    """Open a csv or parquet file; ``-`` is standard input, and what it is can be seen by its first bytes."""
    import_pyarrow()
    name = "standard input" if str(path) == "-" else str(path)
    with _told_as_table_file_error(name), _open_bytes(path) as stream:
        start = stream.peek(4)[:4]
        if name.endswith(".parquet") or start == b"PAR1":
            yield ParquetTable(name, stream)
        elif name.endswith(".gz") or start[:2] == b"\x1f\x8b":
            with gzip.open(stream) as unpacked:
                yield CsvTable(name, unpacked)
        else:
            yield CsvTable(name, stream)


@contextmanager
def _open_bytes(path: str | os.PathLike[str]) -> Iterator[Any]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    if Path(path).is_dir():
        raise TableFileError(f"{path}: is a folder; give a file: {', '.join(SUFFIXES)}")
    try:
        file = open(path, "rb")
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


def did_you_mean(name: str, names: Collection[str]) -> str:
    """Return the end of a sentence that offers the names most like one, or nothing if none is."""
    near = get_close_matches(name.lower(), {other.lower(): other for other in names}, cutoff=0.6)
    found = [other for other in names if other.lower() in near]
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


@contextmanager
def _told_as_table_file_error(name: str) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableFileError(
            f"{name}: is damaged: its compressed data can't be unpacked ({error})"
        ) from error


class CsvTable:
    """A csv file, open at its start."""

    first_row = 2

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name = name
        self._stream = stream
        self._start = _read_fully(stream, BLOCK)
        self._types = self._probe()
        self.columns = [column or f"Unnamed: {j}" for j, column in enumerate(self._types)]

    def read(self, text: Collection[str] = ()) -> Any:
        """Return all rows as a pyarrow table."""
        import pyarrow as pa

        data = self._start + self._stream.read()
        types = {column: pa.string() for column, type in self._types.items() if not _is_plain(type)}
        types |= {self._in_file(column): pa.string() for column in text}
        table = self._parse(data, types)
        other = {column.name: pa.string() for column in table.schema if not _is_plain(column.type)}
        if other:  # dates, which are text to us, and bytes that are no text, for which this is an error
            table = self._parse(data, types | other)
        if not len(table):
            raise self._no_rows()
        self._check_last_quote(data.count(b'"'), table)
        return table.rename_columns(self.columns)

    def _parse(self, data: bytes, types: dict[str, Any]) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        convert = _convert_options(column_types=types)
        for threads in (True, False):  # without threads, errors tell the row
            read = csv.ReadOptions(use_threads=threads, block_size=BLOCK)
            try:
                return csv.read_csv(io.BytesIO(data), read, _parse_options(), convert)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                if not threads:
                    raise self._explained(error) from error
        raise AssertionError("either way there is a table or an error")

    def batches(self, numbers: Collection[str], text: Collection[str]) -> Iterator[Any]:
        """Yield the rows of some columns, in the order of the file, as pyarrow record batches."""
        import pyarrow as pa
        from pyarrow import csv

        words = pa.dictionary(pa.int32(), pa.string())
        types = {}
        for column in self.columns:
            in_file = self._in_file(column)
            if column in text:
                types[in_file] = words
            elif column in numbers:
                booleans = pa.types.is_boolean(self._types[in_file])
                types[in_file] = pa.bool_() if booleans else pa.float64()
        convert = _convert_options(column_types=types, include_columns=list(types))
        read = csv.ReadOptions(use_threads=False, block_size=BLOCK)
        stream = _Resumed(self._start, self._stream)
        names = [column for column in self.columns if column in numbers or column in text]
        rows, batch = 0, None
        try:
            for batch in csv.open_csv(stream, read, _parse_options(), convert):
                rows += len(batch)
                yield pa.RecordBatch.from_arrays(batch.columns, names=names)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise self._explained(error) from error
        if batch is None or not rows:
            raise self._no_rows()
        self._check_last_quote(stream.quotes, batch)

    def _probe(self) -> dict[str, Any]:
        """Return the columns, and the types that they have in the first rows."""
        import pyarrow as pa
        from pyarrow import csv

        if not self._start.strip():
            raise TableFileError(f"{self.name}: is empty; the first row must name the columns")
        try:
            read = csv.ReadOptions(use_threads=False, block_size=PROBE)
            schema = csv.open_csv(io.BytesIO(self._start), read, _parse_options(), _convert_options()).schema
            names = schema.names
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if "cannot infer number of columns" in str(error):
                raise self._no_rows() from error
            raise self._explained(error) from error
        check_names(self.name, names)
        only, *others = names
        separator = next((mark for mark in ";\t|" if mark in only), None)
        if separator and not others:
            raise TableFileError(
                f"{self.name}: columns seem to be separated by {separator!r}; accepted are commas"
            )
        return dict(zip(names, schema.types, strict=True))

    def _in_file(self, column: str) -> str:
        """Return what the file calls a column."""
        return list(self._types)[self.columns.index(column)]

    def _no_rows(self) -> TableFileError:
        return TableFileError(f"{self.name}: there are no rows below the header")

    def _check_last_quote(self, quotes: int, last: Any) -> None:
        """Raise if a quote that is never closed has swallowed the rest of the file."""
        import pyarrow as pa

        if quotes % 2 == 0:
            return
        for column in last.columns:
            value = column[-1].as_py() if pa.types.is_string(_value_type(column.type)) else None
            if value is not None and "\n" in value:
                raise TableFileError(
                    f'{self.name}: a quote (") is opened and never closed: {value[:40]!r} ...'
                )

    def _explained(self, error: Exception) -> TableFileError:
        """Put pyarrow's messages into words for whoever made the file."""
        message = str(error)
        if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message):
            row, expected, got = ragged.groups()
            return TableFileError(
                f"{self.name}: row {row} has {got} values, the header names {expected} columns (it is row 1); "
                "mend the row; a value with a comma needs quotes"
            )
        if bad := re.search(
            r"column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)", message, re.DOTALL
        ):
            column, row, kind, reason = bad.groups()
            where = f"{self.name}: column {self._column(int(column))!r}, row {row}"
            if "UTF8" in reason:
                return TableFileError(f"{where}: there are bytes that are not UTF-8; {_RECODE}")
            found = reason.removeprefix("invalid value ")
            accepted = "true and false" if kind == "bool" else "numbers"
            return TableFileError(f"{where}: found {found}; accepted are {accepted}, and nothing for a gap")
        if isinstance(error, UnicodeDecodeError):
            return TableFileError(f"{self.name}: the header has bytes that are not UTF-8; {_RECODE}")
        if "straddling" in message:
            return TableFileError(
                f'{self.name}: there is a row of more than {BLOCK >> 20} MB; is a quote (") never closed?'
            )
        return TableFileError(f"{self.name}: can't be read: {message.splitlines()[0]}")

    def _column(self, j: int) -> str:
        return self.columns[j] if hasattr(self, "columns") else f"{j + 1}"


_RECODE = "save the file as UTF-8, or for example: iconv -f latin1 -t utf-8 old.csv > new.csv"


class _Resumed(io.RawIOBase):
    """A stream whose start has been read already; it counts the quotes that go by."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        self._start, self._rest = start, rest
        self.quotes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        data = self._start[:size]
        self._start = self._start[size:]
        data = data or self._rest.read(size)
        self.quotes += data.count(b'"')
        return data


def _read_fully(stream: BinaryIO, size: int) -> bytes:
    """Read so many bytes, or up to the end; a pipe gives them in pieces."""
    pieces = []
    while size and (piece := stream.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _parse_options() -> Any:
    from pyarrow import csv

    return csv.ParseOptions(newlines_in_values=True)


def _convert_options(**options: Any) -> Any:
    from pyarrow import csv

    true, false = (("true", "True", "TRUE"), ("false", "False", "FALSE"))
    return csv.ConvertOptions(
        null_values=GAPS, true_values=true, false_values=false, strings_can_be_null=True, **options
    )


def _value_type(type: Any) -> Any:
    import pyarrow as pa

    return type.value_type if pa.types.is_dictionary(type) else type


def _is_plain(type: Any) -> bool:
    """Whether a type found in a csv is one of ours: numbers, booleans, text, nothing but gaps."""
    from pyarrow import types

    return any(
        is_it(type)
        for is_it in (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_null)
    )


class ParquetTable:
    """A parquet file."""

    first_row = 1

    def __init__(self, name: str, stream: BinaryIO) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        self.name = name
        source = stream if stream.seekable() else io.BytesIO(stream.read())
        with self._damage():
            self._file = parquet.ParquetFile(source)
            schema = self._file.schema_arrow
        # What pandas keeps its row names in is no column
        self.columns = [column for column in schema.names if not re.fullmatch(r"__index_level_\d+__", column)]
        check_names(name, self.columns)
        self._text = {
            column for column in self.columns if _is_text(_value_type(schema.field(column).type), pa.types)
        }
        if not self._file.metadata.num_rows:
            raise TableFileError(f"{name}: there are no rows in it")

    def read(self, text: Collection[str] = ()) -> Any:
        """Return all rows as a pyarrow table."""
        import pyarrow as pa

        with self._damage():
            table = self._file.read(columns=self.columns)
        for column in set(text) - self._text:
            j = table.schema.get_field_index(column)
            table = table.set_column(j, column, table.column(j).cast(pa.string()))
        return table

    def batches(self, numbers: Collection[str], text: Collection[str]) -> Iterator[Any]:
        """Yield the rows of some columns, in the order of the file, as pyarrow record batches."""
        names = [column for column in self.columns if column in numbers or column in text]
        for column in names:
            if (column in text) != (column in self._text):
                found, accepted = ("text", "numbers") if column in numbers else ("numbers", "text")
                raise TableFileError(f"{self.name}: column {column!r} holds {found}; accepted is {accepted}")
        with self._damage():
            yield from self._file.iter_batches(ROWS, columns=names)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise TableFileError(f"{self.name}: is damaged, or no parquet file: {reason}") from error


def _is_text(type: Any, types: Any) -> bool:
    return bool(types.is_string(type) or types.is_large_string(type))


def check_names(source: str, columns: list[str]) -> None:
    """Raise if two columns have the same name."""
    twice = sorted({repr(column) for column in columns if columns.count(column) > 1})
    if twice:
        raise TableFileError(f"{source}: there are several columns named {', '.join(twice)}; rename them")


def import_pyarrow() -> None:
    """Raise unless pyarrow is there, and say which extra brings it."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise TableFileError("table files need pyarrow: pip install kfhe[frames]") from error
