"""Tables written to files: csv, gzipped csv, parquet or Excel, by the file's ending."""

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

from kfhe.display.text import needed, plain
from kfhe.files import standard_output, whole_file
from kfhe.tables.errors import TableFileError
from kfhe.tables.files import check_output
from kfhe.tables.readings import is_text, moments_as_text

FORMULA = r"\A[=+\-@\t\r]"  # start of text that a spreadsheet may execute
MOST_ROWS = 2**20 - 1  # rows of an Excel sheet below its header
LARGEST = 2**53  # up to here, Excel's numbers, which are doubles, represent every integer
AS_THEY_ARE = dict.fromkeys(("strings_to_formulas", "strings_to_numbers", "strings_to_urls"), False)


def write_table(path: str | os.PathLike[str], rows: pl.DataFrame, *, escape_formulas: bool = False) -> None:
    """Write a data frame of polars to a file, completely or not at all; see `write_batches`."""
    write_batches(path, rows.schema, [rows], escape_formulas=escape_formulas)


def write_batches(
    path: str | os.PathLike[str],
    schema: Mapping[str, pl.DataType],
    batches: Iterable[pl.DataFrame],
    *,
    escape_formulas: bool = False,
) -> None:
    """Write rows to a file in batches; the file appears once all are written.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .csv.gz, .parquet or .xlsx; ``-`` is a csv on standard output.
    schema : mapping of str to DataType
        Names and types of the columns.
    batches : iterable of DataFrame
        The rows.
    escape_formulas : bool, default=False
        Whether to put an apostrophe before text of a csv that a spreadsheet would take for a formula.
    """
    check_output(path)
    if str(path) == "-":
        stream = standard_output()
        for text in csv_texts(schema, batches, escape_formulas):
            stream.write((plain(text) if stream.isatty() else text).encode())  # it can't control the terminal
        stream.flush()
        return
    with whole_file(path) as file, ExitStack() as stack:
        if str(path).endswith(".parquet"):
            _write_parquet(file, schema, batches)
            return
        if str(path).endswith(".xlsx"):
            _write_excel(path, file, schema, batches)
            return
        if str(path).endswith(".gz"):
            packed: Any = gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0)
            file = stack.enter_context(packed)
        file.writelines(text.encode() for text in csv_texts(schema, batches, escape_formulas))


def csv_texts(
    names: Iterable[str], batches: Iterable[pl.DataFrame], escape_formulas: bool = False
) -> Iterator[str]:
    """Yield the lines of a csv, batch by batch; only values that need quotes have them."""
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


def _write_excel(
    path: str | os.PathLike[str],
    file: BinaryIO,
    schema: Mapping[str, pl.DataType],
    batches: Iterable[pl.DataFrame],
) -> None:
    """Write rows to the sheet of a workbook; text stays text, and dates are written as in a csv."""
    with needed("to write Excel files needs xlsxwriter", "excel"):
        from xlsxwriter import Workbook
        from xlsxwriter.exceptions import FileCreateError
    whole, full = io.BytesIO(), None
    try:
        with Workbook(whole, {"constant_memory": True, "nan_inf_to_errors": True, **AS_THEY_ARE}) as book:
            _fill(path, book.add_worksheet(), list(schema), batches)
    except FileCreateError as error:
        full = error.args[0].with_traceback(None)  # frees xlsxwriter's open zip file, which closes it
    if full is not None:
        raise full
    file.write(whole.getbuffer())


def _fill(
    path: str | os.PathLike[str], sheet: Any, names: list[str], batches: Iterable[pl.DataFrame]
) -> None:
    sheet.write_row(0, 0, names)
    n_rows = 0
    for rows in batches:
        if n_rows + len(rows) > MOST_ROWS:
            raise TableFileError(
                f"{path}: an Excel sheet has at most {MOST_ROWS:,} rows below its header; write a csv or "
                "parquet file"
            )
        for values in moments_as_text(rows.fill_nan(None), rows.columns).iter_rows():
            n_rows += 1
            for column, value in enumerate(values):
                is_large = isinstance(value, int) and abs(value) > LARGEST
                if sheet.write(n_rows, column, str(value) if is_large else value):
                    raise TableFileError(
                        f"{path}: row {n_rows + 1}, column {names[column]!r}: too long for a cell of Excel; "
                        "write a csv or parquet file"
                    )
