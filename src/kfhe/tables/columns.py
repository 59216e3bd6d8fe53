"""The columns of arrays, sparse matrices, and pandas, polars and pyarrow tables, read one at a time."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import date
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kfhe.tables.dates import MICROSECONDS, Dates, days, from_objects, in_microseconds, span_in_days, too_far
from kfhe.tables.sparse import by_column, is_sparse

Floats = NDArray[np.float64]

READING = b"kfhe reading"  # in the metadata of a pyarrow column: how its text was read
LARGEST_EXACT = 2**53  # up to which floats are whole numbers one by one
FEW_ROWS = 64  # for which pandas takes longer to start than to work


class Columns(Protocol):
    """A table, column by column."""

    n_rows: int
    n_columns: int
    names: list[str]

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings or categories."""

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers, NaN where a value is missing; times and durations are days."""

    def dates(self, j: int) -> Dates | None:
        """Return column j as dates, NaT where one is missing; None if it holds something else."""

    def reading(self, j: int) -> str | None:
        """Return how the text was read that column j was made of, if it was text."""

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
            column = [np.nan if _is_missing(value) else span_in_days(value) for value in column]
        elif column.dtype.kind == "m":
            return days(column.astype("m8[us]"))
        elif column.dtype.kind in "MV":
            raise _unreadable(self.names[j], column.dtype)
        return _to_numbers(column, self.names[j])

    def dates(self, j: int) -> Dates | None:
        """Return column j as dates."""
        if self.X.dtype.kind == "M":
            return in_microseconds(self.X[:, j], self.names[j])
        if self.X.dtype.kind != "O":
            return None
        present = [value for value in self.X[:, j] if not _is_missing(value)]
        dated = bool(present) and all(isinstance(value, date) for value in present)
        return from_objects(self.X[:, j]) if dated else None

    def reading(self, j: int) -> str | None:
        """Return nothing: an array does not know."""
        return None

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        column = self.X[:, j]
        if column.dtype.kind in "iu":
            return _factorize(column, np.ones(len(column), dtype=bool))
        if self.is_text(j) or (column.dtype.kind == "O" and any(map(is_beyond_floats, column))):
            return _factorize_objects(column.tolist())
        return _factorize_numbers(self.numbers(j))


class SparseColumns:
    """The columns of a sparse matrix; what it doesn't store is 0."""

    def __init__(self, X: Any) -> None:
        self.X = by_column(X)
        self.n_rows, self.n_columns = X.shape
        self.names = [str(j) for j in range(self.n_columns)]

    def is_text(self, j: int) -> bool:
        """Sparse matrices hold numbers only."""
        return False

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers."""
        values, rows, _ = self.stored(range(j, j + 1))
        numbers = np.zeros(self.n_rows)
        numbers[rows] = values
        return numbers

    def stored(self, some: range) -> tuple[Floats, NDArray[Any], NDArray[np.int64]]:
        """Return what neighbouring columns store: values, their rows, and where each column starts."""
        starts = self.X.indptr[some.start : some.stop + 1].astype(np.int64)
        entries = slice(starts[0], starts[-1])
        values = np.asarray(self.X.data[entries], dtype=np.float64)
        return values, self.X.indices[entries], starts - starts[0]

    def dates(self, j: int) -> Dates | None:
        """Return nothing: sparse matrices hold numbers only."""
        return None

    def reading(self, j: int) -> str | None:
        """Return nothing: none of it was text."""
        return None

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        return _factorize_numbers(self.numbers(j))


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
        if isinstance(column.dtype, pd.ArrowDtype):
            return self._arrow(j).is_text(0)
        return isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(column.dtype)

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers."""
        import pandas as pd

        column = self.X.iloc[:, j]
        types = pd.api.types
        if types.is_timedelta64_dtype(column.dtype):
            return days(column.to_numpy("m8[us]"))
        readable = types.is_numeric_dtype(column.dtype) or types.is_bool_dtype(column.dtype)
        if isinstance(column.dtype, pd.ArrowDtype) and not readable:
            return self._arrow(j).numbers(0)
        if types.is_complex_dtype(column.dtype) or not (readable or column.dtype == object):
            raise _unreadable(self.names[j], column.dtype)
        if column.dtype == object:
            return _to_numbers(column.where(column.notna(), np.nan).map(span_in_days), self.names[j])
        return _to_numbers(column.to_numpy(dtype=np.float64, na_value=np.nan), self.names[j])

    def dates(self, j: int) -> Dates | None:
        """Return column j as dates."""
        import pandas as pd

        column = self.X.iloc[:, j]
        if column.dtype.kind == "M":
            moments = pd.to_datetime(column, utc=True).dt.tz_localize(None)
            return in_microseconds(moments.to_numpy(), self.names[j])
        if column.dtype.kind == "O" and pd.api.types.infer_dtype(column, skipna=True) in _DATES:
            return from_objects(column.astype(object))
        return None

    def reading(self, j: int) -> str | None:
        """Return nothing: a frame does not know."""
        return None

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

    def _arrow(self, j: int) -> ArrowColumns:
        """Return column j alone, whose values pandas keeps as pyarrow does."""
        import pyarrow as pa

        return ArrowColumns(pa.Table.from_pandas(self.X.iloc[:, [j]], preserve_index=False))


# What pandas calls columns of objects that are numbers, and of others that are no categories either.
_OTHER_OBJECTS = {"integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty", "complex"}
_DATES = {"datetime64", "datetime", "date"}
_OTHER_OBJECTS |= _DATES | {"timedelta64", "timedelta", "time", "period"}


