"""Training tables as bins."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.bins import bin_columns, bin_sparse_columns, columns_of
from kfhe.tables.columns import ArrayColumns, Columns, SparseColumns, open_columns
from kfhe.tables.schema import (
    FeatureColumns,
    Schema,
    encoded,
    infinite_values,
    rules_for,
    with_encodings,
)
from kfhe.target_encoding import Target, TargetEncoding, by_value, encoded_categories, plain

Floats = NDArray[np.float64]

COLUMNS_AT_ONCE = 8  # adjacent columns of an array that are read together
SPARSE_COLUMNS_AT_ONCE = 512


@dataclass(frozen=True)
class BinnedTable:
    """A training table as bins, one byte per value.

    Attributes
    ----------
    schema : Schema
        How the table was read.
    codes : uint8 array of shape (n_columns, n_rows)
        Bin of each value. The last bin of each column is for missing values.
    n_bins : int32 array of shape (n_columns,)
        Number of bins of each column, including the one for missing values.
    categorical : uint8 array of shape (n_columns,)
        1 for categorical columns.
    low, high : arrays of shape (n_columns, 256)
        The smallest and largest value in each bin of the numeric columns.
    left_out : dict of int to int
        Columns that are left out, by number, with their numbers of categories.
    """

    schema: Schema
    codes: NDArray[np.uint8]
    n_bins: NDArray[np.int32]
    categorical: NDArray[np.uint8]
    low: Floats
    high: Floats
    left_out: dict[int, int] = field(default_factory=dict)

    def n_gaps(self, k: int) -> int:
        """Return the number of rows where feature k is missing; 0 if it has several values (not needed)."""
        return int((self.codes[k] == 1).sum()) if self.n_bins[k] == 2 else 0

    def of_column(self, j: int) -> Self:
        """Return a table with the features of one column."""
        some = np.flatnonzero(np.array(self.schema.feature_columns) == j)
        by_feature = ("codes", "n_bins", "categorical", "low", "high")
        return replace(self, **{name: getattr(self, name)[some] for name in by_feature})

    @classmethod
    def from_table(
        cls,
        X: Any,
        categorical_features: Any,
        max_bins: int,
        n_threads: int,
        target: Target | None = None,
    ) -> BinnedTable:
        """Bin the columns of a table; with a target, columns of many categories are encoded by it."""
        columns = open_columns(X)
        categorical = categorical_columns(columns, categorical_features)
        rules = rules_for(columns, categorical)
        factorized = {j: columns.factorize(j) for j in np.flatnonzero(categorical).tolist()}
        names, encodings, values = columns.names, dict[int, TargetEncoding](), dict[int, Floats]()
        left_out: dict[int, int] = {}
        if target is not None:
            counts = {j: target.count(each) for j, each in factorized.items()}
            left_out, fitted = encoded_categories(counts, target.shares)
            encodings = {j: each.encoding for j, each in fitted.items()}
            values = {j: each.values(factorized[j], target.folds) for j, each in fitted.items()}
            rules = with_encodings(rules, [*left_out], [*encodings], target.shares.told_parts)
            categorical = categorical & ~np.isin(np.arange(columns.n_columns), [*left_out, *encodings])
        if rules:
            columns = FeatureColumns(columns, rules, encodings, values)
            categorical = categorical[columns.columns]
            factorized = {k: factorized[j] for k, j in enumerate(columns.columns) if categorical[k]}
        codes = np.empty((columns.n_columns, columns.n_rows), dtype=np.uint8)
        n_bins = np.zeros(columns.n_columns, dtype=np.int32)
        low = np.empty((columns.n_columns, 256))
        high = np.empty((columns.n_columns, 256))
        categories: list[dict[Hashable, int] | None] = [None] * columns.n_columns
        for j in np.flatnonzero(categorical).tolist():
            bins, codes[j] = _bin_categories(factorized[j], max_bins)
            categories[j], n_bins[j] = bins, max(bins.values(), default=-1) + 2
        at_once = max(COLUMNS_AT_ONCE, n_threads)
        at_once = SPARSE_COLUMNS_AT_ONCE if isinstance(columns, SparseColumns) else at_once
        for some in _neighbours(categorical, at_once):
            if isinstance(columns, SparseColumns):
                stored = columns.stored(some)
                found = bin_sparse_columns(*stored, some.start, max_bins, codes, low, high, n_threads)
            else:
                numbers = _read_together(columns, some, n_threads)
                found = bin_columns(numbers, some.start, max_bins, codes, low, high, n_threads)
            if (found < 0).any():
                raise infinite_values(columns.names[some[int(found.argmin())]])
            n_bins[some.start : some.stop] = found + 1
        schema = Schema(names, categories, rules, encodings)
        return cls(schema, codes, n_bins, categorical.astype(np.uint8), low, high, left_out)


def _neighbours(categorical: NDArray[np.bool_], at_once: int) -> Iterator[range]:
    """Yield runs of adjacent numeric columns, to be read together."""
    first = 0
    for j, skipped in enumerate([*categorical.tolist(), True]):
        if (skipped or j - first == at_once) and j > first:
            yield range(first, j)
            first = j
        if skipped:
            first = j + 1


def _read_together(columns: Columns, some: range, n_threads: int) -> Floats:
    if isinstance(columns, ArrayColumns) and columns.X.dtype.kind in "bfiu":
        numbers = columns.X[:, some.start : some.stop]
        if numbers.dtype in (np.float32, np.float64) and numbers.flags.aligned:
            return columns_of(numbers, n_threads)
        return np.ascontiguousarray(numbers.T, dtype=np.float64)
    return np.stack([columns.numbers(j) for j in some])


def _bin_categories(
    factorized: tuple[NDArray[Any], list[Hashable]], max_bins: int
) -> tuple[dict[Hashable, int], NDArray[Any]]:
    """Assign a bin to each category, sorted by value; if there are too many, the rarest share one."""
    bins = category_bins(category_counts(factorized), max_bins)
    return bins, binned_categories(factorized, bins)


def category_counts(factorized: tuple[NDArray[Any], list[Hashable]]) -> dict[Hashable, int]:
    """Return the categories that occur, with their numbers of rows."""
    codes, values = factorized
    counts = np.bincount(codes[codes >= 0], minlength=len(values)).tolist()
    return {plain(value): count for value, count in zip(values, counts, strict=True) if count}


def category_bins(counts: dict[Hashable, int], max_bins: int) -> dict[Hashable, int]:
    """Return the bin of each category; if there are too many, the rarest share one."""
    order = sorted(counts, key=by_value)
    if len(order) <= max_bins:
        return {value: bin for bin, value in enumerate(order)}
    frequent = set(sorted(order, key=lambda value: -counts[value])[: max_bins - 1])
    bins = dict.fromkeys(order, max_bins - 1)
    bins.update({value: bin for bin, value in enumerate(value for value in order if value in frequent)})
    return bins


def binned_categories(
    factorized: tuple[NDArray[Any], list[Hashable]], bins: dict[Hashable, int]
) -> NDArray[Any]:
    """Return the bin of each row; missing values get the last one."""
    found = encoded(factorized, bins)
    return np.where(np.isnan(found), max(bins.values(), default=-1) + 1, found)


def categorical_columns(columns: Columns, categorical_features: Any) -> NDArray[np.bool_]:
    """Turn the parameter ``categorical_features`` into a mask; columns of text are always categorical."""
    n = columns.n_columns
    if categorical_features is None:
        return np.zeros(n, dtype=bool)
    mask = np.array([columns.is_text(j) for j in range(n)], dtype=bool)
    if isinstance(categorical_features, str):  # "from_dtype"
        return mask
    given = np.asarray(categorical_features)
    if given.size == 0:
        return mask
    if given.ndim != 1:
        raise ValueError(f"categorical_features has shape {given.shape}; accepted is a list or a mask")
    if given.dtype.kind == "b":
        if given.shape != (n,):
            raise ValueError(f"categorical_features is a mask of shape {given.shape}; X has {n} columns")
        return mask | given
    if given.dtype.kind in "iu":
        bad = [j for j in given.tolist() if not 0 <= j < n]
        if bad:
            raise ValueError(f"categorical_features has {bad}; accepted are column numbers from 0 to {n - 1}")
        mask[given] = True
        return mask
    unknown = [name for name in given.tolist() if name not in columns.names]
    if unknown:
        raise ValueError(
            f"categorical_features names {unknown}, which X does not have; X has {columns.names}"
        )
    mask[[columns.names.index(name) for name in given.tolist()]] = True
    return mask
