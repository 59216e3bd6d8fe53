"""Dates as numbers: days since 1970, and the parts of a date that come round again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Dates = NDArray[np.datetime64]  # in microseconds of UTC, NaT where there is none

MICROSECONDS = 86_400_000_000  # of a day


def days(moments: NDArray[Any]) -> Floats:
    """Return dates as days since 1970, or durations as days, the time of day as a fraction."""
    return _numbers(moments, moments.view(np.int64) / MICROSECONDS)


def _month(dates: Dates) -> NDArray[np.int64]:
    return dates.astype("M8[M]").view(np.int64) % 12 + 1


def _weekday(dates: Dates) -> NDArray[np.int64]:
    return (dates.astype("M8[D]").view(np.int64) + 3) % 7  # 1970 began on a Thursday


def _hour(dates: Dates) -> NDArray[np.int64]:
    return dates.astype("M8[h]").view(np.int64) % 24


# January is 1; Monday is 0, as in Python
PARTS: dict[str, Callable[[Dates], NDArray[np.int64]]] = {"month": _month, "weekday": _weekday, "hour": _hour}


def part(dates: Dates, name: str) -> Floats:
    """Return a part of each date, NaN where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.dates import part
    >>> part(np.array(["2024-02-29T18:30", "NaT"], dtype="M8[us]"), "hour")
    array([18., nan])
    """
    return _numbers(dates, PARTS[name](dates))


def varying_parts(dates: Dates) -> tuple[str, ...]:
    """Return the parts in which some dates differ."""
    present = dates[~np.isnat(dates)]
    return tuple(name for name, of in PARTS.items() if len(present) and np.ptp(of(present)) > 0)


def from_objects(values: Iterable[Any]) -> Dates:
    """Return Python's dates, and whatever is none as NaT; those with a time zone are converted to UTC."""
    moments = [_naive(value) if isinstance(value, date) and value == value else None for value in values]
    return np.array(moments, dtype="M8[us]")


def _naive(moment: date) -> date:
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def _numbers(moments: NDArray[Any], values: NDArray[Any]) -> Floats:
    return np.where(np.isnat(moments), np.nan, values)
