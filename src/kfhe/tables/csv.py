"""A csv file: what its columns hold, and its rows."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from functools import cached_property
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, TypeVar

from kfhe.display.text import counted
from kfhe.tables.dialect import SEPARATORS, Dialect, Recoded, usual_encoding
from kfhe.tables.errors import TableFileError, check_names, how_to_fix
from kfhe.tables.lent import LentStream
from kfhe.tables.lines import Lines
from kfhe.tables.quotes import QuotedLines
from kfhe.tables.types import is_plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

# What pandas.read_csv takes for a gap, but for a few that start like numbers, such as -1.#IND: each number
# would have to be compared with those.
GAPS = ["", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")

START = 1 << 22  # bytes that tell how the file is written
BLOCK = 1 << 19  # bytes that are read at once; more of them would not stay in the processor's cache
PROBE = 1 << 16  # bytes that tell the columns
ROWS = 1 << 15  # at least so many rows make a batch
AS_FOUND = Dialect()


class CsvTable:
    """A csv file, open at its start."""

    first_row = 2
    is_text = True

    def __init__(self, name: str, stream: IO[bytes], dialect: Dialect = AS_FOUND) -> None:
        self.name = name
        self._stream: Any = stream
        self._start = _read_fully(stream, START)
        self._encoding = None if dialect.encoding else usual_encoding(self._start)
        if encoding := dialect.encoding or self._encoding:
            self._stream = Recoded(name, self._start, stream, encoding)
            self._start = _read_fully(self._stream, START)
        self._dialect = dialect.found_in(self._start)
        self.decimal = str(self._dialect.decimal)
        width = len(self._start.split(b"\n", 1)[0])
        self._block = max(BLOCK, 16 * width)  # a row has to fit in it
        self._rows_before = 0  # that plain_rows has read, the header counted in
        names = self._plain_names() or list(self._types)
        self.columns = [column or f"Unnamed: {j}" for j, column in enumerate(names)]
        self._in_file = dict(zip(self.columns, names, strict=True))
        self._quotes = QuotedLines(name, str(self._dialect.sep))

    @property
    def notes(self) -> list[str]:
        """What was noticed in the rows that have been read, in sentences."""
        unusual = [self._dialect.in_words()] * (self._dialect.sep != ",")
        if self._encoding:
            unusual.append(f"it is not UTF-8, so it is read as {self._encoding}; --encoding names another")
        return [f"{self.name}: {'; '.join(unusual)}"] * bool(unusual) + self._quotes.notes()

    def read(self, text: Collection[str] = ()) -> Any:
        """Return all rows as a pyarrow table."""
        import pyarrow as pa

        data = self._start + self._stream.read()
        for position in range(0, len(data), BLOCK):
            self._quotes.feed(data[position : position + BLOCK])
        self._quotes.feed(b"")
        self._quotes.check(at_end=True)
        types = {column: pa.string() for column, type in self._types.items() if not is_plain(type)}
        types |= {self._in_file[column]: pa.string() for column in self.columns if column in text}
        table = self._parse(data, types)
        other = {column.name: pa.string() for column in table.schema if not is_plain(column.type)}
        if other:  # dates, which are text to us, and bytes that are no text, for which this is an error
            table = self._parse(data, types | other)
        if not len(table):
            raise self._no_rows()
        found = [pa.float64() if pa.types.is_null(type) else type for type in table.schema.types]
        return table.rename_columns(self.columns).cast(pa.schema(zip(self.columns, found, strict=True)))

    def _parse(self, data: bytes, types: dict[str, Any]) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        convert = self._convert_options(column_types=types)
        for threads in (True, False):  # without threads, errors tell the row
            read = csv.ReadOptions(use_threads=threads, block_size=self._block)
            try:
                return csv.read_csv(LentStream(data), read, self._parse_options(), convert)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                if not threads:
                    raise self._explained(error) from error
        raise AssertionError("either way there is a table or an error")

    def plain_rows(
        self,
        columns: Mapping[str, Mapping[Hashable, int] | None],
        work: Callable[[NDArray[np.float64], NDArray[np.int64]], T],
        n_threads: int,
    ) -> Iterator[T]:
        """Yield what is made of the rows as numbers, by several threads.

        From the first lines on that are not plain, all is left to `batches`.
        """
        header = self._plain_header()
        if not header:
            return
        from kfhe.engine.csv_lines import LineReader

        marks = str(self._dialect.sep).encode(), self.decimal.encode()
        gaps = [word.encode() for word in (*GAPS, *self._dialect.na)]
        reader = LineReader(*marks, gaps, self._line_columns(columns))

        def made(block: memoryview) -> tuple[T, int, int] | None:
            found = reader.read(block)
            if found is None:
                return None
            rows, unknown, n_lines = found
            return work(rows, unknown), len(rows), n_lines

        lines = Lines(self._start[len(header) :], self._stream, self._block)
        self._quotes.feed(header)
        self._rows_before = 1
        for result, n_rows, n_lines in lines.worked_on(made, n_threads):
            self._rows_before += n_rows
            self._quotes.skip(n_lines)
            yield result
        self._start = lines.rest()

    def _plain_header(self) -> bytes:
        """Return the first line; nothing if it takes more than a look to find it, or to read on."""
        sep = str(self._dialect.sep).encode()
        cell = rb'(?:"[^"\r\n]*"|[^"\r\n%s]*)' % re.escape(sep)
        header = re.match(rb"%s(?:%s%s)*\r?\n" % (cell, re.escape(sep), cell), self._start)
        if header is None or not header.group().strip() or self._dialect.sep not in (",", *SEPARATORS):
            return b""
        return header.group()

    def _plain_names(self) -> list[str]:
        """Return the names of the columns if pyarrow, which is slow to start, would find nothing else.

        None at all: it has to look at the first rows.
        """
        probe = self._start[:PROBE].replace(b"\r\n", b"\n")
        header, *lines = probe[: probe.rfind(b"\n") + 1].split(b"\n")
        if self._block > BLOCK or not probe.isascii() or re.search(rb'["\r]', probe) or not any(lines):
            return []
        sep = str(self._dialect.sep).encode()
        names = header.decode().split(str(self._dialect.sep))
        if not all(names) or len({*names}) < len(names):
            return []
        return names if {line.count(sep) for line in lines if line} == {len(names) - 1} else []

    @cached_property
    def _types(self) -> dict[str, Any]:
        """The columns, and the types that they have in the first rows."""
        return self._probe()

    @cached_property
    def _booleans(self) -> set[str]:
        """The columns of true and false, by their names in the file."""
        if not any(word.encode() in self._start[:PROBE] for word in TRUE + FALSE):
            return set()
        import pyarrow as pa

        return {column for column, type in self._types.items() if pa.types.is_boolean(type)}

    def _line_columns(
        self, columns: Mapping[str, Mapping[Hashable, int] | None]
    ) -> list[tuple[int, dict[bytes, float] | None, bool] | None]:
        """Return how each column in the file is read as numbers: see `LineReader`."""
        places = {column: place for place, column in enumerate(columns)}
        booleans = self._booleans
        found: list[tuple[int, dict[bytes, float] | None, bool] | None] = []
        for column, in_file in self._in_file.items():
            words = columns.get(column)
            if column not in places:
                found.append(None)
            elif words is not None:
                known = {word.encode(): float(bin) for word, bin in words.items() if isinstance(word, str)}
                found.append((places[column], known, False))
            elif in_file in booleans:
                truths = {word.encode(): float(word in TRUE) for word in TRUE + FALSE}
                found.append((places[column], truths, True))
            else:
                found.append((places[column], None, False))
        return found

    def batches(
        self, numbers: Collection[str], text: Collection[str], special: Collection[str] = ()
    ) -> Iterator[Any]:
        """Yield the rows of some columns, as pyarrow tables."""
        if self._rows_before and not self._start:  # plain_rows has read all
            if self._rows_before == 1:
                raise self._no_rows()
            return iter(())
        stream = _Resumed(self._start, self._stream, self._quotes)
        return self._batches(stream, self._convert_options, self._wanted(numbers, {*text, *special}))

    def kept_batches(
        self, kept: Collection[str], numbers: Collection[str], text: Collection[str], special: Collection[str]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield what `batches` yields, each with the columns `kept` of its rows, as they are written."""
        import pyarrow as pa

        written = {self._in_file[column]: pa.string() for column in kept}
        # A column can be asked for twice, as a number and as it is written: the bytes are parsed twice
        first, second = _copies(_Resumed(self._start, self._stream, self._quotes))
        return zip(
            self._batches(first, self._convert_options, self._wanted(numbers, {*text, *special})),
            self._batches(second, _as_written_options, written),
            strict=True,
        )

    def kept_schema(self, kept: Collection[str]) -> Any:
        """Return the types that kept columns have."""
        import pyarrow as pa

        return pa.schema([pa.field(column, pa.string()) for column in kept])

    def _wanted(self, numbers: Collection[str], text: Collection[str]) -> dict[str, Any]:
        """Return the types of some columns, by their names in the file."""
        import pyarrow as pa

        types = {}
        for column, in_file in self._in_file.items():
            if column in text:
                types[in_file] = pa.dictionary(pa.int32(), pa.string())
            elif column in numbers:
                types[in_file] = pa.bool_() if in_file in self._booleans else pa.float64()
        return types

    def _batches(
        self, stream: LentStream, options: Callable[..., Any], types: dict[str, Any]
    ) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv

        in_file = {name: column for column, name in self._in_file.items()}
        names = [in_file[name] for name in types]
        convert = options(column_types=types, include_columns=list(types))
        names_in_file = list(in_file) if self._rows_before else None
        read = csv.ReadOptions(use_threads=False, block_size=self._block, column_names=names_in_file)
        pieces: list[Any] = []
        batch = None
        try:
            for batch in csv.open_csv(stream, read, self._parse_options(), convert):
                self._quotes.check()
                pieces.append(batch)
                if sum(map(len, pieces)) >= ROWS:
                    yield pa.Table.from_batches(pieces).rename_columns(names)
                    pieces = []
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            self._quotes.check()
            raise self._explained(error) from error
        self._quotes.feed(b"")
        self._quotes.check(at_end=True)
        if batch is None and self._rows_before <= 1:
            raise self._no_rows()
        if pieces:
            yield pa.Table.from_batches(pieces).rename_columns(names)

    def _probe(self) -> dict[str, Any]:
        """Return the columns, and the types that they have in the first rows."""
        import pyarrow as pa
        from pyarrow import csv

        if not self._start.strip():
            raise TableFileError(f"{self.name}: is empty; the first row must name the columns")
        try:
            block = self._block if self._block > BLOCK else PROBE
            read = csv.ReadOptions(use_threads=False, block_size=block)
            schema = csv.open_csv(
                LentStream(self._start), read, self._parse_options(), self._convert_options()
            ).schema
            names = schema.names
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if "cannot infer number of columns" in str(error):
                raise self._no_rows() from error
            raise self._explained(error) from error
        check_names(self.name, names)
        return dict(zip(names, schema.types, strict=True))

    def _parse_options(self) -> Any:
        from pyarrow import csv

        return csv.ParseOptions(delimiter=self._dialect.sep, newlines_in_values=True)

    def _convert_options(self, **options: Any) -> Any:
        from pyarrow import csv

        return csv.ConvertOptions(
            null_values=[*GAPS, *self._dialect.na],
            true_values=TRUE,
            false_values=FALSE,
            strings_can_be_null=True,
            decimal_point=self._dialect.decimal,
            **options,
        )

    def _no_rows(self) -> TableFileError:
        return TableFileError(f"{self.name}: there are no rows below the header")

    def _explained(self, error: Exception) -> TableFileError:
        """Put pyarrow's messages into words for whoever made the file."""
        message = str(error)
        if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message):
            row, expected, got = ragged.groups()
            where = f"{self.name}: row {int(row) + self._rows_before}"
            header = f"{where} has {counted(int(got), 'value')}, but the header (row 1) names"
            if expected == "1":
                return TableFileError(f"{header} one column; leave titles above the header out of the file")
            return TableFileError(
                f"{header} {expected} columns; fix the row; a value with {self._dialect.sep!r} in it needs "
                "quotes"
            )
        if bad := re.search(
            r"column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)", message, re.DOTALL
        ):
            column, row, kind, reason = bad.groups()
            where = f"{self.name}: column {self._column(int(column))!r}, row {int(row) + self._rows_before}"
            if "UTF8" in reason:
                return TableFileError(f"{where}: there are bytes that are not UTF-8; {_RECODE}")
            found = reason.removeprefix("invalid value ")
            accepted = "true and false" if kind == "bool" else "numbers"
            return TableFileError(
                f"{where}: found {found}; accepted are {accepted}, and nothing for a gap; "
                f"{how_to_fix(found.strip(chr(39)))}"
            )
        if isinstance(error, UnicodeDecodeError):
            return TableFileError(f"{self.name}: the header has bytes that are not UTF-8; {_RECODE}")
        if "straddling" in message:
            return TableFileError(
                f'{self.name}: a row has more than {self._block >> 10} kB; is a quote (") never closed?'
            )
        return TableFileError(f"{self.name}: can't be read: {message.splitlines()[0]}")

    def _column(self, j: int) -> str:
        return self.columns[j] if hasattr(self, "columns") else f"{j + 1}"


