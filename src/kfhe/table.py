"""Tables: reading the user's columns, one at a time, and cutting them into bins."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.bins import bin_columns

Floats = NDArray[np.float64]

COLUMNS_AT_ONCE = 8  # neighbours in an array are read together
FEW_ROWS = 64  # for which pandas takes longer to start than to work


class Columns(Protocol):
    """A table, column by column."""

    n_rows: int
    n_columns: int
    names: list[str]

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings or categories."""

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers, NaN where a value is missing."""

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values, -1 where a value is missing."""


class ArrayColumns:
    """The columns of a two-dimensional array."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.X = X
        self.n_rows, self.n_columns = X.shape
        self.names = [str(j) for j in range(self.n_columns)]

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings."""
        if self.X.dtype.kind == "O":
            return any(isinstance(value, str) for value in self.X[:, j])
        return self.X.dtype.kind in "UST"

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers."""
        column: Any = self.X[:, j]
        if column.dtype.kind == "O":
            column = [np.nan if _is_missing(value) else value for value in column]
        elif column.dtype.kind in "mMV":
            raise _unreadable(self.names[j], column.dtype)
        return _to_numbers(column, self.names[j])

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        if not self.is_text(j):
            return _factorize_numbers(self.numbers(j))
        return _factorize_objects(self.X[:, j].tolist())


class PandasColumns:
    """The columns of a pandas frame."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n_rows, self.n_columns = X.shape
        self.names = [str(name) for name in X.columns]

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings or categories."""
        import pandas as pd

        column = self.X.iloc[:, j]
        if column.dtype == object:
            return pd.api.types.infer_dtype(column, skipna=True) not in _OTHER_OBJECTS
        return isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(column.dtype)

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers."""
        import pandas as pd

        column = self.X.iloc[:, j]
        types = pd.api.types
        readable = types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype)
        if types.is_complex_dtype(column.dtype) or not (readable or column.dtype == object):
            raise _unreadable(self.names[j], column.dtype)
        if column.dtype == object:
            return _to_numbers(column.where(column.notna(), np.nan), self.names[j])
        return _to_numbers(column.to_numpy(dtype=np.float64, na_value=np.nan), self.names[j])

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        import pandas as pd

        try:
            if self.n_rows <= FEW_ROWS:
                return _factorize_objects(self.X.iloc[:, j].tolist())
            codes, values = pd.factorize(self.X.iloc[:, j])
        except TypeError as error:
            raise ValueError(
                f"column {self.names[j]!r} has values that can't be categories: {error}"
            ) from None
        return codes, values.tolist()


# What pandas calls columns of objects that are numbers, and of others that are no categories either.
_OTHER_OBJECTS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty", "complex"}
_OTHER_OBJECTS |= {"datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"}


class PolarsColumns:
    """The columns of a polars frame."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n_rows, self.n_columns = X.shape
        self.names = list(X.columns)

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings or categories."""
        import polars as pl

        return self.X.dtypes[j] in (pl.String, pl.Categorical, pl.Enum)

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers."""
        import polars as pl

        dtype = self.X.dtypes[j]
        if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
            raise _unreadable(self.names[j], dtype)
        return _to_numbers(self.X.to_series(j).cast(pl.Float64).to_numpy(), self.names[j])

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        import polars as pl

        if not self.is_text(j):
            return _factorize_numbers(self.numbers(j))
        column = self.X.to_series(j).cast(pl.String)
        values = column.drop_nulls().unique().to_list()
        codes = column.replace_strict(values, list(range(len(values))), default=-1, return_dtype=pl.Int64)
        return codes.to_numpy(), values


class ArrowColumns:
    """The columns of a pyarrow table."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n_rows, self.n_columns = X.shape
        self.names = X.schema.names

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings or categories."""
        from pyarrow import types

        dtype = self.X.column(j).type
        return bool(types.is_string(dtype) or types.is_large_string(dtype) or types.is_dictionary(dtype))

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers."""
        import pyarrow as pa

        column, types = self.X.column(j), pa.types
        readable = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
        if not any(is_it(column.type) for is_it in readable):
            raise _unreadable(self.names[j], column.type)
        return _arrow_values(column.cast(pa.float64(), safe=False).combine_chunks(), np.nan)

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        if not self.is_text(j):
            return _factorize_numbers(self.numbers(j))
        encoded = self.X.column(j).dictionary_encode().unify_dictionaries().combine_chunks()
        return _arrow_values(encoded.indices, -1), encoded.dictionary.to_pylist()


