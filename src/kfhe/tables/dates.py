"""Dates as numbers: days since 1970, and the periodic parts of a date."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Dates = NDArray[np.datetime64]  # microseconds in UTC, NaT if missing

MICROSECONDS = 86_400_000_000  # per day


def days(moments: NDArray[Any]) -> Floats:
    """Return dates as days since 1970, or durations as days, with fractions."""
    return _numbers(moments, moments.view(np.int64) / MICROSECONDS)


def span_in_days(value: Any) -> Any:
    """Convert a duration or a time of day of Python to days; return other values unchanged."""
    if isinstance(value, time):
        value = datetime.combine(datetime.min, value.replace(tzinfo=None)) - datetime.min
    return value / timedelta(days=1) if isinstance(value, timedelta | np.timedelta64) else value


def _month(dates: Dates) -> NDArray[np.int64]:
    return dates.astype("M8[M]").view(np.int64) % 12 + 1


def _weekday(dates: Dates) -> NDArray[np.int64]:
    return (dates.astype("M8[D]").view(np.int64) + 3) % 7  # 1970-01-01 was a Thursday


def _hour(dates: Dates) -> NDArray[np.int64]:
    return dates.astype("M8[h]").view(np.int64) % 24


# January is 1; Monday is 0, as in Python
PARTS: dict[str, Callable[[Dates], NDArray[np.int64]]] = {"month": _month, "weekday": _weekday, "hour": _hour}


def part(dates: Dates, name: str) -> Floats:
    """Return a part of each date, NaN where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.tables.dates import part
    >>> part(np.array(["2024-02-29T18:30", "NaT"], dtype="M8[us]"), "hour")
    array([18., nan])
    """
    return _numbers(dates, PARTS[name](dates))


def varying_parts(dates: Dates) -> tuple[str, ...]:
    """Return the parts that are not the same in all dates."""
    return tuple(name for name, (low, high) in part_ranges(dates).items() if high > low)


def part_ranges(dates: Dates) -> dict[str, tuple[int, int]]:
    """Return the minimum and maximum of each part; empty if there are no dates."""
    present = dates[~np.isnat(dates)]
    values = {name: of(present) for name, of in PARTS.items()} if len(present) else {}
    return {name: (int(each.min()), int(each.max())) for name, each in values.items()}


def from_objects(values: Iterable[Any]) -> Dates:
    """Convert Python's dates, with NaT for other values; those with a time zone are converted to UTC."""
    moments = [_naive(value) if isinstance(value, date) and value == value else None for value in values]
    return np.array(moments, dtype="M8[us]")


def _naive(moment: date) -> date | np.datetime64:
    return in_utc(moment) if isinstance(moment, datetime) and moment.tzinfo is not None else moment


def in_utc(moment: datetime) -> np.datetime64:
    """Convert a datetime with a time zone; in UTC it may be in year 0 or 10,000, unlike in Python."""
    return np.datetime64(moment.replace(tzinfo=None), "us") - np.timedelta64(moment.utcoffset(), "us")


def in_microseconds(moments: NDArray[Any], name: str) -> Dates:
    """Return the dates of a column, whatever its unit.

    Raises
    ------
    ValueError
        A date is too far from 1970 for 64-bit microseconds.
    """
    found: Dates = moments.astype("M8[us]")
    if np.datetime_data(moments.dtype)[0] not in ("ns", "ps", "fs", "as"):  # these have smaller ranges
        beyond = (found.astype(moments.dtype) != moments) & ~np.isnat(moments)
        if beyond.any():
            raise too_far(name)
    return found


def too_far(name: str) -> ValueError:
    """Return the error for a column with dates that don't fit into microseconds."""
    return ValueError(f"column {name!r} has a date that is 292,000 years away; fix it, or make it missing")


def _numbers(moments: NDArray[Any], values: NDArray[Any]) -> Floats:
    return np.where(np.isnat(moments), np.nan, values)
