"""Readings: what text stands for if it is not meant as words: dates, numbers with marks, true and false."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.tables.dates import MICROSECONDS, in_utc

DATES = {"date": "2024-12-31", "day-first": "31.12.2024", "month-first": "12/31/2024"}
NUMBERS = {"decimal-point": "$1,200.50", "decimal-comma": "1.200,50 €"}
TIME, BOOLEAN = "time", "boolean"
READINGS = {**DATES, **NUMBERS, TIME: "18:30", BOOLEAN: "true, no, 1"}  # each with what it reads

LONGEST = 100  # letters of a date or a number; patterns take forever to give up on a long text of blanks

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
_TIME = (
    r"(?:(?:T|,?\s+)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<half>[AaPp][Mm])?\s*(?P<zone>[Zz]|UTC|[+-]\d\d:?(?:\d\d)?)?)?"
)
_CURRENCY = (
    r"[$€£¥₹₩₽₺₪₫฿]|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|RUB|SEK|SGD|TRY|USD"
    r"|ZAR"
)


class UnreadableError(ValueError):
    """A text can't be read as it should.

    Parameters
    ----------
    position : int
        Of the text among those that were to be read.
    text : str
        The text.
    reading : str
        How it was to be read.
    """

    def __init__(self, position: int, text: str, reading: str) -> None:
        super().__init__(f"found {text!r}; accepted are {accepted(reading)}, and nothing for a gap")
        self.position, self.text, self.reading = position, text, reading


def accepted(reading: str) -> str:
    """Say what a reading takes."""
    kind = "dates" if reading in DATES else "numbers" if reading in NUMBERS else "values"
    return f"{kind} such as {READINGS[reading]}"


def read(texts: Sequence[Any], reading: str) -> NDArray[Any]:
    """Read texts as numbers, or as dates.

    Parameters
    ----------
    texts : sequence of str
        The texts, none of them missing.
    reading : str
        One of `READINGS`.

    Returns
    -------
    array
        Numbers as float64, dates as datetime64[us] in UTC.

    Raises
    ------
    UnreadableError
        If a text is something else.

    Examples
    --------
    >>> from kfhe.tables.readings import read
    >>> read(["$1,200", "-$12"], "decimal-point")
    array([1200.,  -12.])
    >>> read(["31.12.2024 18:30"], "day-first")
    array(['2024-12-31T18:30:00.000000'], dtype='datetime64[us]')
    """
    read_one = _reader(reading)
    values = [read_one(str(text).strip()) for text in texts]
    if None in values:
        position = values.index(None)
        raise UnreadableError(position, str(texts[position]), reading)
    return np.array(values, dtype="M8[us]" if reading in DATES else np.float64)


def recognise(texts: Sequence[str], decimal: str = ".") -> list[str]:
    """Return the readings that the distinct texts of a column are open to; none if they are words.

    There is doubt if there is more than one: whether the day or the month comes first, or which number is
    the year if it has two digits.

    Parameters
    ----------
    texts : sequence of str
        All different texts of the column.
    decimal : str
        The decimal mark that is tried first.

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
    """Whether a date among some texts has three short numbers, of which any may be the year."""
    return any(_SHORT_YEAR.match(text.strip()) for text in texts)


def numbers_in(texts: Sequence[str], decimal: str = ".") -> list[str]:
    """Return the reading by which texts are numbers with marks, all of the same unit; none if they aren't."""
    marks = ("decimal-comma", "decimal-point") if decimal == "," else ("decimal-point", "decimal-comma")
    fitting = [reading for reading in marks if _fits(texts, reading)]
    units = _units(texts)
    if len(units) > 1:
        return []
    if len(fitting) > 1 and units and units != {"%"}:
        # Three digits behind each mark: of money these are thousands, whatever the decimal mark is elsewhere
        fitting.sort(key=lambda reading: -float(np.abs(read(texts, reading)).sum()))
    return fitting[:1]


def most_fitting(texts: Sequence[str], readings: Iterable[str]) -> str:
    """Return the reading that fits most of some texts; the first one if several do."""
    return min(readings, key=lambda reading: len(misfits(texts, reading)))


def misfits(texts: Sequence[str], reading: str) -> list[str]:
    """Return those of some texts that can't be read so."""
    read_one = _reader(reading)
    return [text for text in texts if read_one(text.strip()) is None]


def _fits(texts: Iterable[str], reading: str) -> bool:
    read_one, found = _reader(reading), False
    for text in texts:
        found = True
        if read_one(text.strip()) is None:
            return False
    return found


def _units(texts: Iterable[str]) -> set[str]:
    """Return the currencies and percent signs in some numbers."""
    return {unit for text in texts for unit in re.findall(rf"{_CURRENCY}|%", text)}


