"""Features: what trees split on.

A column of numbers or categories is one; a date is several, and so are categories that stand for shares of
classes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.tables.columns import Columns
from kfhe.tables.dates import Dates, days, part, varying_parts
from kfhe.tables.readings import DATES, UnreadableError, accepted, read
from kfhe.target_encoding import TargetEncoding

Floats = NDArray[np.float64]

ENCODED = "target encoding"  # how categories are read that stand for shares of classes,
LEFT_OUT = "left out"  # and those that say nothing of them


@dataclass(frozen=True)
class Rule:
    """How a column is read that is not just numbers or categories.

    Attributes
    ----------
    reading : str
        How its text is read, if it comes as text: one of `kfhe.tables.readings.READINGS`; or `ENCODED` or
        `LEFT_OUT`.
    parts : tuple of str
        Of a date, the parts that are features of their own besides the days since 1970; of encoded
        categories, the classes whose shares are features besides the first one.
    """

    reading: str
    parts: tuple[str, ...] = ()

    @property
    def of_dates(self) -> bool:
        """Whether the column holds dates."""
        return self.reading in DATES


Rules = tuple[tuple[int, Rule], ...]  # each with the number of its column
Encodings = dict[int, TargetEncoding]  # by the number of the column


def rules_for(columns: Columns, categorical: NDArray[np.bool_]) -> Rules:
    """Return the rules by which the columns of a training table are read.

    A date has as its parts those that vary: month, weekday and hour.
    """
    rules = []
    for j in np.flatnonzero(~categorical).tolist():
        dates = columns.dates(j)
        if dates is not None:
            rules.append((j, Rule("date", varying_parts(dates))))
    return tuple(rules)


def with_encodings(rules: Rules, left_out: list[int], encoded: list[int], classes: list[str]) -> Rules:
    """Return rules that tell of columns left out, and of those encoded as shares of some classes, too."""
    silent = [(j, Rule(LEFT_OUT)) for j in left_out]
    shares = [(j, Rule(ENCODED, tuple(classes[1:]))) for j in encoded]
    return tuple(sorted([*rules, *silent, *shares], key=lambda rule: rule[0]))


def number_columns(columns: Columns) -> Columns:
    """Return columns of which dates, too, are numbers: days since 1970."""
    rules = [(j, Rule("date")) for j in range(columns.n_columns) if columns.dates(j) is not None]
    return FeatureColumns(columns, tuple(rules)) if rules else columns


def features_of(n_columns: int, rules: Rules) -> list[tuple[int, str]]:
    """Return for each feature its column's number, and which part of a date it is, if it is one."""
    parts = {j: rule.parts for j, rule in rules}
    left_out = {j for j, rule in rules if rule.reading == LEFT_OUT}
    return [(j, part) for j in range(n_columns) if j not in left_out for part in ("", *parts.get(j, ()))]


def feature_name(column: str, part: str) -> str:
    """Return what a feature is called."""
    return f"{column}.{part}" if part else column


class FeatureColumns:
    """The columns of a table by rules: dates and encoded categories become several columns of numbers.

    Parameters
    ----------
    columns : Columns
        The table.
    rules : tuple of (int, Rule)
        How some of the columns are read.
    encodings : dict of int to TargetEncoding
        What categories stand for, where they are encoded.
    values : dict of int to ndarray
        What they become, where that is known: in training each row is encoded by others.

    Attributes
    ----------
    columns : list of int
        For each feature, the column that it comes from.
    """

    def __init__(
        self,
        columns: Columns,
        rules: Rules,
        encodings: Encodings | None = None,
        values: dict[int, Floats] | None = None,
    ) -> None:
        self._table = columns
        self._rules = dict(rules)
        self._encodings, self._values = encodings or {}, dict(values or {})
        features = features_of(columns.n_columns, rules)
        self._parts = [name for _, name in features]
        self._dates: tuple[int, Dates] | None = None  # the last ones: their parts are asked for in turn
        self.columns = [j for j, _ in features]
        self.n_rows, self.n_columns = columns.n_rows, len(features)
        self.names = [feature_name(columns.names[j], name) for j, name in features]

    def is_text(self, k: int) -> bool:
        """Whether feature k holds strings or categories."""
        return self.columns[k] not in self._rules and self._table.is_text(self.columns[k])

    def numbers(self, k: int) -> Floats:
        """Return feature k as numbers, NaN where a value is missing."""
        j = self.columns[k]
        rule = self._rules.get(j)
        if rule is None:
            return self._table.numbers(j)
        if j in self._encodings:
            if j not in self._values:
                self._values = {j: self._encodings[j].encoded(self._table.factorize(j))}
            return np.ascontiguousarray(self._values[j][:, k - self.columns.index(j)])
        if rule.of_dates:
            if self._dates is None or self._dates[0] != j:
                self._dates = j, self._as_dates(j, rule.reading)
            return part(self._dates[1], self._parts[k]) if self._parts[k] else days(self._dates[1])
        return self._read(j, rule.reading) if self._table.is_text(j) else self._table.numbers(j)

    def dates(self, k: int) -> Dates | None:
        """Return nothing: all dates are numbers here."""
        return None

    def factorize(self, k: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return feature k as positions in a list of distinct values, -1 where a value is missing."""
        return self._table.factorize(self.columns[k])

    def _as_dates(self, j: int, reading: str) -> Dates:
        dates = self._table.dates(j)
        if dates is not None:
            return dates
        if self._table.is_text(j):
            return self._read(j, reading)
        if np.isnan(self._table.numbers(j)).all():
            return np.full(self.n_rows, "NaT", dtype="M8[us]")
        raise ValueError(
            f"column {self._table.names[j]!r} holds numbers, but held dates in training; accepted are dates, "
            f"and text such as {DATES[reading]}"
        )

    def _read(self, j: int, reading: str) -> NDArray[Any]:
        """Read a column of text."""
        codes, texts = self._table.factorize(j)
        try:
            values = read(texts, reading)
        except UnreadableError as error:
            row = int((codes == error.position).argmax())
            raise ValueError(
                f"column {self._table.names[j]!r}, row {row}: found {error.text!r}; training had "
                f"{accepted(reading)}. Fix the value, or make it missing"
            ) from None
        missing = "NaT" if values.dtype.kind == "M" else np.nan
        return np.append(values, np.array([missing], dtype=values.dtype))[codes]
