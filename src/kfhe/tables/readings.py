"""Text that stands for something else: dates, numbers with marks, booleans.

Only unambiguous text is converted. All other text stays text, unless the user says what it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kfhe.display.text import some
from kfhe.tables.dates import MICROSECONDS, in_utc
from kfhe.tables.errors import TableFileError, how_to_fix

if TYPE_CHECKING:
    from polars import DataFrame, DataType, Series

DATES = {"date": "2024-12-31", "day-first": "31.12.2024", "month-first": "12/31/2024"}
NUMBERS = {"decimal-point": "$1,200.50", "decimal-comma": "1.200,50 €"}
TIME, BOOLEAN = "time", "boolean"
READINGS = {**DATES, **NUMBERS, TIME: "18:30", BOOLEAN: "true, no, 1"}  # with examples
CATEGORY, NUMBER = "category", "number"
WHOLE = "whole number"  # type of categories that are too large for floats
KINDS = (CATEGORY, NUMBER, *READINGS)  # types that a user can choose

LONGEST = 100  # characters of a date or a number; patterns are slow on long text of blanks

_CALLED = {**dict.fromkeys(DATES, "dates"), **dict.fromkeys(NUMBERS, "numbers"), TIME: "times"}
_CALLED |= {BOOLEAN: "true or false"}
_BESIDES = {"day-first": " (day first)", "month-first": " (month first)"}
_TRUE, _FALSE = {"true", "t", "yes", "y", "1"}, {"false", "f", "no", "n", "0"}
_MONTHS = "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"
_YEAR, _MONTH, _DAY = r"(?P<year>\d{4}|\d\d)", r"(?P<month>\d{1,2})", r"(?P<day>\d{1,2})"
_NAME = (
    r"(?P<month>(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\.?"
)
_ORDERS = {
    "date": (r"(?P<year>\d{4})", _MONTH, _DAY),
    "day-first": (_DAY, _MONTH, _YEAR),
    "month-first": (_MONTH, _DAY, _YEAR),
}
_WITH_NAMES = {  # of months
    "day-first": rf"{_DAY}(?P<mark>[-/\s]|\.\s?){_NAME}(?:[-/]|,?\s){_YEAR}",
    "month-first": rf"{_NAME}(?P<mark>\s){_DAY},?\s{_YEAR}",
}
_SHORT_YEAR = re.compile(r"\d{1,2}([/.])\d{1,2}\1\d\d(?!\d)", re.ASCII)
_CLOCK = (
    r"(?:(?:T|,?\s+)(?P<hour>\d{1,2})(?P<rest>:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)"
    r"\s*(?P<half>[AaPp][Mm])?\s*(?P<zone>[Zz]|UTC|[+-]\d\d(?::?\d\d)?)?)?"
)
_TIME = r"(?P<hours>[0-9]{1,4}):(?P<minutes>[0-5][0-9])(?::(?P<seconds>[0-5][0-9](?:[.][0-9]{1,9})?))?"
_CURRENCY = (
    r"[$€£¥₹₩₽₺₪₫฿]|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|RUB|SEK|SGD|TRY|USD"
    r"|ZAR"
)


def is_text(dtype: DataType) -> bool:
    """Whether a column of polars is text, in any of its types for text."""
    import polars as pl

    return dtype in (pl.String, pl.Categorical, pl.Enum)


def is_number(dtype: DataType) -> bool:
    """Whether a column is numeric or boolean, or has missing values only."""
    import polars as pl

    return dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)


def is_date(dtype: DataType) -> bool:
    """Whether a column has dates, with or without times."""
    import polars as pl

    return dtype in (pl.Date, pl.Datetime)


def moments_as_text(frame: DataFrame, columns: Collection[str]) -> DataFrame:
    """Convert those of some columns that are dates, times or durations to text."""
    import polars as pl

    def as_text(name: str, dtype: DataType) -> pl.Expr:
        if isinstance(dtype, pl.Datetime):  # a cast would always write six digits of a second
            return pl.col(name).dt.to_string("%F %T%.f" + "%:z" * bool(dtype.time_zone))
        return pl.col(name).dt.to_string("polars") if dtype == pl.Duration else pl.col(name).cast(pl.String)

    return frame.with_columns(
        as_text(name, dtype)
        for name, dtype in frame.schema.items()
        if name in columns and dtype.is_temporal()
    )


class UnreadableError(ValueError):
    """A text does not have the expected format.

    Parameters
    ----------
    position : int
        Position of the text.
    text : str
        The text.
    reading : str
        The expected format.
    """

    def __init__(self, position: int, text: str, reading: str) -> None:
        super().__init__(f"found {text!r}; accepted are {accepted(reading)}, and nothing for a gap")
        self.position, self.text, self.reading = position, text, reading


def accepted(reading: str) -> str:
    """Describe what a format accepts."""
    kind = "dates" if reading in DATES else "numbers" if reading in NUMBERS else "values"
    return f"{kind} such as {READINGS[reading]}"


def read(texts: Sequence[Any], reading: str) -> NDArray[Any]:
    """Convert text to numbers or dates.

    Parameters
    ----------
    texts : sequence of str
        The texts, none missing.
    reading : str
        One of `READINGS`.

    Returns
    -------
    array
        Numbers as float64, dates as datetime64[us] in UTC.

    Raises
    ------
    UnreadableError
        A text has another format.

    Examples
    --------
    >>> from kfhe.tables.readings import read
    >>> read(["$1,200", "-$12"], "decimal-point")
    array([1200.,  -12.])
    >>> read(["31.12.2024 18:30"], "day-first")
    array(['2024-12-31T18:30:00.000000'], dtype='datetime64[us]')
    """
    read_one = _reader(reading)
    values = [read_one(str(text)) for text in texts]
    if None in values:
        position = values.index(None)
        raise UnreadableError(position, str(texts[position]), reading)
    return np.array(values, dtype="M8[us]" if reading in DATES else np.float64)


def recognise(texts: Sequence[str], decimal: str = ".") -> list[str]:
    """Return the formats that fit all distinct texts of a column; none if they are words.

    More than one is ambiguous: the day or the month may be first, or, with two digits, the year may be any of
    three numbers.

    Parameters
    ----------
    texts : sequence of str
        All distinct texts of the column.
    decimal : str
        The decimal mark to try first.

    Examples
    --------
    >>> from kfhe.tables.readings import recognise
    >>> recognise(["05/03/2024", "31/03/2024"])
    ['day-first']
    >>> recognise(["05/03/2024", "06/03/2024"])
    ['day-first', 'month-first']
    >>> recognise(["red", "blue"])
    []
    """
    words = {text.strip().lower() for text in texts}
    if len({*texts}) > 2 and words <= _TRUE | _FALSE and words & _TRUE and words & _FALSE:
        return [BOOLEAN]
    fitting = [reading for reading in (*DATES, TIME) if _fits(texts, reading)]
    if fitting and has_short_years(texts):
        return ["day-first", "month-first"]
    return fitting or numbers_in(texts, decimal)


def has_short_years(texts: Iterable[str]) -> bool:
    """Whether there is a date of three short numbers, any of which may be the year."""
    return any(_SHORT_YEAR.match(text.strip()) for text in texts)


def numbers_in(texts: Sequence[str], decimal: str = ".") -> list[str]:
    """Return the format if all texts are numbers with marks and the same unit; none otherwise."""
    marks = ("decimal-comma", "decimal-point") if decimal == "," else ("decimal-point", "decimal-comma")
    fitting = [reading for reading in marks if _fits(texts, reading)]
    units = {unit for text in texts for unit in re.findall(rf"{_CURRENCY}|%", text)}
    if len(units) > 1:
        return []
    if len(fitting) > 1 and units and units != {"%"}:
        # Three digits follow each mark: in amounts of money these are thousands, whatever the decimal mark
        fitting.sort(key=lambda reading: -float(np.abs(read(texts, reading)).sum()))
    return fitting[:1]


def most_fitting(texts: Sequence[str], readings: Iterable[str]) -> str:
    """Return the format that fits the most texts; among equals, the first."""
    return min(readings, key=lambda reading: len(misfits(texts, reading)))


def misfits(texts: Sequence[str], reading: str) -> list[str]:
    """Return the texts that don't fit a format."""
    read_one = _reader(reading)
    return [text for text in texts if read_one(text) is None]


