"""A csv file: its rows, in batches, and the types of its columns.

Polars misreads quotes inside values, such as ``5" and 6``, and fills up rows that are too short. So lines
with quotes are split by Python's csv module, and separators are counted.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from kfhe.display.text import counted, some
from kfhe.tables.errors import TableFileError, how_to_fix
from kfhe.tables.readings import NUMBER, WHOLE

if TYPE_CHECKING:
    from kfhe.tables.files import Dialect

# The missing values of pandas.read_csv, except for a few that start like numbers, such as -1.#IND.
GAPS = ["", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
TRUE, FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
TRUTHS = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}
TRUTH = "true and false"  # the kind of a column of numbers that has only these in the first rows

PIECE = 3 << 19  # bytes that are read at once; the dialect is detected in the first piece
PROBE = 1 << 16  # bytes of the first rows, in which columns of true and false are detected
FEW = 1000  # values that are tried before all others
BLANKS = " \t"  # allowed around numbers
LONGEST = 1 << 26  # maximum bytes of a row
MOST_LINES = 20  # maximum lines of a value
FEW_LINES = 3  # lines of a value that may look like rows
RECODE = "save the file as UTF-8, or give its encoding, for example: --encoding latin-1"


class CsvTable:
    """An open csv file.

    Attributes
    ----------
    dialect : Dialect
        The dialect, given or detected.
    """

    first_row = 2
    is_text = True
    truths = ()

    def __init__(self, name: str, stream: IO[bytes], dialect: Dialect) -> None:
        self.name = name
        pieces = _pieces(stream)
        start = next(pieces, b"")
        self._is_guess, encoding = dialect.encoding is None, dialect.encoding or _usual_encoding(start)
        is_all, pieces = len(start) < PIECE, chain([start], pieces)
        if encoding:
            pieces = _recoded(name, pieces, encoding)
        start = next(pieces, b"").removeprefix(codecs.BOM_UTF8) + b"\n" * is_all
        self.dialect = replace(dialect, encoding=encoding).found_in(start)
        self._gaps = [*GAPS, *dialect.na]
        pieces = filter(None, chain([start[:PROBE], start[PROBE:]], pieces))
        self._blocks = Blocks(name, str(self.dialect.sep), pieces)
        header = self._blocks.header
        if not any(cell.strip() for cell in header):
            raise TableFileError(f"{name}: is empty; the first row must name the columns")
        if any(map(_is_broken, header)):
            raise TableFileError(f"{name}: the header has bytes that are not UTF-8; {RECODE}")
        check_names(name, header)
        self.columns = [column or f"Unnamed: {j}" for j, column in enumerate(header)]
        first = next(iter(self._blocks), None)
        if first is None:
            raise TableFileError(f"{name}: there are no rows below the header")
        self._first = first

    @property
    def notes(self) -> list[str]:
        """Notes on the rows that have been read, as sentences."""
        unusual = []
        if self.dialect.sep != ",":
            fractions = ", and decimals have a comma" * (self.dialect.decimal == ",")
            unusual.append(f"columns are separated by {self.dialect.sep!r}{fractions}")
        if self._is_guess and self.dialect.encoding:
            unusual.append(
                f"it is not UTF-8, so it is read as {self.dialect.encoding}; --encoding sets another"
            )
        return [f"{self.name}: {'; '.join(unusual)}"] * bool(unusual) + self._blocks.notes()

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The types of columns that are kept: all are text."""
        return dict.fromkeys(self.columns, pl.String())

    def read(self, text: Collection[str] = ()) -> pl.DataFrame:
        """Return all rows; the type of a column is the one that fits all of its cells."""
        cells = pl.concat([self._cells(block) for block in chain([self._first], self._blocks)])
        columns = []
        for column in self.columns:
            words = self._with_gaps(cells.drop_in_place(column))
            columns.append(words if column in text else self._meant(words))
        return pl.DataFrame(columns)

    def batches(
        self, kinds: Mapping[str, str], kept: Collection[str] = ()
    ) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield rows in batches: some columns with types, and others unchanged."""
        truths = self._truths([column for column, kind in kinds.items() if kind == NUMBER])
        kinds = {column: kinds[column] for column in self.columns if column in kinds}
        kinds |= dict.fromkeys(truths, TRUTH)
        are_plain = not kept and self.dialect.decimal == "." and not {TRUTH, WHOLE} & {*kinds.values()}
        for block in chain([self._first], self._blocks):
            rows = self._at_once(block, kinds) if are_plain else None
            if rows is not None:
                yield rows, pl.DataFrame()
                continue
            cells = self._cells(block)
            yield self._converted(cells, kinds, block.first_row), cells.select(kept)

    def _at_once(self, block: Block, kinds: Mapping[str, str]) -> pl.DataFrame | None:
        """Return some columns of a block as read by polars; None if it can't read all values."""
        if not isinstance(block.rows, bytes):
            return None
        numbers = {column for column, kind in kinds.items() if kind == NUMBER}
        # Empty cells are missing anyway; comparing numbers with other words would be slow
        for gaps in [[], self._gaps][bool(self.dialect.na) :]:
            with suppress(pl.exceptions.PolarsError):
                rows = self._parsed(block.rows, numbers, gaps)
                return pl.DataFrame(
                    [rows[name] if name in numbers else self._with_gaps(rows[name]) for name in kinds]
                )
        return None

    def _cells(self, block: Block) -> pl.DataFrame:
        """Return the cells of a block as text; null where they are empty."""
        try:
            if isinstance(block.rows, bytes):
                return self._parsed(block.rows)
            columns = zip(self.columns, zip(*block.rows, strict=True), strict=True)
            cells = pl.DataFrame({column: pl.Series(texts, dtype=pl.String) for column, texts in columns})
            return cells.select(pl.when(pl.all() != "").then(pl.all()))
        except (pl.exceptions.PolarsError, UnicodeEncodeError) as error:
            raise self._broken(block) from error

    def _parsed(
        self, lines: bytes, numbers: Collection[str] = (), gaps: list[str] | None = None
    ) -> pl.DataFrame:
        return pl.read_csv(
            lines,
            has_header=False,
            separator=str(self.dialect.sep),
            quote_char=None,
            schema={column: pl.Float64() if column in numbers else pl.String() for column in self.columns},
            null_values=gaps,
        )

    def _with_gaps(self, cells: pl.Series) -> pl.Series:
        """Replace the words that stand for missing values by null."""
        return cells.set(cells.is_in(self._gaps), None)

    def _truths(self, columns: Iterable[str]) -> list[str]:
        """Return those of some columns that have only true and false in the first rows."""
        rows = self._first.rows
        if isinstance(rows, bytes) and not any(word.encode() in rows for word in TRUTHS):
            return []
        cells = self._cells(self._first)
        words = {column: self._with_gaps(cells[column]).drop_nulls() for column in columns}
        return [column for column, found in words.items() if len(found) and found.is_in([*TRUTHS]).all()]

    def _converted(self, cells: pl.DataFrame, kinds: Mapping[str, str], first_row: int) -> pl.DataFrame:
        """Return some columns with their types; raise at the first value of another type."""
        found, wrong = [], []
        for column, kind in kinds.items():
            values = words = self._with_gaps(cells[column])
            if kind in (NUMBER, WHOLE, TRUTH):
                values = _truth(words) if kind == TRUTH else self._numbers(words)
            misfits = (values.is_null() & words.is_not_null()).arg_true()
            if len(misfits):
                wrong.append((misfits[0] + first_row, column, words[misfits[0]], kind))
            if kind == WHOLE:  # other numbers match no category
                others = values.set(values != values.floor(), None).cast(pl.Int64, strict=False)
                values = self._numbers(words, pl.Int64).fill_null(others)
            found.append(values)
        if wrong:
            row, column, word, kind = min(wrong)
            raise TableFileError(
                f"{self.name}: column {column!r}, row {row}: found {word!r}; accepted are "
                f"{TRUTH if kind == TRUTH else 'numbers'}, and nothing for a gap; {how_to_fix(word)}"
            )
        return pl.DataFrame(found)

    def _numbers(self, words: pl.Series, dtype: type[pl.DataType] = pl.Float64) -> pl.Series:
        """Return words as numbers; null where they are not."""
        if self.dialect.decimal == ",":
            words = words.set(words.str.contains(".", literal=True), None)
            words = words.str.replace(",", ".", literal=True)
        return words.str.strip_chars(BLANKS).cast(dtype, strict=False)

    def _meant(self, words: pl.Series) -> pl.Series:
        """Return words as integers, floats or booleans if all of them are; otherwise unchanged."""
        if words.null_count() == len(words):
            return words.cast(pl.Float64)
        first = words.drop_nulls().head(FEW)
        for read in (lambda some: self._numbers(some, pl.Int64), self._numbers, _truth):
            if not read(first).null_count() and (found := read(words)).null_count() == words.null_count():
                return found
        return words

    def _broken(self, block: Block) -> TableFileError:
        """Return the error for bytes that are not UTF-8."""
        rows = block.rows
        if isinstance(rows, bytes):
            lines = rows.decode(errors="surrogateescape").split("\n")
            rows = [line.split(str(self.dialect.sep)) for line in lines]
        for row, cells in enumerate(rows, block.first_row):
            for column, cell in zip(self.columns, cells, strict=False):
                if _is_broken(cell):
                    return TableFileError(
                        f"{self.name}: column {column!r}, row {row}: there are bytes that are not UTF-8; "
                        f"{RECODE}"
                    )
        return TableFileError(f"{self.name}: can't be read")


