"""Tables written to files: csv, gzipped csv or parquet, by the file's ending."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from kfhe.files import whole_file
from kfhe.table_files.errors import TableFileError
from kfhe.table_files.types import is_text

SUFFIXES = (".csv", ".csv.gz", ".parquet")


class TableOutput(Protocol):
    """A table file that is being written."""

    def write(self, table: Any) -> None:
        """Add the rows of a pyarrow table or record batch."""


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise unless a path's ending says which kind of table to write; ``-`` is a csv."""
    name = str(path)
    if Path(name).is_dir():
        raise TableFileError(f"{name}: is a folder; give the name of a file")
    is_device = os.path.exists(name) and not os.path.isfile(name)
    if name != "-" and not name.endswith(SUFFIXES) and not is_device:
        raise TableFileError(f"{name}: the ending must tell what to write: {', '.join(SUFFIXES)}")


@contextmanager
def open_output(path: str | os.PathLike[str], schema: Any) -> Iterator[TableOutput]:
    """Open a table file to be written in pieces; it is there, whole, once all has gone well.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .csv.gz or .parquet; ``-`` is a csv on standard output.
    schema : pyarrow.Schema
        Names and types of the columns.
    """
    check_output(path)
    if str(path) == "-":
        yield CsvOutput(sys.stdout.buffer, schema)
        sys.stdout.buffer.flush()
        return
    with whole_file(path) as file:
        if str(path).endswith(".parquet"):
            from pyarrow import parquet

            with parquet.ParquetWriter(file, schema) as writer:
                yield writer
        elif str(path).endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield CsvOutput(packed, schema)
        else:
            yield CsvOutput(file, schema)


def write_table(path: str | os.PathLike[str], table: Any) -> None:
    """Write a pyarrow table to a csv or parquet file, whole or not at all; ``-`` is standard output."""
    with open_output(path, table.schema) as output:
        output.write(table)


class CsvOutput:
    """A csv that is being written; values are in quotes only where they need them."""

    def __init__(self, file: Any, schema: Any) -> None:
        self._file: BinaryIO = file
        header = io.StringIO()
        csv.writer(header, lineterminator="\n").writerow(schema.names)
        file.write(header.getvalue().encode())

    def write(self, table: Any) -> None:
        """Add the rows of a pyarrow table or record batch."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        style = "needed" if any(_needs_quotes(column) for column in table.columns) else "none"
        options = arrow_csv.WriteOptions(include_header=False, quoting_style=style)
        buffer = pa.BufferOutputStream()
        arrow_csv.write_csv(table, buffer, options)
        self._file.write(buffer.getvalue())


def _needs_quotes(column: Any) -> bool:
    from pyarrow import compute

    if not is_text(column.type):
        return False
    return bool(compute.any(compute.match_substring_regex(column, '[",\r\n]')).as_py())