def _fits(texts: Sequence[str], reading: str) -> bool:
    read_one = _reader(reading)
    return bool(texts) and all(read_one(text) is not None for text in texts)


@cache
def _reader(reading: str) -> Callable[[str], Any]:
    """Return a function that converts a text; it returns None if the text doesn't fit."""
    if reading == BOOLEAN:
        return _boolean
    make: Callable[[re.Match[str]], Any] = (
        _date if reading in DATES else _days if reading == TIME else _number
    )
    patterns = [re.compile(pattern, re.ASCII * (reading in DATES)) for pattern in _patterns(reading)]

    def read_one(text: str) -> Any:
        text = text.strip()
        if len(text) > LONGEST:
            return None
        is_iso = reading == "date" and text[4:5] == "-" == text[7:8] and text[10:11] in ("", "T", " ")
        if is_iso and (moment := _moment(text)):  # much faster than the pattern
            return moment
        for pattern in patterns:
            if match := pattern.fullmatch(text):
                return make(match)
        return None

    return read_one


def _patterns(reading: str) -> list[str]:
    if reading in DATES:
        first, second, third = _ORDERS[reading]
        with_names = [_WITH_NAMES[reading] + _CLOCK] if reading in _WITH_NAMES else []
        return [rf"{first}(?P<mark>[-/.]){second}(?P=mark){third}{_CLOCK}", *with_names]
    if reading == TIME:
        return [_TIME]
    decimal, thousands = (",", ".") if reading == "decimal-comma" else (".", ",")
    return [
        rf"(?P<bracket>\()?(?P<sign>[-+\u2212])?\s*(?:{_CURRENCY})?\s*(?P<inner>[-+\u2212])?"
        rf"(?P<whole>[0-9]{{1,3}}(?:(?P<mark>[{thousands}'\u2019\s])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*)|[0-9]*)"
        rf"(?:[{decimal}](?P<fraction>[0-9]*))?(?P<power>[eE][-+]?[0-9]{{1,3}})?"
        rf"\s*(?:{_CURRENCY}|%)?(?(bracket)\))"
    ]