def _arrow_values(array: Any, gap: float) -> NDArray[Any]:
    """Return a pyarrow array as it is in memory; its to_numpy would import pandas, which takes a while."""
    if array.null_count:
        array = array.fill_null(gap)
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


def open_columns(X: Any) -> Columns:
    """Open an array, or a table of pandas, polars or pyarrow."""
    library = type(X).__module__.split(".")[0]
    if library == "pandas":
        return PandasColumns(X)
    if library == "polars":
        return PolarsColumns(X)
    if library == "pyarrow":
        return ArrowColumns(X)
    return ArrayColumns(X)


def _unreadable(name: str, dtype: Any) -> ValueError:
    return ValueError(
        f"column {name!r} has type {dtype}; accepted are numbers, booleans, strings and categories"
    )


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA doesn't even differ from itself
        return True


def _to_numbers(values: Any, name: str) -> Floats:
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"column {name!r} has values that are not numbers: {error}") from None


def _factorize_objects(values: list[Any]) -> tuple[NDArray[Any], list[Hashable]]:
    positions: dict[Hashable, int] = {}
    codes = [-1 if _is_missing(value) else positions.setdefault(value, len(positions)) for value in values]
    return np.array(codes), list(positions)


def _factorize_numbers(numbers: Floats) -> tuple[NDArray[Any], list[Hashable]]:
    present = ~np.isnan(numbers)
    codes = np.full(len(numbers), -1)
    values, codes[present] = np.unique(numbers[present], return_inverse=True)
    return codes, values.tolist()


@dataclass(frozen=True)
class Schema:
    """How a table was read for training, to read other tables alike.

    Attributes
    ----------
    names : list of str
        Names of the columns, for messages.
    categories : list of (dict or None)
        For each categorical column the bin of each category, for others None.
    """

    names: list[str]
    categories: list[dict[Hashable, int] | None]

    def matrix(self, X: Any) -> Floats:
        """Return X as numbers: a category is its bin's number, NaN if it is missing or was never seen."""
        if isinstance(X, np.ndarray) and X.dtype.kind in "bfiu" and not any(self.categories):
            matrix = np.ascontiguousarray(X, dtype=np.float64)
        else:
            columns = open_columns(X)
            matrix = np.empty((columns.n_rows, columns.n_columns))
            for j, categories in enumerate(self.categories):
                matrix[:, j] = (
                    columns.numbers(j) if categories is None else _encode(columns.factorize(j), categories)
                )
        if not np.isfinite([matrix.min(initial=0.0), matrix.max(initial=0.0)]).all():
            infinite = np.isinf(matrix).any(axis=0)
            if infinite.any():
                raise _infinite(self.names[infinite.argmax()])
        return matrix


def _encode(factorized: tuple[NDArray[Any], list[Hashable]], categories: dict[Hashable, int]) -> Floats:
    codes, values = factorized
    bins: Floats = np.array([categories.get(value, np.nan) for value in values] + [np.nan])
    return bins[codes]  # the code of a missing value, -1, picks the last entry


