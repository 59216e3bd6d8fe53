"""The schema: features, types and categories of a training table, for reading other tables alike.

A column of numbers or categories is one feature. A date has several features, and so have encoded categories,
which become class shares.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from kfhe.tables.columns import Columns, SparseRows, is_sparse, open_columns
from kfhe.tables.dates import Dates, days, part, varying_parts
from kfhe.tables.readings import DATES, UnreadableError, accepted, read
from kfhe.target_encoding import TargetEncoding, plain

Floats = NDArray[np.float64]

ENCODED = "target encoding"  # for categories that become class shares,
LEFT_OUT = "left out"  # and those that say nothing about the classes


@dataclass(frozen=True)
class Rule:
    """How to read a column that is not just numbers or categories.

    Attributes
    ----------
    reading : str
        The format of its text, if it is text: one of `kfhe.tables.readings.READINGS`; or `ENCODED` or
        `LEFT_OUT`.
    parts : tuple of str
        For a date, the parts that are features in addition to the days since 1970. For encoded categories,
        the classes whose shares are features in addition to the first one.
    """

    reading: str
    parts: tuple[str, ...] = ()

    @property
    def of_dates(self) -> bool:
        """Whether the column is a date."""
        return self.reading in DATES


Rules = tuple[tuple[int, Rule], ...]  # with the numbers of their columns
Encodings = dict[int, TargetEncoding]  # by number of the column


def rules_for(columns: Columns, categorical: NDArray[np.bool_]) -> Rules:
    """Return the rules for the columns of a training table.

    The parts of a date that vary are features: month, weekday and hour.
    """
    rules = []
    for j in np.flatnonzero(~categorical).tolist():
        dates = columns.dates(j)
        if dates is not None:
            rules.append((j, Rule("date", varying_parts(dates))))
    return tuple(rules)


def with_encodings(rules: Rules, left_out: list[int], encoded: list[int], classes: list[str]) -> Rules:
    """Return rules that also include left out and encoded columns."""
    silent = [(j, Rule(LEFT_OUT)) for j in left_out]
    shares = [(j, Rule(ENCODED, tuple(classes[1:]))) for j in encoded]
    return tuple(sorted([*rules, *silent, *shares], key=lambda rule: rule[0]))


def number_columns(columns: Columns) -> Columns:
    """Return columns in which dates are numbers, too: days since 1970."""
    rules = [(j, Rule("date")) for j in range(columns.n_columns) if columns.dates(j) is not None]
    return FeatureColumns(columns, tuple(rules)) if rules else columns


def features_of(n_columns: int, rules: Rules) -> list[tuple[int, str]]:
    """Return each feature's column number, and the part of a date, if it is one."""
    parts = {j: rule.parts for j, rule in rules}
    left_out = {j for j, rule in rules if rule.reading == LEFT_OUT}
    return [(j, part) for j in range(n_columns) if j not in left_out for part in ("", *parts.get(j, ()))]


def feature_name(column: str, part: str) -> str:
    """Return the name of a feature."""
    return f"{column}.{part}" if part else column


class FeatureColumns:
    """The features of a table; dates and encoded categories have several numeric ones.

    Parameters
    ----------
    columns : Columns
        The table.
    rules : tuple of (int, Rule)
        How to read some of the columns.
    encodings : dict of int to TargetEncoding
        Encodings of categories.
    values : dict of int to ndarray
        The values of encoded categories, if they are known: training rows have cross-fitted ones.

    Attributes
    ----------
    columns : list of int
        For each feature, the number of its column.
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
        self._dates: tuple[int, Dates] | None = None  # a cache, because the parts are read in turn
        self.columns = [j for j, _ in features]
        self.n_rows, self.n_columns = columns.n_rows, len(features)
        self.names = [feature_name(columns.names[j], name) for j, name in features]

    def is_text(self, k: int) -> bool:
        """Whether feature k is categorical."""
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
        """Return None: all dates are numbers here."""
        return None

    def factorize(self, k: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return feature k as positions in a list of distinct values; -1 is missing."""
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
            f"column {self._table.names[j]!r} has numbers, but had dates in training; accepted are dates, "
            f"and text such as {DATES[reading]}"
        )

    def _read(self, j: int, reading: str) -> NDArray[Any]:
        """Convert a column of text."""
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