def _moment(text: str) -> datetime | np.datetime64 | None:
    """Convert a date in ISO 8601 format, to UTC; None if there is no such day or time."""
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else in_utc(moment)
    except ValueError:
        return None


def _date(match: re.Match[str]) -> datetime | np.datetime64 | None:
    year, month, day, hour, half = match.group("year", "month", "day", "hour", "half")
    if len(year) == 2:
        # 24-12-31 starts with the year, and 1.2.24 may be a version number
        padded = len(day) == len(month) == 2
        if month.isdigit() and (match["mark"] == "-" or (match["mark"] == "." and not padded)):
            return None
        year = f"{20 if int(year) < 69 else 19}{year}"  # from 1969 to 2068, as in C and Python
    if not month.isdigit():
        month = str(_MONTHS.index(month[:3].lower()) + 1)
    if hour is None:
        return _moment(f"{year}-{month:0>2}-{day:0>2}")
    if half:
        if not 1 <= int(hour) <= 12:
            return None
        hour = str(int(hour) % 12 + 12 * (half.upper() == "PM"))
    zone = "" if match["zone"] is None else match["zone"].upper().replace("UTC", "Z")
    return _moment(f"{year}-{month:0>2}-{day:0>2}T{hour:0>2}{match['rest']}{zone}")


def _days(match: re.Match[str]) -> float:
    """Convert a time of day, or a duration, to days."""
    hours, minutes, seconds = (float(text or 0) for text in match.group("hours", "minutes", "seconds"))
    return round((hours * 3600 + minutes * 60 + seconds) * 1_000_000) / MICROSECONDS


def _number(match: re.Match[str]) -> float | None:
    found = match.groupdict()
    whole, fraction = re.sub(r"\D", "", found["whole"]), found["fraction"] or ""
    signs = [found[name] for name in ("bracket", "sign", "inner") if found[name]]
    if not whole + fraction or len(signs) > 1:
        return None
    number = float(f"{whole}.{fraction or 0}{found['power'] or ''}")
    if number - number != 0:  # infinite
        return None
    return -number if signs and signs[0] != "+" else number


def _boolean(text: str) -> float | None:
    word = text.strip().lower()
    return 1.0 if word in _TRUE else 0.0 if word in _FALSE else None


def read_texts(
    rows: DataFrame, name: str, first_row: int, read_as: Mapping[str, str], decimal: str | None
) -> tuple[DataFrame, dict[str, str], list[str]]:
    """Convert the text columns that are dates, numbers with marks, or booleans.

    Parameters
    ----------
    rows : DataFrame
        The features.
    name : str
        Name of the table in messages.
    first_row : int
        Number of the first row in messages.
    read_as : mapping of str to str
        For some columns, the type: one of `KINDS`.
    decimal : str or None
        The decimal mark to try first. None: only columns in `read_as` are converted.

    Returns
    -------
    rows : DataFrame
        The converted table.
    readings : dict of str to str
        The formats of the converted columns.
    notes : list of str
        Notes on what was converted, as sentences.
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
    """Convert a column of text to numbers or dates.

    Raises
    ------
    TableFileError
        A text has another format. The message names its row.
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
    """Raise if a column that is not text can't be of the requested type."""
    if kind in (None, CATEGORY):
        return
    if (dtype.is_temporal(), is_number(dtype)) != (kind in (*DATES, TIME), kind not in (*DATES, TIME)):
        raise TableFileError(f"{name}: column {column!r} has type {dtype}; it can't be read as {kind}")


def _fitting(texts: list[str], kind: str | None, decimal: str) -> list[str]:
    """Return the formats of a column of text; several if they are ambiguous, none if it stays text."""
    if kind is None:
        return recognise(texts, decimal)
    if kind == NUMBER:
        return numbers_in(texts, decimal) or [most_fitting(texts, NUMBERS)]
    if kind == "date":
        return [reading for reading in recognise(texts) if reading in DATES] or [most_fitting(texts, DATES)]
    return [kind]


def _doubt(where: str, column: str, texts: list[str], *, asked: bool) -> str:
    """Describe an ambiguous date; raise if dates were requested."""
    why = "no value shows whether the day or the month is first"
    if has_short_years(texts):
        why = "years of two digits are ambiguous"
    unknown = f"{where} may hold dates such as {texts[0]}, but {why}"
    orders = [order for order in _BESIDES if not misfits(texts, order)]
    which = " or ".join(f"--as {quote(f'{column}={order}')}" for order in orders)
    if asked:
        raise TableFileError(f"{unknown}; choose one: {which}")
    return f"{unknown}, so it is treated as categories. To choose: {which}"


def _example(texts: list[str], reading: str) -> str:
    """Return a text that is not a plain number, as an example."""
    if reading not in NUMBERS:
        return ""
    marked = (text for text in texts if re.search(r"[^-+.\d]", text))
    return f' ("{next(marked, texts[0])}")'
