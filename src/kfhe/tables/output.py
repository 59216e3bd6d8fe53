"""Tables written to files: csv, gzipped csv or parquet, by the file's ending."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, BinaryIO

import polars as pl
from polars.io.plugins import register_io_source

from kfhe.display.text import plain
from kfhe.files import standard_output, whole_file
from kfhe.tables.files import check_output
from kfhe.tables.readings import is_text, moments_as_text

FORMULA = r"\A[=+\-@\t\r]"  # how text begins that a spreadsheet may run


def write_table(path: str | os.PathLike[str], rows: pl.DataFrame, *, escape_formulas: bool = False) -> None:
    """Write a data frame of polars to a file, whole or not at all; see `write_batches`."""
    write_batches(path, rows.schema, [rows], escape_formulas=escape_formulas)


def write_batches(
    path: str | os.PathLike[str],
    schema: Mapping[str, pl.DataType],
    batches: Iterable[pl.DataFrame],
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
        for text in csv_texts(schema, batches, escape_formulas):
            stream.write((plain(text) if stream.isatty() else text).encode())  # it can't steer the terminal
        stream.flush()
        return
    with whole_file(path) as file, ExitStack() as stack:
        if str(path).endswith(".parquet"):
            _write_parquet(file, schema, batches)
            return
        if str(path).endswith(".gz"):
            packed: Any = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
            file = stack.enter_context(packed)
        file.writelines(text.encode() for text in csv_texts(schema, batches, escape_formulas))


def csv_texts(
    names: Iterable[str], batches: Iterable[pl.DataFrame], escape_formulas: bool = False
) -> Iterator[str]:
    """Yield the lines of a csv, batch by batch; values are in quotes only where they need them."""
    header = io.StringIO()
    escaped = [re.sub(FORMULA, r"'\g<0>", name) if escape_formulas else name for name in names]
    csv.writer(header, lineterminator="\n").writerow(escaped)
    yield header.getvalue()
    for rows in batches:
        if escape_formulas:
            texts = [column for column, dtype in rows.schema.items() if is_text(dtype)]
            rows = rows.with_columns(pl.col(texts).cast(pl.String).str.replace(FORMULA, "'$0"))
        yield moments_as_text(rows, rows.columns).write_csv(include_header=False)


def _write_parquet(
    file: BinaryIO, schema: Mapping[str, pl.DataType], batches: Iterable[pl.DataFrame]
) -> None:
    def source(*asked: Any) -> Iterator[pl.DataFrame]:
        yield from batches

    try:
        register_io_source(source, schema=dict(schema)).sink_parquet(file)
    except pl.exceptions.ComputeError as error:
        if failed := re.search(r"IO error: (?:\[Errno \d+\] )?(.*?)(?: \(os error \d+\))?$", str(error)):
            raise OSError(failed[1]) from error
        raise