class Block(NamedTuple):
    """Adjacent rows.

    Attributes
    ----------
    first_row : int
        Number of the first row; the header is row 1.
    rows : bytes or list of list of str
        Lines without quotes, or the cells of each row.
    """

    first_row: int
    rows: bytes | list[list[str]]


class Blocks:
    """Splits a csv into blocks.

    Parameters
    ----------
    name : str
        The name of the file in messages.
    sep : str
        The separator.
    pieces : iterator of bytes
        The file, in UTF-8.

    Attributes
    ----------
    header : list of str
        The first row.
    """

    def __init__(self, name: str, sep: str, pieces: Iterator[bytes]) -> None:
        self._name, self._sep, self._pieces = name, sep, pieces
        self._rest = b""  # read, but not yet split
        self._line, self._row = 1, 1  # numbers of the next line and row
        self._broken: list[int] = []  # lines where values with line breaks begin
        self.header: list[str] = []
        while not self.header and (lines := self._lines()):
            self.header = next(iter(self._cells(lines, most=1)), [])
        self._row = 2

    def __iter__(self) -> Iterator[Block]:
        while lines := self._lines():
            rows: bytes | list[list[str]]
            if b'"' in lines:
                rows = self._cells(lines)
                self._check_widths(map(len, rows))
                n_rows = len(rows)
            else:
                rows, n_rows = self._checked(lines)
            if n_rows:
                self._row += n_rows
                yield Block(self._row - n_rows, rows)

    def notes(self) -> list[str]:
        """Return a note on line breaks in values."""
        count = len(self._broken)
        if not count:
            return []
        where = some([str(line) for line in self._broken])
        found = f"{count} values have line breaks in quotes; they begin in lines {where}"
        if count == 1:
            found = f"1 value has a line break in quotes; it begins in line {where}"
        return [f'{self._name}: {found}. If this is unexpected, a quote (") is missing or extra there.']

    def _lines(self) -> bytes:
        """Return the next complete lines; nothing at the end."""
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
        """Return lines without quotes, omitting blank ones, and their number."""
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
            self._check_widths(line.count(self._sep.encode()) + 1 for line in lines.splitlines())
        return lines, n_rows

    def _check_widths(self, widths: Iterable[int]) -> None:
        """Raise unless each of the next rows has as many cells as the header."""
        expected = len(self.header)
        for row, width in enumerate(widths, self._row):
            if width == expected:
                continue
            header = f"{self._name}: row {row} has {counted(width, 'value')}, but the header (row 1) names"
            if expected == 1:
                raise TableFileError(f"{header} one column; remove titles above the header")
            raise TableFileError(
                f"{header} {expected} columns; fix the row; a value that contains {self._sep!r} needs quotes"
            )

    def _cells(self, lines: bytes, most: int | None = None) -> list[list[str]]:
        """Return the cells of the rows in some lines, and in further lines that a quoted value extends to."""
        waiting = deque(_decoded(lines))
        n_lines, done, ended = len(waiting), 0, False

        def fed() -> Iterator[str]:
            nonlocal ended
            while not ended:
                while waiting:
                    yield waiting.popleft()
                more = self._lines()  # called only if a quote is open
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
        """Note the line breaks in a row; raise if a quote has swallowed rows."""
        marks = len(self.header) - 1
        for j, cell in enumerate(cells):
            lines, shown = cell.split("\n"), f"{cell[:40]!r} ..."
            if not closed and j == len(cells) - 1:
                raise TableFileError(
                    f'{self._name}: a quote (") is opened in line {line} and never closed: {shown}'
                )
            between = lines[1:-1]
            rows = marks > 1 and all(text.count(self._sep) == marks for text in between)
            if len(lines) > MOST_LINES or (rows and len(between) >= FEW_LINES):
                raise TableFileError(
                    f"{self._name}: line {line}: a value in quotes runs over {len(lines)} lines: {shown}; a "
                    'quote (") is missing or extra there. Fix it, or write the text on one line'
                )
            if len(lines) > 1:
                self._broken.append(line)
                line += len(lines) - 1

    def _too_long(self, size: int) -> TableFileError:
        return TableFileError(
            f'{self._name}: a row has more than {size >> 10} kB; is a quote (") never closed?'
        )


