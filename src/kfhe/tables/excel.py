"""An Excel file: the rows of one of its sheets."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import IO, TYPE_CHECKING, Any

import polars as pl
import python_calamine as calamine

from kfhe.display.text import some
from kfhe.tables.csv import GAPS, check_names
from kfhe.tables.errors import TableFileError, did_you_mean, how_to_fix
from kfhe.tables.readings import CATEGORY, NUMBER, WHOLE, is_text, moments_as_text
from kfhe.tables.sheet_size import check_size

if TYPE_CHECKING:
    from kfhe.tables.files import Dialect

ERRORS = ["#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"]  # #N/A is missing anyway


class ExcelTable:
    """A sheet of an Excel file; its first row below any titles is the header."""

    is_text = False

    def __init__(self, name: str, stream: IO[bytes], dialect: Dialect) -> None:
        self.name, self.dialect = name, replace(dialect, decimal=".")
        self.notes: list[str] = []
        self._gaps = {*GAPS, *ERRORS, *dialect.na}
        rows, self.first_row = self._below_titles(*self._rows(stream, dialect.sheet))
        header = [str(_plain(cell)) for cell in rows[0]] if rows else []
        if not any(header):
            raise TableFileError(f"{name}: the sheet is empty; its first row must name the columns")
        self.columns = [column or f"Unnamed: {j}" for j, column in enumerate(header)]
        check_names(name, self.columns)
        while len(rows) > 1 and all(cell == "" for cell in rows[-1]):
            rows.pop()
        if len(rows) == 1:
            raise TableFileError(f"{name}: there are no rows below the header")
        self._cells = dict(zip(self.columns, zip(*rows[1:], strict=True), strict=True))

    def _rows(self, stream: IO[bytes], sheet: str | None) -> tuple[list[list[Any]], int]:
        """Return the rows of a sheet, header first, and the number of the row below it."""
        file = io.BytesIO(stream.read())  # calamine itself rejects .ods files with too many cells
        check_size(self.name, file)
        file.seek(0)
        try:
            book = calamine.CalamineWorkbook.from_filelike(file)
            names = book.sheet_names
            if sheet is not None and sheet not in names:
                near = did_you_mean(sheet, names) or f"; there are {some(names)}"
                raise TableFileError(f"{self.name}: there is no sheet {sheet!r}{near}")
            found = book.get_sheet_by_name(names[0] if sheet is None else sheet)
        except (calamine.CalamineError, OSError) as error:
            if b"opendocument.spreadsheet" in file.getvalue()[:100]:
                raise TableFileError(
                    f"{self.name}: is damaged, or a cell is far away from all others; delete that cell, or "
                    "save the file as csv"
                ) from error
            reason = "it has a password" if isinstance(error, calamine.PasswordError) else str(error)
            raise TableFileError(f"{self.name}: is damaged, or no Excel file: {reason}") from error
        if sheet is None and len(names) > 1:
            self.notes.append(
                f"{self.name}: reading sheet {names[0]!r} of {some(names)}; --sheet selects another"
            )
        return found.to_python(), (found.start or (0, 0))[0] + 2

    def _below_titles(self, rows: list[list[Any]], first_row: int) -> tuple[list[list[Any]], int]:
        """Drop rows above the header: with three columns or more, those with at most one cell."""
        header = next((i for i, row in enumerate(rows) if len(row) < 3 or sum(map(_is_filled, row)) > 1), 0)
        if header:
            self.notes.append(f"{self.name}: the header is row {first_row + header - 1}, below a title")
        return rows[header:], first_row + header

    def read(self, text: Collection[str] = ()) -> pl.DataFrame:
        """Return all rows."""
        return pl.DataFrame({column: self._column(column) for column in self.columns})

    @property
    def truths(self) -> list[str]:
        """Columns of booleans, which may be 1 and 0 in some cells."""
        found = []
        for column in self.columns:
            cells = [cell for cell in self._cells[column] if cell not in self._gaps]
            if any(isinstance(cell, bool) for cell in cells) and all(cell in (0, 1) for cell in cells):
                found.append(column)
        return found

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The types of the columns."""
        return dict(self.read().schema)

    def batches(
        self, kinds: Mapping[str, str], kept: Collection[str] = ()
    ) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield all rows in one batch: some columns with types, and others unchanged."""
        table = self.read()
        rows = table.select(column for column in self.columns if column in kinds)
        rows = moments_as_text(rows, [column for column, kind in kinds.items() if kind == CATEGORY])
        for column, dtype in rows.schema.items():
            if kinds[column] in (NUMBER, WHOLE) and is_text(dtype):
                raise self._no_number(column)
            if kinds[column] == CATEGORY and not is_text(dtype):
                rows = rows.with_columns(self._column(column, as_text=True).alias(column))
        yield rows, table.select(kept)

    def _column(self, column: str, *, as_text: bool = False) -> pl.Series:
        """Return a column in the narrowest type that fits all of its cells."""
        cells = [None if cell in self._gaps else cell for cell in self._cells[column]]
        kinds = {type(cell) for cell in cells if cell is not None}
        if as_text and kinds:
            kinds = {str}
        if kinds == {bool}:
            return pl.Series(cells, dtype=pl.Boolean)
        if kinds <= {bool, int, float}:
            whole = all(cell is None or (cell == int(cell) and abs(cell) < 2**53) for cell in cells)
            convert, dtype = (int, pl.Int64) if whole and kinds else (float, pl.Float64)
            return pl.Series([None if cell is None else convert(cell) for cell in cells], dtype=dtype)
        if kinds == {date}:
            return pl.Series(cells, dtype=pl.Date)
        if kinds <= {date, datetime}:
            return pl.Series(list(map(_moment, cells)), dtype=pl.Datetime)
        if kinds <= {time, timedelta}:
            return pl.Series([None if cell is None else _span(cell) for cell in cells], dtype=pl.Duration)
        return pl.Series([None if cell is None else str(_plain(cell)) for cell in cells], dtype=pl.String)

    def _no_number(self, column: str) -> TableFileError:
        rows = enumerate(self._cells[column], self.first_row)
        row, cell = next(
            (row, cell) for row, cell in rows if isinstance(cell, str) and cell not in self._gaps
        )
        return TableFileError(
            f"{self.name}: column {column!r}, row {row}: found {cell!r}; accepted are numbers, and nothing "
            f"for a gap; {how_to_fix(cell)}"
        )


def _plain(cell: Any) -> Any:
    """Return a cell as it looks in Excel: 12 for 12.0."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _is_filled(cell: Any) -> bool:
    return cell != ""


def _moment(cell: date | None) -> date | None:
    is_day = isinstance(cell, date) and not isinstance(cell, datetime)
    return datetime.combine(cell, time()) if is_day else cell  # type: ignore[arg-type]


def _span(cell: time | timedelta) -> timedelta:
    if isinstance(cell, timedelta):
        return cell
    return timedelta(hours=cell.hour, minutes=cell.minute, seconds=cell.second, microseconds=cell.microsecond)
