"""A parquet file: its columns and rows."""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import IO, Any, ClassVar

from kfhe.tables.errors import TableFileError, check_names
from kfhe.tables.types import is_moment, is_text, moments_as_text, value_type

ROWS = 1 << 16  # that are read at once


class ParquetTable:
    """A parquet file; words of its text may be taken for gaps."""

    first_row = 1
    is_text = False
    decimal = None
    notes: ClassVar[list[str]] = []

    def __init__(self, name: str, stream: IO[bytes], na: Collection[str] = ()) -> None:
        from pyarrow import parquet

        self.name = name
        self._na = list(na)
        source = stream if stream.seekable() else io.BytesIO(stream.read())
        with damage_told(name):
            self._file = parquet.ParquetFile(source)
            schema = self._file.schema_arrow
        self.columns = columns_of(schema, name)
        self._text = {column for column in self.columns if is_text(schema.field(column).type)}
        self._moments = {column for column in self.columns if is_moment(schema.field(column).type)}
        if not self._file.metadata.num_rows:
            raise TableFileError(f"{name}: there are no rows in it")

    def read(self, text: Collection[str] = ()) -> Any:
        """Return all rows as a pyarrow table."""
        import pyarrow as pa

        with damage_told(self.name):
            table = self._with_gaps(checked(self._file.read(columns=self.columns)))
        for column in {*self.columns} & {*text} - self._text:
            j = table.schema.get_field_index(column)
            table = table.set_column(j, column, table.column(j).cast(pa.string()))
        return table

    def _with_gaps(self, table: Any) -> Any:
        """Take some words in columns of text for gaps."""
        import pyarrow as pa
        from pyarrow import compute

        for j, column in enumerate(table.column_names):
            if self._na and column in self._text:
                words = table.column(j).cast(value_type(table.schema.field(j).type))
                gaps = compute.is_in(words, pa.array(self._na, words.type))
                words = compute.if_else(gaps, pa.scalar(None, words.type), words)
                table = table.set_column(j, column, words)
        return table

    def plain_rows(self, *how: Any) -> Iterator[Any]:
        """Yield nothing: all rows are left to `batches`."""
        return iter(())

    def batches(
        self, numbers: Collection[str], text: Collection[str], special: Collection[str] = ()
    ) -> Iterator[Any]:
        """Yield the rows of some columns, as pyarrow tables."""
        import pyarrow as pa

        names = [column for column in self.columns if column in {*numbers, *text, *special}]
        for column in names:
            if column in numbers and column in self._text:
                raise TableFileError(f"{self.name}: column {column!r} holds text; accepted is numbers")
            if column in text and column not in self._text | self._moments:
                raise TableFileError(f"{self.name}: column {column!r} holds numbers; accepted is text")
        with damage_told(self.name):
            for batch in self._file.iter_batches(ROWS, columns=names):
                rows = self._with_gaps(checked(pa.Table.from_batches([batch])))
                yield moments_as_text(rows, self._moments & {*text})

    def kept_batches(
        self, kept: Collection[str], numbers: Collection[str], text: Collection[str], special: Collection[str]
    ) -> Iterator[tuple[Any, Any]]:
        """Yield what `batches` yields, each with the columns `kept` of its rows."""
        import pyarrow as pa

        schema, names = self.kept_schema(kept), list(kept)
        beside = self._file.iter_batches(ROWS, columns=names)
        for rows in self.batches(numbers, text, special):
            with damage_told(self.name):
                batch = checked(pa.Table.from_batches([next(beside)]))
            yield rows, batch.select(names).cast(schema)

    def kept_schema(self, kept: Collection[str]) -> Any:
        """Return the types that kept columns have: those of values that are stored as positions, too."""
        import pyarrow as pa

        types = self._file.schema_arrow
        return pa.schema([pa.field(column, value_type(types.field(column).type)) for column in kept])


def columns_of(schema: Any, name: str) -> list[str]:
    """Return the names of the columns; what pandas keeps its row names in is none."""
    columns = [column for column in schema.names if not re.fullmatch(r"__index_level_\d+__", column)]
    check_names(name, columns)
    return columns


def checked(table: Any) -> Any:
    """Return a table whose text is text: pyarrow reads any bytes as such, and others trust it."""
    table.validate(full=True)
    return table


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """Tell what pyarrow can't read as a damaged file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise TableFileError(f"{name}: is damaged, or no parquet file: {reason}") from error