def check_names(source: str, columns: list[str]) -> None:
    """Raise if columns have the same name, or none."""
    if columns.count("") > 1:
        places = [str(place) for place, column in enumerate(columns, 1) if not column]
        raise TableFileError(f"{source}: columns {some(places)} have no name in the header; name them")
    twice = [repr(column) for column, count in Counter(columns).items() if count > 1]
    if twice:
        raise TableFileError(f"{source}: there are several columns named {', '.join(twice)}; rename them")


def _usual_encoding(start: bytes) -> str | None:
    """Return the encoding of a text that is not UTF-8: UTF-16 if it is marked, else that of Windows."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if start.isascii() or re.search(rb"[\x00-\x08\x0e-\x1f]", start):  # control characters: not a text
        return None
    # If some characters are UTF-8 and others are not, the file is damaged
    return None if re.search(rb"[\xc2-\xf4][\x80-\xbf]", start) else "cp1252"


def _recoded(name: str, pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield a text of another encoding in UTF-8; `name` is the file in messages."""
    try:
        for text in codecs.iterdecode(pieces, encoding):
            yield text.encode()
    except LookupError:
        raise TableFileError(
            f"unknown encoding {encoding!r}; for example, utf-8, latin-1, cp1252 and utf-16 are known"
        ) from None
    except UnicodeError as error:
        reason = getattr(error, "reason", error)
        raise TableFileError(f"{name}: there are bytes that are not {encoding}: {reason}") from error


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a stream's bytes, up to the end of a line; small pieces from pipes are joined."""
    while piece := stream.read(PIECE):
        while len(piece) < PIECE and (more := stream.read(PIECE - len(piece))):
            piece += more
        piece += stream.readline(PIECE)
        yield piece


def _decoded(lines: bytes) -> Iterator[str]:
    """Return lines as text; bytes that are not UTF-8 are found later, in their columns."""
    return iter(io.StringIO(lines.decode(errors="surrogateescape"), newline=""))


def _is_broken(text: str) -> bool:
    """Whether there are bytes that were not UTF-8."""
    return any("\udc80" <= letter <= "\udcff" for letter in text)


def _truth(words: pl.Series) -> pl.Series:
    """Return words as booleans; null where they are something else."""
    return words.replace_strict(TRUTHS, default=None, return_dtype=pl.Boolean)