def _reader(reading: str) -> Callable[[str], Any]:
    """Return what reads a text; None is what it makes of a text that is something else."""
    if reading == BOOLEAN:
        return _boolean
    pattern, with_names = _pattern(reading), _pattern_with_names(reading)

    def read_one(text: str) -> Any:
        if len(text) > LONGEST:
            return None
        match = pattern.fullmatch(text) or (with_names and with_names.fullmatch(text))
        return None if match is None else make(match)

    make: Callable[[re.Match[str]], Any] = (
        _date if reading in DATES else _days if reading == TIME else _number
    )
    return read_one if reading != "date" else lambda text: _iso_date(text) or read_one(text)


def _iso_date(text: str) -> datetime | np.datetime64 | None:
    """Read most dates that begin with the year, much faster than by the pattern."""
    if len(text) < 10 or not text[4] == "-" == text[7] or text[10:11] not in ("", "T", " "):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is None else in_utc(moment)
    except ValueError:
        return None


@cache
def _pattern(reading: str) -> re.Pattern[str]:
    if reading in DATES:
        first, second, third = _ORDERS[reading]
        return re.compile(rf"{first}(?P<mark>[-/.]){second}(?P=mark){third}{_TIME}", re.ASCII)
    if reading == TIME:
        return re.compile(
            r"(?P<hours>[0-9]{1,4}):(?P<minutes>[0-5][0-9])(?::(?P<seconds>[0-5][0-9](?:[.][0-9]{1,9})?))?"
        )
    decimal, thousands = (",", ".") if reading == "decimal-comma" else (".", ",")
    return re.compile(
        rf"(?P<bracket>\()?(?P<sign>[-+\u2212])?\s*(?:{_CURRENCY})?\s*(?P<inner>[-+\u2212])?"
        rf"(?P<whole>[0-9]{{1,3}}(?:(?P<mark>[{thousands}'\u2019\s])[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*)|[0-9]*)"
        rf"(?:[{decimal}](?P<fraction>[0-9]*))?(?P<power>[eE][-+]?[0-9]{{1,3}})?"
        rf"\s*(?:{_CURRENCY}|%)?(?(bracket)\))"
    )


@cache
def _pattern_with_names(reading: str) -> re.Pattern[str] | None:
    return re.compile(_WITH_NAMES[reading] + _TIME, re.ASCII) if reading in _WITH_NAMES else None


def _date(match: re.Match[str]) -> datetime | np.datetime64 | None:
    year, month = match.group("year", "month")
    if len(year) == 2 and month.isdigit():
        # 24-12-31 begins with the year, and 1.2.24 may be the number of a version
        padded = len(match["day"]) == len(month) == 2
        if match["mark"] == "-" or (match["mark"] == "." and not padded):
            return None
    try:
        day = datetime(_full_year(year), _month(month), int(match["day"]))
        return day if match["hour"] is None else _at_time(day, match)
    except ValueError:  # there is no such day
        return None


def _full_year(year: str) -> int:
    """Return a year with its century: from 1969 to 2068, as in C and Python."""
    return int(year) + (0 if len(year) == 4 else 2000 if int(year) < 69 else 1900)


def _month(month: str) -> int:
    return int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1


def _at_time(day: datetime, match: re.Match[str]) -> datetime | np.datetime64:
    hour, minute, second = (int(text or 0) for text in match.group("hour", "minute", "second"))
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f"there is no {hour} o'clock")
        hour = hour % 12 + 12 * (match["half"].upper() == "PM")
    fraction = int((match["fraction"] or "0").ljust(6, "0")[:6])
    moment = day.replace(hour=hour, minute=minute, second=second, microsecond=fraction)
    return _to_utc(moment, match["zone"]) if match["zone"] else moment


def _to_utc(moment: datetime, zone: str) -> datetime | np.datetime64:
    if zone.upper() in ("Z", "UTC"):
        return moment
    digits = zone[1:].replace(":", "").ljust(4, "0")
    ahead = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    offset = timezone(-ahead if zone[0] == "-" else ahead)
    return in_utc(moment.replace(tzinfo=offset))


def _days(match: re.Match[str]) -> float:
    """Return a time of day, or a duration, as days."""
    hours, minutes, seconds = (float(text or 0) for text in match.group("hours", "minutes", "seconds"))
    return round((hours * 3600 + minutes * 60 + seconds) * 1_000_000) / MICROSECONDS


def _number(match: re.Match[str]) -> float | None:
    found = match.groupdict()
    whole, fraction = re.sub(r"\D", "", found["whole"]), found["fraction"] or ""
    signs = [found[name] for name in ("bracket", "sign", "inner") if found[name]]
    if not whole + fraction or len(signs) > 1:
        return None
    number = float(f"{whole}.{fraction or 0}{found['power'] or ''}")
    if number - number != 0:  # more than a number can be
        return None
    return -number if signs and signs[0] != "+" else number


def _boolean(text: str) -> float | None:
    word = text.lower()
    return 1.0 if word in _TRUE else 0.0 if word in _FALSE else None
