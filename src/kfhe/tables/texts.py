"""Columns of text that stand for something else: recognised, or read as somebody says; and what is said."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import TYPE_CHECKING

from kfhe.tables.errors import TableFileError, how_to_fix, some
from kfhe.tables.readings import (
    BOOLEAN,
    DATES,
    NUMBERS,
    READINGS,
    TIME,
    UnreadableError,
    has_short_years,
    misfits,
    most_fitting,
    numbers_in,
    read,
    recognise,
)
from kfhe.tables.types import is_moment, is_number, is_text, moments_as_text

if TYPE_CHECKING:
    from polars import DataFrame, DataType, Series

CATEGORY, NUMBER = "category", "number"
KINDS = (CATEGORY, NUMBER, *READINGS)  # what a column can be read as
_CALLED = {**dict.fromkeys(DATES, "dates"), **dict.fromkeys(NUMBERS, "numbers"), TIME: "times"}
_CALLED |= {BOOLEAN: "true or false"}
_BESIDES = {"day-first": " (day first)", "month-first": " (month first)"}


def check_kinds(read_as: Mapping[str, str]) -> None:
    """Raise if a column is to be read as something that there is not."""
    for column, kind in read_as.items():
        if kind not in KINDS:
            raise TableFileError(
                f"column {column!r} can't be read as {kind!r}; accepted are {', '.join(KINDS)}"
            )


def read_texts(
    rows: DataFrame, name: str, first_row: int, read_as: Mapping[str, str], decimal: str | None
) -> tuple[DataFrame, dict[str, str], list[str]]:
    """Read the columns of text that are dates, numbers with marks, or true and false.

    Parameters
    ----------
    rows : DataFrame
        The features.
    name : str
        What messages call the table.
    first_row : int
        Number of the first row in messages.
    read_as : mapping of str to str
        For some columns, what they are read as: one of `KINDS`.
    decimal : str or None
        The decimal mark that is tried first. None: text is text unless `read_as` says otherwise.

    Returns
    -------
    rows : DataFrame
        The table.
    readings : dict of str to str
        How the columns were read that were text.
    notes : list of str
        What was read as what, in sentences.
    """
    rows = moments_as_text(rows, [column for column, kind in read_as.items() if kind == CATEGORY])
    readings: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    doubts = []
    for column, dtype in rows.schema.items():
        kind = read_as.get(column)
        if kind == CATEGORY or not is_text(dtype) or (kind is None and decimal is None):
            check_type(column, dtype, kind, name)
            continue
        where = f"{name}: column {column!r}"
        texts = rows[column].drop_nulls().unique(maintain_order=True).to_list()
        fitting = _fitting(texts, kind, decimal or ".")
        if len(fitting) > 1:
            doubts.append(_doubt(where, column, texts, asked=kind is not None))
        elif fitting:
            readings[column] = fitting[0]
            rows = rows.with_columns(converted(rows[column], fitting[0], where, first_row))
            besides = _BESIDES.get(fitting[0]) or _example(texts, fitting[0])
            found.setdefault(_CALLED[fitting[0]], []).append(column + besides)
    said = "; as ".join(f"{called}: {some(columns)}" for called, columns in found.items())
    notes = [f"{name}: read as {said}. To keep one as text: --as COLUMN=category"] if said else []
    return rows, readings, notes + doubts


def converted(column: Series, reading: str, where: str, first_row: int) -> Series:
    """Return a column of text as numbers or dates.

    Raises
    ------
    TableFileError
        If a text is something else: it is named with its row.
    """
    import polars as pl

    texts = column.drop_nulls().unique(maintain_order=True)
    try:
        values = pl.Series(read(texts.to_list(), reading))
    except UnreadableError as error:
        row = column.eq(error.text).arg_true()[0] + first_row
        raise TableFileError(f"{where}, row {row}: {error}; {how_to_fix(error.text)}") from None
    return column.replace_strict(texts, values, default=None, return_dtype=values.dtype)


def check_type(column: str, dtype: DataType, kind: str | None, name: str) -> None:
    """Raise if a column that is no text can't be what somebody says."""
    if kind in (None, CATEGORY):
        return
    if (is_moment(dtype), is_number(dtype)) != (kind in (*DATES, TIME), kind not in (*DATES, TIME)):
        raise TableFileError(f"{name}: column {column!r} has type {dtype}; it can't be read as {kind}")


def _fitting(texts: list[str], kind: str | None, decimal: str) -> list[str]:
    """Return how a column of text is to be read; more than one way is a doubt, none leaves it text."""
    if kind is None:
        return recognise(texts, decimal)
    if kind == NUMBER:
        return numbers_in(texts, decimal) or [most_fitting(texts, NUMBERS)]
    if kind == "date":
        return [reading for reading in recognise(texts) if reading in DATES] or [most_fitting(texts, DATES)]
    return [kind]


def _doubt(where: str, column: str, texts: list[str], *, asked: bool) -> str:
    """Say that nobody knows which number is the day; that is an error if dates were asked for."""
    why = "no value tells whether the day or the month is first"
    if has_short_years(texts):
        why = "years of two digits leave doubt"
    unknown = f"{where} may hold dates such as {texts[0]}, but {why}"
    orders = [order for order in _BESIDES if not misfits(texts, order)]
    which = " or ".join(f"--as {quote(f'{column}={order}')}" for order in orders)
    if asked:
        raise TableFileError(f"{unknown}; say which: {which}")
    return f"{unknown}, so it is taken for categories. If you know: {which}"


def _example(texts: list[str], reading: str) -> str:
    """Return a text that would not have been a number by itself."""
    if reading not in NUMBERS:
        return ""
    return f' ("{next((text for text in texts if not _is_plain(text)), texts[0])}")'


def _is_plain(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False
