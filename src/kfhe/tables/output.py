"""Tables written to files: csv, gzipped csv or parquet, by the file's ending."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kfhe.display.text import plain
from kfhe.files import standard_output, whole_file
from kfhe.tables.errors import TableFileError
from kfhe.tables.types import is_text, moments_as_text

if TYPE_CHECKING:
    from polars import DataFrame, DataType

FORMULA = r"\A[=+\-@\t\r]"  # how text begins that a spreadsheet may run
SUFFIXES = (".csv", ".csv.gz", ".parquet")


def check_output(path: str | os.PathLike[str]) -> None:
    """Raise unless a path's ending says which kind of table to write; ``-`` is a csv."""
    name = str(path)
    if Path(name).is_dir():
        raise TableFileError(f"{name}: is a folder; give the name of a file")
    is_device = os.path.exists(name) and not os.path.isfile(name)
    if name != "-" and not name.endswith(SUFFIXES) and not is_device:
        raise TableFileError(f"{name}: the ending must tell what to write: {', '.join(SUFFIXES)}")


def write_table(path: str | os.PathLike[str], rows: DataFrame, *, escape_formulas: bool = False) -> None:
    """Write a data frame of polars to a file, whole or not at all; see `write_batches`."""
    write_batches(path, rows.schema, [rows], escape_formulas=escape_formulas)


def write_batches(
    path: str | os.PathLike[str],
    schema: Mapping[str, DataType],
    batches: Iterable[DataFrame],
    *,
    escape_formulas: bool = False,
) -> None:
    """Write rows to a file as they come; it is there, whole, once all has gone well.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .csv.gz or .parquet; ``-`` is a csv on standard output.
    schema : mapping of str to DataType
        Names and types of the columns.
    batches : iterable of DataFrame
        The rows.
    escape_formulas : bool, default=False
        Whether text of a csv that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    check_output(path)
    if str(path) == "-":
        stream = standard_output()
        write_csv(PlainOutput(stream) if stream.isatty() else stream, schema, batches, escape_formulas)
        stream.flush()
        return
    with whole_file(path) as file:
        if str(path).endswith(".parquet"):
            _write_parquet(file, schema, batches)
        elif str(path).endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                write_csv(packed, schema, batches, escape_formulas)
        else:
            write_csv(file, schema, batches, escape_formulas)


def write_csv(
    file: Any, names: Iterable[str], batches: Iterable[DataFrame], escape_formulas: bool = False
) -> None:
    """Write rows to an open file; values are in quotes only where they need them."""
    header = io.StringIO()
    escaped = [re.sub(FORMULA, r"'\g<0>", name) if escape_formulas else name for name in names]
    csv.writer(header, lineterminator="\n").writerow(escaped)
    file.write(header.getvalue().encode())
    for rows in batches:
        text = moments_as_text(rows, rows.columns)
        if escape_formulas:
            text = _without_formulas(text)
        file.write(text.write_csv(include_header=False).encode())


def _write_parquet(file: BinaryIO, schema: Mapping[str, DataType], batches: Iterable[DataFrame]) -> None:
    import polars as pl
    from polars.io.plugins import register_io_source

    def source(*asked: Any) -> Iterator[DataFrame]:
        yield from batches

    try:
        register_io_source(source, schema=dict(schema)).sink_parquet(file)
    except pl.exceptions.ComputeError as error:
        if failed := re.search(r"IO error: (?:\[Errno \d+\] )?(.*?)(?: \(os error \d+\))?$", str(error)):
            raise OSError(failed[1]) from error
        raise


class PlainOutput:
    """A terminal that a csv is shown on: it gets text that it can't be steered by."""

    def __init__(self, terminal: BinaryIO) -> None:
        self._terminal = terminal

    def write(self, text: bytes) -> None:
        """Show whole lines of UTF-8."""
        self._terminal.write(plain(text.decode()).encode())


def _without_formulas(rows: DataFrame) -> DataFrame:
    """Put an apostrophe in front of each text that a spreadsheet would take for a formula."""
    import polars as pl

    texts = [column for column, dtype in rows.schema.items() if is_text(dtype)]
    return rows.with_columns(pl.col(texts).cast(pl.String).str.replace(FORMULA, "'$0"))