@dataclass(frozen=True)
class Schema:
    """How a training table was read, in order to read other tables alike.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    categories : list of (dict or None)
        For each feature, the bins of its categories; None for numeric features.
    rules : tuple of (int, Rule)
        How to read columns that are not just numbers or categories, with their column numbers.
    encodings : dict of int to TargetEncoding
        Encodings of columns whose categories become class shares.
    """

    columns: list[str]
    categories: list[dict[Hashable, int] | None]
    rules: Rules = ()
    encodings: Encodings = field(default_factory=dict)

    @classmethod
    def of_columns(
        cls,
        columns: list[str],
        categories: list[dict[Hashable, int] | None],
        rules: Rules = (),
        encodings: Encodings | None = None,
    ) -> Schema:
        """Return the schema of a table with these columns and categories."""
        features = features_of(len(columns), rules)
        of_features = [None if part else categories[j] for j, part in features]
        return cls(columns, of_features, rules, encodings or {})

    def with_readings(self, readings: Mapping[str, str]) -> Schema:
        """Return the schema with the formats of converted text; text in other tables is converted alike."""
        rules = dict(self.rules)
        for j, column in enumerate(self.columns):
            if column in readings:
                rules[j] = replace(rules.get(j, Rule("")), reading=readings[column])
        return replace(self, rules=tuple(sorted(rules.items())))

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only; cached values follow from them."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    @cached_property
    def _features(self) -> list[tuple[int, str]]:
        return features_of(len(self.columns), self.rules)

    @cached_property
    def names(self) -> list[str]:
        """Names of the features; the parts of a date are ``column.month`` and the like."""
        return [feature_name(self.columns[j], part) for j, part in self._features]

    @cached_property
    def feature_columns(self) -> list[int]:
        """For each feature, the number of its column."""
        return [j for j, _ in self._features]

    @property
    def column_categories(self) -> list[dict[Hashable, int] | None]:
        """The categories of each categorical column, whether trees see them or they are encoded."""
        known: list[dict[Hashable, int] | None] = [None] * len(self.columns)
        for k, j in reversed([*enumerate(self.feature_columns)]):
            known[j] = self.categories[k]
        return [
            self.encodings[j].categories if j in self.encodings else {} if j in self.left_out else each
            for j, each in enumerate(known)
        ]

    @cached_property
    def left_out(self) -> frozenset[int]:
        """The numbers of the columns that are left out."""
        return frozenset(j for j, rule in self.rules if rule.reading == LEFT_OUT)

    def shares(self, k: int) -> Floats:
        """Return the value of feature k for each category of its column, and last for all others."""
        j = self.feature_columns[k]
        return self.encodings[j].shares[:, k - self.feature_columns.index(j)]

    def by_column(self, totals: Floats) -> Floats:
        """Add up values of features, which are on the last axis, by column."""
        if not self.rules:
            return totals
        columns = np.zeros((*totals.shape[:-1], len(self.columns)))
        np.add.at(columns.T, self.feature_columns, totals.T)
        return columns

    def rows(self, X: Any) -> Floats | SparseRows:
        """Return X as numbers, or as `LazyRows` if it is sparse."""
        return SparseRows(X.tocsr(), self.matrix) if is_sparse(X) else self.matrix(X)

    def matrix(self, X: Any) -> Floats:
        """Return X as numbers: a category is the number of its bin, NaN if it is missing or unknown."""
        if isinstance(X, np.ndarray) and X.dtype.kind in "bfiu" and not (any(self.categories) or self.rules):
            matrix = np.ascontiguousarray(X, dtype=np.float64)
        else:
            columns = open_columns(X)
            if self.rules:
                columns = FeatureColumns(columns, self.rules, self.encodings)
            matrix = np.empty((columns.n_rows, columns.n_columns))
            for j, categories in enumerate(self.categories):
                if categories is None:
                    matrix[:, j] = _read_numbers(columns, j)
                    continue
                codes, values = columns.factorize(j)
                matrix[:, j] = encoded((codes, values), categories)
                if not any(value in categories for value in values):
                    _warn_of_another_type(self.names[j], values, categories)
        if not np.isfinite([matrix.min(initial=0.0), matrix.max(initial=0.0)]).all():
            infinite = np.isinf(matrix).any(axis=0)
            if infinite.any():
                raise infinite_values(self.names[infinite.argmax()])
        return matrix


def _read_numbers(columns: Columns, j: int) -> Floats:
    """Return a column as numbers; raise if it has other text."""
    try:
        return columns.numbers(j)
    except (TypeError, ValueError):
        if not columns.is_text(j):
            raise
    codes, values = columns.factorize(j)
    numbers = np.full(len(values) + 1, np.nan)
    for position, value in enumerate(values):
        try:
            numbers[position] = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            row = int((codes == position).argmax())
            raise ValueError(
                f"column {columns.names[j]!r}, row {row}: found {value!r}, but training had numbers. Make it "
                "a number, or missing"
            ) from None
    return numbers[codes]


def encoded(factorized: tuple[NDArray[Any], list[Hashable]], categories: dict[Hashable, int]) -> Floats:
    """Return the bin of each row's category; NaN if it is missing or unknown."""
    codes, values = factorized
    bins: Floats = np.array([categories.get(value, np.nan) for value in values] + [np.nan])
    return bins[codes]  # the code of missing values, -1, is the last entry


def _warn_of_another_type(name: str, values: list[Hashable], categories: dict[Hashable, int]) -> None:
    """Warn if no value can be one of the known categories, because text and numbers were mixed up.

    Unknown categories of the right type are normal, and cause no warning.
    """
    texts = {isinstance(category, str) for category in categories}
    if not values or not texts or any(isinstance(value, str) in texts for value in values):
        return
    found, known = plain(values[0]), next(iter(categories))
    warn(
        f"column {name!r} has {_kind(found)} such as {found!r}, but had {_kind(known)} such as {known!r} "
        "in training: none can match, so all are treated as missing. Read the column as it was read for "
        f"training; in pandas, read_csv(..., dtype={{{name!r}: {type(known).__name__}}})",
        stacklevel=2,
    )


def _kind(value: Hashable) -> str:
    return "text" if isinstance(value, str) else "numbers"


def infinite_values(name: str) -> ValueError:
    """Return the error for a column with infinite values."""
    return ValueError(f"Input X contains infinity in column {name!r}; accepted are finite numbers and NaN")