class PolarsColumns:
    """The columns of a polars frame."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n_rows, self.n_columns = X.shape
        self.names = list(X.columns)
        self.dtypes = X.dtypes  # which polars makes anew, for all columns, whenever it is asked

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings or categories."""
        import polars as pl

        return self.dtypes[j] in (pl.String, pl.Categorical, pl.Enum)

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers."""
        import polars as pl

        dtype = self.dtypes[j]
        if dtype in (pl.Duration, pl.Time):
            spans = self.X.to_series(j).cast(pl.Duration("us")).to_numpy()
            return days(spans.astype("m8[us]"))
        if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
            raise _unreadable(self.names[j], dtype)
        return _to_numbers(self.X.to_series(j).cast(pl.Float64).to_numpy(), self.names[j])

    def dates(self, j: int) -> Dates | None:
        """Return column j as dates."""
        import polars as pl

        dtype = self.dtypes[j]
        if dtype not in (pl.Date, pl.Datetime):
            return None
        column = self.X.to_series(j)
        if getattr(dtype, "time_zone", None) is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return in_microseconds(column.to_numpy(), self.names[j])

    def reading(self, j: int) -> str | None:
        """Return nothing: a frame does not know."""
        return None

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        import polars as pl

        if self.dtypes[j].is_integer():
            whole = self.X.to_series(j)
            return _factorize(whole.drop_nulls().to_numpy(), whole.is_not_null().to_numpy())
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
        if types.is_duration(column.type) or types.is_time(column.type):
            to = pa.duration("us") if types.is_duration(column.type) else pa.time64("us")
            spans = column.cast(to, safe=False).cast(pa.int64())
            return _arrow_values(spans.cast(pa.float64(), safe=False).combine_chunks(), np.nan) / MICROSECONDS
        readable = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
        if not any(is_it(column.type) for is_it in readable):
            raise _unreadable(self.names[j], column.type)
        return _arrow_values(column.cast(pa.float64(), safe=False).combine_chunks(), np.nan)

    def dates(self, j: int) -> Dates | None:
        """Return column j as dates."""
        import pyarrow as pa

        column, types = self.X.column(j), pa.types
        if not (types.is_date(column.type) or types.is_timestamp(column.type)):
            return None
        zone = getattr(column.type, "tz", None)
        finer = types.is_timestamp(column.type) and column.type.unit == "ns"
        try:
            moments = column.cast(pa.timestamp("us", zone), safe=not finer)
        except pa.ArrowInvalid:
            raise too_far(self.names[j]) from None
        moments = moments.cast(pa.int64()).combine_chunks()
        return _arrow_values(moments, np.datetime64("NaT").view(np.int64).item()).view("M8[us]")

    def reading(self, j: int) -> str | None:
        """Return how the text was read that column j was made of."""
        found = (self.X.schema.field(j).metadata or {}).get(READING)
        return None if found is None else found.decode()

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        from pyarrow import types

        if not (self.is_text(j) or types.is_integer(self.X.column(j).type)):
            return _factorize_numbers(self.numbers(j))
        encoded = self.X.column(j).dictionary_encode().unify_dictionaries().combine_chunks()
        return _arrow_values(encoded.indices, -1), encoded.dictionary.to_pylist()


def _arrow_values(array: Any, gap: float) -> NDArray[Any]:
    """Return a pyarrow array as it is in memory, with something else for gaps.

    Its to_numpy and fill_null would import pandas, which takes longer than many a table.
    """
    dtype = np.dtype(array.type.to_pandas_dtype())
    if not len(array):
        return np.empty(0, dtype)
    bits, data = array.buffers()
    values = np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)
    if not array.null_count:
        return values
    present = np.unpackbits(np.frombuffer(bits, np.uint8), count=array.offset + len(array), bitorder="little")
    return np.where(present[array.offset :], values, np.asarray(gap))


def open_columns(X: Any) -> Columns:
    """Open an array, a sparse matrix, or a table of pandas, polars or pyarrow."""
    if is_sparse(X):
        return SparseColumns(X)
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
        f"column {name!r} has type {dtype}; accepted are numbers, booleans, dates, strings and categories"
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
    return np.array(codes, dtype=np.intp), list(positions)


def _factorize_numbers(numbers: Floats) -> tuple[NDArray[Any], list[Hashable]]:
    present = ~np.isnan(numbers)
    return _factorize(numbers[present], present)


def _factorize(values: NDArray[Any], present: NDArray[np.bool_]) -> tuple[NDArray[Any], list[Hashable]]:
    """Factorize the values of the rows that have one; whole numbers stay whole, however large."""
    codes = np.full(len(present), -1)
    distinct, codes[present] = np.unique(values, return_inverse=True)
    return codes, distinct.tolist()


def is_beyond_floats(value: Any) -> bool:
    """Whether a value is a whole number so large that floats can't tell it from its neighbours."""
    return isinstance(value, Integral) and abs(int(value)) > LARGEST_EXACT


def some_rows(X: Any, positions: NDArray[Any]) -> Any:
    """Return some rows of a table, or of its labels, in the same container."""
    if type(X).__module__.split(".")[0] == "pyarrow":  # not all versions of scikit-learn know how
        return X.take(positions)
    if is_bare(X):
        return X[positions]
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, positions)


def is_bare(y: Any) -> bool:
    """Whether labels are an array of pandas without rows' names, such as series.values of text."""
    return type(y).__module__.split(".")[0] == "pandas" and not hasattr(y, "iloc")
