"""A parquet file: its columns and rows."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, ClassVar

import polars as pl

from kfhe.tables.errors import TableFileError
from kfhe.tables.readings import CATEGORY, NUMBER, WHOLE, is_text, moments_as_text

if TYPE_CHECKING:
    from kfhe.tables.files import Dialect

ROWS = 1 << 16  # rows that are read at a time


class ParquetTable:
    """A parquet file; some words in its text may stand for missing values."""

    first_row = 1
    is_text = False
    truths = ()
    notes: ClassVar[list[str]] = []

    def __init__(self, name: str, stream: IO[bytes], dialect: Dialect) -> None:
        self.name, self.dialect = name, replace(dialect, decimal=None)
        with damage_told(name):
            self._file = pl.scan_parquet(stream if stream.seekable() else io.BytesIO(stream.read()))
            self.schema = dict(self._file.collect_schema())
            n_rows = self._file.select(pl.len()).collect().item()
        self.columns = columns_of(self.schema)
        if not n_rows:
            raise TableFileError(f"{name}: there are no rows in it")

    def read(self, text: Collection[str] = ()) -> pl.DataFrame:
        """Return all rows; columns of dates and numbers in `text` become text."""
        with damage_told(self.name):
            rows = self._with_gaps(self._file.select(self.columns).collect())
        return moments_as_text(rows, text).with_columns(pl.col(column).cast(pl.String) for column in text)

    def batches(
        self, kinds: Mapping[str, str], kept: Collection[str] = ()
    ) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield rows in batches: some columns with types, and others unchanged."""
        names = [column for column in self.columns if column in kinds]
        for column in names:
            dtype, kind = self.schema[column], kinds[column]
            if kind in (NUMBER, WHOLE) and is_text(dtype):
                raise TableFileError(f"{self.name}: column {column!r} is text; accepted are numbers")
            if kind == CATEGORY and not (is_text(dtype) or dtype.is_temporal()):
                raise TableFileError(f"{self.name}: column {column!r} has numbers; accepted is text")
        text = [column for column in names if kinds[column] == CATEGORY]
        with damage_told(self.name):
            read = self._file.select(list(dict.fromkeys([*names, *kept])))
            for rows in read.collect_batches(chunk_size=ROWS):
                yield moments_as_text(self._with_gaps(rows.select(names)), text), rows.select(kept)

    def _with_gaps(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return rows with text as strings, and missing values for some words."""
        words = [column for column, dtype in rows.schema.items() if is_text(dtype)]
        rows = rows.with_columns(pl.col(words).cast(pl.String))
        return rows.with_columns(pl.when(~pl.col(words).is_in(list(self.dialect.na))).then(pl.col(words)))


def columns_of(names: Iterable[str]) -> list[str]:
    """Return the names of the columns, without pandas' index."""
    return [column for column in names if not re.fullmatch(r"__index_level_\d+__", column)]


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """Turn errors of polars into errors about a damaged file."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise damaged(name, error) from error


def damaged(name: str, error: Exception) -> TableFileError:
    """Return the error for a file that can't be read."""
    return TableFileError(f"{name}: is damaged, or no parquet file: {str(error).splitlines()[0]}")
