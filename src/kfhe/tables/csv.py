"""A csv file: what its columns hold, and its rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import IO, TYPE_CHECKING

from kfhe.tables.blocks import Block, Blocks
from kfhe.tables.dialect import Dialect, recoded, usual_encoding
from kfhe.tables.errors import TableFileError, check_names, how_to_fix

if TYPE_CHECKING:
    from polars import DataFrame, DataType, Series

# What pandas.read_csv takes for a gap, but for a few that start like numbers, such as -1.#IND.
GAPS = ["", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
TRUE, FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]

PIECE = 1 << 21  # bytes that are read at once; the first ones tell how the file is written
PROBE = 1 << 16  # bytes of the first rows, which tell which columns hold true and false
FEW = 1000  # words that tell whether others are worth a try
BLANKS = " \t"  # that may be around numbers
AS_FOUND = Dialect()

NUMBER, TRUTH, TEXT = "numbers", "true and false", "text"


class CsvTable:
    """A csv file, open at its start."""

    first_row = 2
    is_text = True
    truths = ()

    def __init__(self, name: str, stream: IO[bytes], dialect: Dialect = AS_FOUND) -> None:
        self.name = name
        pieces = _pieces(stream)
        start = next(pieces, b"")
        pieces = chain([start], pieces)
        self._encoding = None if dialect.encoding else usual_encoding(start)
        if encoding := dialect.encoding or self._encoding:
            pieces = recoded(name, pieces, encoding)
        is_all = len(start) < PIECE
        start = next(pieces, b"").removeprefix("\ufeff".encode()) + b"\n" * is_all
        pieces = filter(None, chain([start[:PROBE], start[PROBE:]], pieces))
        self._dialect = dialect.found_in(start)
        self.decimal = str(self._dialect.decimal)
        self._gaps = [*GAPS, *dialect.na]
        self._blocks = Blocks(name, str(self._dialect.sep), pieces)
        if not any(cell.strip() for cell in self._blocks.header):
            raise TableFileError(f"{name}: is empty; the first row must name the columns")
        if any(_is_broken(cell) for cell in self._blocks.header):
            raise TableFileError(f"{name}: the header has bytes that are not UTF-8; {_RECODE}")
        check_names(name, self._blocks.header)
        self.columns = [column or f"Unnamed: {j}" for j, column in enumerate(self._blocks.header)]
        first = next(iter(self._blocks), None)
        if first is None:
            raise TableFileError(f"{name}: there are no rows below the header")
        self._first = first

    @property
    def notes(self) -> list[str]:
        """What was noticed in the rows that have been read, in sentences."""
        unusual = [self._dialect.in_words()] * (self._dialect.sep != ",")
        if self._encoding:
            unusual.append(f"it is not UTF-8, so it is read as {self._encoding}; --encoding names another")
        return [f"{self.name}: {'; '.join(unusual)}"] * bool(unusual) + self._blocks.notes()

    def read(self, text: Collection[str] = ()) -> DataFrame:
        """Return all rows, each column as what all of its cells are."""
        import polars as pl

        cells = pl.concat([self._cells(block) for block in chain([self._first], self._blocks)])
        columns = []
        for column in self.columns:
            words = self._with_gaps(cells.drop_in_place(column))
            columns.append(words if column in text else self._meant(words))
        return pl.DataFrame(columns)

    def batches(
        self, numbers: Collection[str], text: Collection[str], special: Collection[str] = ()
    ) -> Iterator[DataFrame]:
        """Yield the rows of some columns."""
        return (rows for rows, _ in self.kept_batches((), numbers, text, special))

    def kept_batches(
        self, kept: Collection[str], numbers: Collection[str], text: Collection[str], special: Collection[str]
    ) -> Iterator[tuple[DataFrame, DataFrame]]:
        """Yield what `batches` yields, each with the columns `kept` of its rows, as they are written."""
        kinds = {column: TEXT for column in self.columns if column in {*text, *special}}
        truths = self._truths({*numbers} - {*kinds})
        kinds |= {column: TRUTH if column in truths else NUMBER for column in {*numbers} - {*kinds}}
        kinds = {column: kinds[column] for column in self.columns if column in kinds}
        for block in chain([self._first], self._blocks):
            rows = None if kept or truths else self._at_once(block, kinds)
            if rows is not None:
                yield rows, rows.select()
                continue
            cells = self._cells(block)
            yield self._converted(cells, kinds, block.first_row), cells.select(kept)

    def kept_schema(self, kept: Collection[str]) -> dict[str, DataType]:
        """Return the types that kept columns have."""
        import polars as pl

        return {column: pl.String() for column in kept}

    def _at_once(self, block: Block, kinds: Mapping[str, str]) -> DataFrame | None:
        """Return some columns of a block as polars reads them; None if there is anything that it can't."""
        import polars as pl

        if not isinstance(block.rows, bytes) or self.decimal != ".":
            return None
        numbers = {column for column, kind in kinds.items() if kind == NUMBER}
        # Empty cells are gaps anyway; each number would have to be compared with the other words
        for gaps in [[], self._gaps][bool(self._dialect.na) :]:
            with suppress(pl.exceptions.PolarsError):
                rows = self._parsed(block.rows, numbers, gaps)
                return rows.select(
                    rows[name] if name in numbers else self._with_gaps(rows[name]) for name in kinds
                )
        return None

    def _cells(self, block: Block) -> DataFrame:
        """Return the cells of a block as text; null where they are empty."""
        import polars as pl

        try:
            if isinstance(block.rows, bytes):
                return self._parsed(block.rows)
            columns = zip(self.columns, zip(*block.rows, strict=True), strict=True)
            cells = pl.DataFrame({column: pl.Series(texts, dtype=pl.String) for column, texts in columns})
            return cells.select(pl.when(pl.all() != "").then(pl.all()))
        except (pl.exceptions.PolarsError, UnicodeEncodeError) as error:
            if isinstance(block.rows, bytes):
                self._blocks.check_widths(block)
            raise self._broken(block) from error

    def _parsed(
        self, lines: bytes, numbers: Collection[str] = (), gaps: list[str] | None = None
    ) -> DataFrame:
        import polars as pl

        return pl.read_csv(
            lines,
            has_header=False,
            separator=str(self._dialect.sep),
            quote_char=None,
            schema={column: pl.Float64() if column in numbers else pl.String() for column in self.columns},
            null_values=gaps,
        )

    def _with_gaps(self, cells: Series) -> Series:
        """Take some words for gaps."""
        return cells.set(cells.is_in(self._gaps), None)

    def _truths(self, columns: Collection[str]) -> set[str]:
        """Return those of some columns that hold nothing but true and false in the first rows."""
        rows = self._first.rows
        if isinstance(rows, bytes) and not any(word.encode() in rows for word in TRUE + FALSE):
            return set()
        cells = self._cells(self._first)
        words = {column: self._with_gaps(cells[column]).drop_nulls() for column in columns}
        return {column for column, found in words.items() if len(found) and found.is_in(TRUE + FALSE).all()}

    def _converted(self, cells: DataFrame, kinds: Mapping[str, str], first_row: int) -> DataFrame:
        """Return the columns that are asked for; raise at the first row that has something else."""
        import polars as pl

        found, wrong = [], []
        for column, kind in kinds.items():
            words = self._with_gaps(cells[column])
            if kind == TEXT:
                found.append(words)
                continue
            found.append(_truth(words) if kind == TRUTH else self._numbers(words))
            misfits = (found[-1].is_null() & words.is_not_null()).arg_true()
            if len(misfits):
                wrong.append((misfits[0] + first_row, column, words[misfits[0]], kind))
        if wrong:
            row, column, word, kind = min(wrong)
            raise TableFileError(
                f"{self.name}: column {column!r}, row {row}: found {word!r}; accepted are {kind}, and "
                f"nothing for a gap; {how_to_fix(word)}"
            )
        return pl.DataFrame(found)

    def _numbers(self, words: Series, dtype: type[DataType] | None = None) -> Series:
        """Return words as numbers; null where they are none."""
        import polars as pl

        if self.decimal == ",":
            words = words.set(words.str.contains(".", literal=True), None)
            words = words.str.replace(",", ".", literal=True)
        return words.str.strip_chars(BLANKS).cast(dtype or pl.Float64, strict=False)

    def _meant(self, words: Series) -> Series:
        """Return words as whole numbers, numbers, or true and false, if they all are; else as they are."""
        import polars as pl

        if words.null_count() == len(words):
            return words.cast(pl.Float64)
        first = words.drop_nulls().head(FEW)
        for read in (lambda some: self._numbers(some, pl.Int64), self._numbers, _truth):
            if not read(first).null_count() and (found := read(words)).null_count() == words.null_count():
                return found
        return words

    def _broken(self, block: Block) -> TableFileError:
        """Return an error for bytes that are not UTF-8."""
        rows = block.rows
        if isinstance(rows, bytes):
            lines = rows.decode(errors="surrogateescape").split("\n")
            rows = [line.split(str(self._dialect.sep)) for line in lines]
        for row, cells in enumerate(rows, block.first_row):
            for column, cell in zip(self.columns, cells, strict=False):
                if _is_broken(cell):
                    return TableFileError(
                        f"{self.name}: column {column!r}, row {row}: there are bytes that are not UTF-8; "
                        f"{_RECODE}"
                    )
        return TableFileError(f"{self.name}: can't be read")


_RECODE = "save the file as UTF-8, or say what it is, for example: --encoding latin-1"


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a stream's bytes; those that a pipe gives one by one are joined."""
    while piece := stream.read(PIECE):
        while len(piece) < PIECE and (more := stream.read(PIECE - len(piece))):
            piece += more
        yield piece


def _is_broken(text: str) -> bool:
    """Whether there are bytes in it that were not UTF-8."""
    return any("\udc80" <= letter <= "\udcff" for letter in text)


def _truth(words: Series) -> Series:
    """Return words as true and false; null where they are something else."""
    import polars as pl

    return words.replace_strict(
        {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}, default=None, return_dtype=pl.Boolean
    )