_RECODE = "save the file as UTF-8, or say what it is, for example: --encoding latin-1"


class _Resumed(LentStream):
    """A stream whose start has been read already; somebody else sees what goes by."""

    def __init__(self, start: bytes, rest: IO[bytes], quotes: QuotedLines) -> None:
        super().__init__(start)
        self._rest, self._quotes = rest, quotes

    def next_bytes(self, size: int) -> bytes:
        """Return the next bytes."""
        data = super().next_bytes(size) or self._rest.read(size)
        self._quotes.feed(data)
        return data


class _Copy(LentStream):
    """One of two streams of the same bytes; what the other has not read yet is waiting for it."""

    def __init__(self, source: _Resumed, mine: deque[bytes], others: deque[bytes], lock: Lock) -> None:
        super().__init__()
        self._source, self._mine, self._others, self._lock = source, mine, others, lock

    def next_bytes(self, size: int) -> bytes:
        """Return the next bytes; both ask for as many at a time."""
        with self._lock:
            if self._mine:
                return self._mine.popleft()
            data = self._source.next_bytes(size)
            self._others.append(data)
            return data


def _copies(source: _Resumed) -> tuple[_Copy, _Copy]:
    """Return two streams that are read side by side; no more is kept than one is ahead of the other."""
    one: deque[bytes] = deque()
    other: deque[bytes] = deque()
    lock = Lock()
    return _Copy(source, one, other, lock), _Copy(source, other, one, lock)


def _read_fully(stream: IO[bytes], size: int) -> bytes:
    """Read so many bytes, or up to the end; a pipe gives them in pieces."""
    pieces = []
    while size and (piece := stream.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _as_written_options(**options: Any) -> Any:
    from pyarrow import csv

    return csv.ConvertOptions(null_values=[""], strings_can_be_null=True, **options)
