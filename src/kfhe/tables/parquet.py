"""A parquet file: its columns and rows."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, ClassVar

from kfhe.tables.errors import TableFileError, check_names
from kfhe.tables.types import is_moment, is_text, moments_as_text

if TYPE_CHECKING:
    from polars import DataFrame, DataType

ROWS = 1 << 16  # that are read at once


class ParquetTable:
    """A parquet file; words of its text may be taken for gaps."""

    first_row = 1
    is_text = False
    decimal = None
    truths = ()
    notes: ClassVar[list[str]] = []

    def __init__(self, name: str, stream: IO[bytes], na: Collection[str] = ()) -> None:
        import polars as pl

        self.name = name
        self._na = list(na)
        with damage_told(name):
            self._file = pl.scan_parquet(stream if stream.seekable() else io.BytesIO(stream.read()))
            self._types = self._file.collect_schema()
            n_rows = self._file.select(pl.len()).collect().item()
        self.columns = columns_of(self._types, name)
        if not n_rows:
            raise TableFileError(f"{name}: there are no rows in it")

    def read(self, text: Collection[str] = ()) -> DataFrame:
        """Return all rows; columns of dates and numbers become text if that is asked for."""
        with damage_told(self.name):
            rows = self._with_gaps(self._file.select(self.columns).collect())
        return _as_text(rows, text)

    def batches(
        self, numbers: Collection[str], text: Collection[str], special: Collection[str] = ()
    ) -> Iterator[DataFrame]:
        """Yield the rows of some columns."""
        return (rows for rows, _ in self.kept_batches((), numbers, text, special))

    def kept_batches(
        self, kept: Collection[str], numbers: Collection[str], text: Collection[str], special: Collection[str]
    ) -> Iterator[tuple[DataFrame, DataFrame]]:
        """Yield what `batches` yields, each with the columns `kept` of its rows."""
        names = [column for column in self.columns if column in {*numbers, *text, *special}]
        for column in names:
            dtype = self._types[column]
            if column in numbers and is_text(dtype):
                raise TableFileError(f"{self.name}: column {column!r} holds text; accepted is numbers")
            if column in text and not (is_text(dtype) or is_moment(dtype)):
                raise TableFileError(f"{self.name}: column {column!r} holds numbers; accepted is text")
        with damage_told(self.name):
            read = self._file.select(list(dict.fromkeys([*names, *kept])))
            for rows in read.collect_batches(chunk_size=ROWS):
                yield moments_as_text(self._with_gaps(rows.select(names)), text), rows.select(kept)

    def kept_schema(self, kept: Collection[str]) -> dict[str, DataType]:
        """Return the types that kept columns have."""
        return {column: self._types[column] for column in kept}

    def _with_gaps(self, rows: DataFrame) -> DataFrame:
        """Return rows whose text is text, however it is stored, and of which some words are gaps."""
        import polars as pl

        words = [column for column, dtype in rows.schema.items() if is_text(dtype)]
        rows = rows.with_columns(pl.col(words).cast(pl.String))
        return rows.with_columns(pl.when(~pl.col(words).is_in(self._na)).then(pl.col(words)))


def _as_text(rows: DataFrame, columns: Collection[str]) -> DataFrame:
    import polars as pl

    rows = moments_as_text(rows, columns)
    return rows.with_columns(pl.col(column).cast(pl.String) for column in rows.columns if column in columns)


def columns_of(names: Iterable[str], file: str) -> list[str]:
    """Return the names of the columns; what pandas keeps its row names in is none."""
    columns = [column for column in names if not re.fullmatch(r"__index_level_\d+__", column)]
    check_names(file, columns)
    return columns


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """Tell what polars can't read as a damaged file."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise damaged(name, error) from error


def damaged(name: str, error: Exception) -> TableFileError:
    """Return the error of a file that can't be read."""
    return TableFileError(f"{name}: is damaged, or no parquet file: {str(error).splitlines()[0]}")
