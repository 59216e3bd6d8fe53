"""The schema: how a table was read for training, to read other tables alike."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from kfhe.tables.columns import Columns, open_columns
from kfhe.tables.features import LEFT_OUT, Encodings, FeatureColumns, Rule, Rules, feature_name, features_of
from kfhe.tables.sparse import SparseRows, is_sparse
from kfhe.target_encoding import plain

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Schema:
    """How a table was read for training, to read other tables alike.

    Attributes
    ----------
    columns : list of str
        Names of the columns.
    categories : list of (dict or None)
        For each feature that is a set of categories the bin of each, for others None.
    rules : tuple of (int, Rule)
        How columns are read that are not just numbers or categories, each with its column's number.
    encodings : dict of int to TargetEncoding
        What categories stand for, in those columns where they stand for shares of classes.
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
        """Return how to read a table of these columns, by the categories of each."""
        features = features_of(len(columns), rules)
        of_features = [None if part else categories[j] for j, part in features]
        return cls(columns, of_features, rules, encodings or {})

    def with_readings(self, readings: Mapping[str, str]) -> Schema:
        """Return the schema with how columns were read that were text: other tables' text is read alike."""
        rules = dict(self.rules)
        for j, column in enumerate(self.columns):
            if column in readings:
                rules[j] = replace(rules.get(j, Rule("")), reading=readings[column])
        return replace(self, rules=tuple(sorted(rules.items())))

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what is cached follows from them."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    @cached_property
    def _features(self) -> list[tuple[int, str]]:
        return features_of(len(self.columns), self.rules)

    @cached_property
    def names(self) -> list[str]:
        """Names of the features; of a date's, behind the column ``column.month`` and the like."""
        return [feature_name(self.columns[j], part) for j, part in self._features]

    @cached_property
    def feature_columns(self) -> list[int]:
        """For each feature, the number of the column that it comes from."""
        return [j for j, _ in self._features]

    @property
    def column_categories(self) -> list[dict[Hashable, int] | None]:
        """The categories of each column that has any, whether trees see them or what they stand for."""
        known: list[dict[Hashable, int] | None] = [None] * len(self.columns)
        for k, j in reversed([*enumerate(self.feature_columns)]):
            known[j] = self.categories[k]
        return [
            self.encodings[j].categories if j in self.encodings else {} if j in self.left_out else each
            for j, each in enumerate(known)
        ]

    @cached_property
    def left_out(self) -> frozenset[int]:
        """The numbers of the columns whose categories say nothing of the classes."""
        return frozenset(j for j, rule in self.rules if rule.reading == LEFT_OUT)

    def shares(self, k: int) -> Floats:
        """Return what feature k is for each category of its column, in turn, and last for all others."""
        j = self.feature_columns[k]
        return self.encodings[j].shares[:, k - self.feature_columns.index(j)]

    def by_column(self, totals: Floats) -> Floats:
        """Add up what the features have, which the last axis is of, column by column."""
        if not self.rules:
            return totals
        columns = np.zeros((*totals.shape[:-1], len(self.columns)))
        np.add.at(columns.T, self.feature_columns, totals.T)
        return columns

    def rows(self, X: Any) -> Floats | SparseRows:
        """Return X as trees take it: as `matrix` does, or, if it is sparse, to be read block by block."""
        return SparseRows(X.tocsr(), self.matrix) if is_sparse(X) else self.matrix(X)

    def matrix(self, X: Any) -> Floats:
        """Return X as numbers: a category is its bin's number, NaN if it is missing or was never seen."""
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
    """Return a column of numbers; where it holds text, say which is none."""
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
                f"column {columns.names[j]!r}, row {row}: found {value!r}, but training had numbers. Make a "
                "number of it, or make it missing"
            ) from None
    return numbers[codes]


def encoded(factorized: tuple[NDArray[Any], list[Hashable]], categories: dict[Hashable, int]) -> Floats:
    """Return the bin of each row's category, NaN where it has none."""
    codes, values = factorized
    bins: Floats = np.array([categories.get(value, np.nan) for value in values] + [np.nan])
    return bins[codes]  # the code of a missing value, -1, picks the last entry


def _warn_of_another_type(name: str, values: list[Hashable], categories: dict[Hashable, int]) -> None:
    """Warn if values can't be categories of a column: they are numbers where those are text, or vice versa.

    New categories of the right type are ordinary; of these nothing is said.
    """
    texts = {isinstance(category, str) for category in categories}
    if not values or not texts or any(isinstance(value, str) in texts for value in values):
        return
    found, known = plain(values[0]), next(iter(categories))
    warn(
        f"column {name!r} holds {_kind(found)} such as {found!r}, but was {_kind(known)} such as {known!r} "
        "in training: none can match, all are taken for missing. Read the column as it was read for "
        f"training; in pandas, read_csv(..., dtype={{{name!r}: {type(known).__name__}}})",
        stacklevel=2,
    )


def _kind(value: Hashable) -> str:
    return "text" if isinstance(value, str) else "numbers"


def infinite_values(name: str) -> ValueError:
    """Return the error of a column that has them."""
    return ValueError(f"Input X contains infinity in column {name!r}; accepted are finite numbers and NaN")