def _infinite(name: str) -> ValueError:
    return ValueError(f"Input X contains infinity in column {name!r}; accepted are finite numbers and NaN")


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
        Number of bins of each column, the one for missing values counted in.
    categorical : uint8 array of shape (n_columns,)
        1 for categorical columns.
    low, high : arrays of shape (n_columns, 256)
        The smallest and largest value in each bin of the numeric columns.
    """

    schema: Schema
    codes: NDArray[np.uint8]
    n_bins: NDArray[np.int32]
    categorical: NDArray[np.uint8]
    low: Floats
    high: Floats

    @classmethod
    def from_table(cls, X: Any, categorical_features: Any, max_bins: int, n_threads: int) -> BinnedTable:
        """Read a table and bin its columns."""
        columns = open_columns(X)
        categorical = categorical_columns(columns, categorical_features)
        codes = np.empty((columns.n_columns, columns.n_rows), dtype=np.uint8)
        n_bins = np.zeros(columns.n_columns, dtype=np.int32)
        low = np.empty((columns.n_columns, 256))
        high = np.empty((columns.n_columns, 256))
        categories: list[dict[Hashable, int] | None] = [None] * columns.n_columns
        for j in np.flatnonzero(categorical).tolist():
            bins, codes[j] = _bin_categories(columns.factorize(j), max_bins)
            categories[j], n_bins[j] = bins, max(bins.values(), default=-1) + 2
        for some in _neighbours(categorical):
            numbers = _read_together(columns, some)
            found = bin_columns(numbers, some.start, max_bins, codes, low, high, n_threads)
            if (found < 0).any():
                raise _infinite(columns.names[some[int(found.argmin())]])
            n_bins[some.start : some.stop] = found + 1
        return cls(Schema(columns.names, categories), codes, n_bins, categorical.astype(np.uint8), low, high)


def _neighbours(categorical: NDArray[np.bool_]) -> Iterator[range]:
    """Yield runs of numeric columns, to be read together."""
    first = 0
    for j, skipped in enumerate([*categorical.tolist(), True]):
        if (skipped or j - first == COLUMNS_AT_ONCE) and j > first:
            yield range(first, j)
            first = j
        if skipped:
            first = j + 1


def _read_together(columns: Columns, some: range) -> Floats:
    if isinstance(columns, ArrayColumns) and columns.X.dtype.kind in "bfiu":
        return np.ascontiguousarray(columns.X[:, some.start : some.stop].T, dtype=np.float64)
    return np.stack([columns.numbers(j) for j in some])


def _bin_categories(
    factorized: tuple[NDArray[Any], list[Hashable]], max_bins: int
) -> tuple[dict[Hashable, int], NDArray[Any]]:
    """Give each category a bin, in the order of their values; the rarest share one if need be."""
    codes, values = factorized[0], [_plain(value) for value in factorized[1]]
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    present = [position for position in range(len(values)) if counts[position]]
    order = sorted(present, key=lambda position: (type(values[position]).__name__, values[position]))
    if len(order) <= max_bins:
        bins = {values[position]: bin for bin, position in enumerate(order)}
    else:
        frequent = sorted(order, key=lambda position: -counts[position])[: max_bins - 1]
        own = [position for position in order if position in set(frequent)]
        bins = dict.fromkeys((values[position] for position in order), max_bins - 1)
        bins.update({values[position]: bin for bin, position in enumerate(own)})
    missing = max(bins.values(), default=-1) + 1
    encoded = _encode(factorized, bins)
    return bins, np.where(np.isnan(encoded), missing, encoded)


def _plain(value: Any) -> Any:
    """Write equal categories alike, whichever container they come from: 1 for 1.0 and for True."""
    if isinstance(value, np.generic):
        value = value.item()
    return (
        int(value) if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()) else value
    )


def categorical_columns(columns: Columns, categorical_features: Any) -> NDArray[np.bool_]:
    """Resolve the parameter ``categorical_features`` to a mask."""
    n = columns.n_columns
    if categorical_features is None:
        return np.zeros(n, dtype=bool)
    if isinstance(categorical_features, str):  # "from_dtype"
        return np.array([columns.is_text(j) for j in range(n)], dtype=bool)
    given = np.asarray(categorical_features)
    mask = np.zeros(n, dtype=bool)
    if given.size == 0:
        return mask
    if given.ndim != 1:
        raise ValueError(f"categorical_features has shape {given.shape}; accepted is a list or a mask")
    if given.dtype.kind == "b":
        if given.shape != (n,):
            raise ValueError(f"categorical_features is a mask of shape {given.shape}; X has {n} columns")
        return given
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
