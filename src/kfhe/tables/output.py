"""Tables written to files: csv, gzipped csv or parquet, by the file's ending."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from kfhe.display.text import plain
from kfhe.files import standard_output, whole_file
from kfhe.tables.errors import TableFileError
from kfhe.tables.types import is_text, value_type

FORMULA = r"\A[=+\-@\t\r]"  # how text begins that a spreadsheet may run
QUOTED = '[",\r\n]'  # what has to be in quotes
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
def open_output(
    path: str | os.PathLike[str], schema: Any, *, escape_formulas: bool = False
) -> Iterator[TableOutput]:
    """Open a table file to be written in pieces; it is there, whole, once all has gone well.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .csv.gz or .parquet; ``-`` is a csv on standard output.
    schema : pyarrow.Schema or list of str
        Names and types of the columns; for a csv the names do.
    escape_formulas : bool, default=False
        Whether text of a csv that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    check_output(path)
    if str(path) == "-":
        stream = standard_output()
        yield CsvOutput(PlainOutput(stream) if stream.isatty() else stream, schema, escape_formulas)
        stream.flush()
        return
    with whole_file(path) as file:
        if str(path).endswith(".parquet"):
            from pyarrow import parquet

            with parquet.ParquetWriter(file, schema) as writer:
                yield writer
        elif str(path).endswith(".gz"):
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield CsvOutput(packed, schema, escape_formulas)
        else:
            yield CsvOutput(file, schema, escape_formulas)


def write_table(path: str | os.PathLike[str], table: Any, *, escape_formulas: bool = False) -> None:
    """Write a pyarrow table to a csv or parquet file, whole or not at all; ``-`` is standard output."""
    with open_output(path, table.schema, escape_formulas=escape_formulas) as output:
        output.write(table)


class CsvOutput:
    """A csv that is being written; values are in quotes only where they need them."""

    def __init__(self, file: Any, schema: Any, escape_formulas: bool = False) -> None:
        self._file: BinaryIO = file
        self._escapes = escape_formulas
        names = getattr(schema, "names", schema)
        if escape_formulas:
            names = [re.sub(FORMULA, r"'\g<0>", name) for name in names]
        header = io.StringIO()
        csv.writer(header, lineterminator="\n").writerow(names)
        file.write(header.getvalue().encode())

    def write(self, table: Any) -> None:
        """Add the rows of a pyarrow table or record batch."""
        self.write_lines(self.lines(table))

    def write_lines(self, lines: Any) -> None:
        """Add rows as they are in the file: bytes."""
        self._file.write(lines)

    def lines(self, table: Any) -> Any:
        """Return the rows of a pyarrow table or record batch as they are in the file."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        if self._escapes:
            table = _without_formulas(table)
        style = "needed" if any(_needs_quotes(column) for column in table.columns) else "none"
        options = arrow_csv.WriteOptions(include_header=False, quoting_style=style)
        buffer = pa.BufferOutputStream()
        arrow_csv.write_csv(table, buffer, options)
        return buffer.getvalue()

    def plain_lines(self, texts: list[str]) -> list[bytes] | None:
        """Return the rows that hold just one of some texts; None if they are not that simple."""
        if any(re.search(QUOTED, text) or "\0" in text for text in texts):
            return None
        if self._escapes:
            texts = [re.sub(FORMULA, r"'\g<0>", text) for text in texts]
        return [f"{text}\n".encode() for text in texts]


class PlainOutput:
    """A terminal that a csv is shown on: it gets text that it can't be steered by."""

    def __init__(self, terminal: BinaryIO) -> None:
        self._terminal = terminal

    def write(self, text: Any) -> None:
        """Show whole lines of UTF-8."""
        self._terminal.write(plain(bytes(text).decode()).encode())


def _without_formulas(table: Any) -> Any:
    """Put an apostrophe in front of each text that a spreadsheet would take for a formula."""
    import pyarrow as pa
    from pyarrow import compute

    columns = []
    for column in table.columns:
        if is_text(column.type):
            text = column.cast(value_type(column.type))
            column = compute.replace_substring_regex(text, FORMULA, r"'\0", max_replacements=1)
        columns.append(column)
    return pa.table(columns, names=table.schema.names)


def _needs_quotes(column: Any) -> bool:
    from pyarrow import compute

    if not is_text(column.type):
        return False
    return bool(compute.any(compute.match_substring_regex(column, QUOTED)).as_py())
