"""The columns of arrays, sparse matrices and data frames, read one at a time.

Prediction needs rows: of sparse matrices, one dense block at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from datetime import date, time, timedelta
from numbers import Integral, Number
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kfhe.tables.dates import Dates, days, from_objects, in_microseconds, span_in_days

Floats = NDArray[np.float64]

LARGEST_EXACT = 2**53  # up to here, floats represent every integer
CELLS_AT_ONCE = 1 << 22  # cells of a block of rows of a sparse matrix: 32 MB
FEW_ROWS = 64  # for so few, libraries take longer to start than to run
NO_WORDS = (Number, date, time, timedelta, np.generic)  # types of objects that are no strings


class Columns(Protocol):
    """A table, column by column."""

    n_rows: int
    n_columns: int
    names: list[str]

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings or categories."""

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers, NaN where a value is missing; times and durations are in days."""

    def dates(self, j: int) -> Dates | None:
        """Return column j as dates, NaT where one is missing; None if it has another type."""

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values; -1 is missing."""


class ArrayColumns:
    """The columns of a two-dimensional array."""

    def __init__(self, X: NDArray[Any], *names: str) -> None:
        self.X = X
        self.n_rows, self.n_columns = X.shape
        self.names = list(names) or [str(j) for j in range(self.n_columns)]

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings."""
        if self.X.dtype.kind == "O":
            return any(isinstance(value, str) for value in self.X[:, j])
        return self.X.dtype.kind in "UST"

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers."""
        column: Any = self.X[:, j]
        if column.dtype.kind == "O":
            column = [np.nan if is_missing(value) else span_in_days(value) for value in column]
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
        present = [value for value in self.X[:, j] if not is_missing(value)]
        dated = bool(present) and all(isinstance(value, date) for value in present)
        return from_objects(self.X[:, j]) if dated else None

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        column = self.X[:, j]
        if column.dtype.kind in "iu":
            return _factorize(column, np.ones(len(column), dtype=bool))
        if self.is_text(j) or (column.dtype.kind == "O" and any(map(is_beyond_floats, column))):
            return _factorize_objects(column.tolist())
        return _factorize_numbers(self.numbers(j))


class SparseColumns:
    """The columns of a sparse matrix; values that are not stored are 0."""

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
        """Return the stored entries of adjacent columns: values, their rows, and where each column starts."""
        starts = self.X.indptr[some.start : some.stop + 1].astype(np.int64)
        entries = slice(starts[0], starts[-1])
        values = np.asarray(self.X.data[entries], dtype=np.float64)
        return values, self.X.indices[entries], starts - starts[0]

    def dates(self, j: int) -> Dates | None:
        """Return nothing: sparse matrices hold numbers only."""
        return None

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        return _factorize_numbers(self.numbers(j))


class FrameColumns:
    """The columns of a data frame of pandas, polars, pyarrow, or another library that narwhals supports."""

    def __init__(self, X: Any) -> None:
        self.X = opened(X)
        self.names = [str(name) for name in self.X.columns]
        self.n_rows, self.n_columns = self.X.shape
        self._columns = list(self.X.iter_columns())
        self._types = list(self.X.schema.values())

    def is_text(self, j: int) -> bool:
        """Whether column j holds strings or categories."""
        import narwhals.stable.v2 as nw

        if (objects := self._objects(j)) is not None:
            return any(not (is_missing(value) or isinstance(value, NO_WORDS)) for value in objects.X[:, 0])
        return self._types[j] in (nw.String, nw.Categorical, nw.Enum)

    def numbers(self, j: int) -> Floats:
        """Return column j as numbers."""
        import narwhals.stable.v2 as nw

        column, dtype = self._columns[j], self._types[j]
        if (objects := self._objects(j)) is not None:
            return objects.numbers(0)
        if dtype == nw.Duration:
            return days(column.to_numpy().astype("m8[us]"))
        if dtype in (nw.Int64, nw.UInt64):  # which Arrow casts to floats only if they can be told apart
            return _to_numbers(column.to_numpy(), self.names[j])
        if dtype.is_numeric() or dtype == nw.Boolean:
            return _to_numbers(column.cast(nw.Float64).to_numpy(), self.names[j])
        if (
            dtype == nw.Unknown and (values := column.to_numpy()).dtype.kind in "biuf"
        ):  # sparse columns of pandas
            return _to_numbers(values, self.names[j])
        if column.is_null().all():
            return np.full(self.n_rows, np.nan)
        native = column.to_native()
        raise _unreadable(self.names[j], getattr(native, "dtype", getattr(native, "type", dtype)))

    def dates(self, j: int) -> Dates | None:
        """Return column j as dates."""
        import narwhals.stable.v2 as nw

        column, dtype = self._columns[j], self._types[j]
        if (objects := self._objects(j)) is not None:
            return objects.dates(0)
        if dtype not in (nw.Date, nw.Datetime):
            return None
        if getattr(dtype, "time_zone", None) is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return in_microseconds(column.to_numpy(), self.names[j])

    def factorize(self, j: int) -> tuple[NDArray[Any], list[Hashable]]:
        """Return column j as positions in a list of distinct values."""
        import narwhals.stable.v2 as nw

        column, dtype = self._columns[j], self._types[j]
        if dtype.is_float() or dtype in (nw.Boolean, nw.Decimal):
            return _factorize_numbers(self.numbers(j))
        if self.n_rows > FEW_ROWS and (dtype.is_integer() or self.is_text(j)) and self._objects(j) is None:
            present = ~column.is_null().to_numpy()
            if dtype.is_integer():
                return _factorize(column.drop_nulls().to_numpy(), present)
            if is_pandas(native := column.to_native()):  # its missing values are slow to replace
                codes, distinct = native.factorize()
                return codes, distinct.tolist()
            values = column.drop_nulls().unique(maintain_order=True).to_list()
            codes = np.full(self.n_rows, -1)
            positions = dict(zip(values, range(len(values)), strict=True))
            if values:
                codes[present] = (
                    column.drop_nulls().replace_strict(positions, return_dtype=nw.Int64).to_numpy()
                )
            return codes, values
        try:
            return _factorize_objects(column.to_list())
        except TypeError as error:
            raise ValueError(
                f"column {self.names[j]!r} has values that can't be categories: {error}"
            ) from None

    def _objects(self, j: int) -> ArrayColumns | None:
        """Return column j as an array if it has objects, whose types must be looked at one by one."""
        import narwhals.stable.v2 as nw

        column = self._columns[j]
        if self._types[j] == nw.Time or getattr(column.to_native(), "dtype", None) == np.dtype(object):
            values = np.empty((self.n_rows, 1), dtype=object)
            values[:, 0] = column.to_list()
            return ArrayColumns(values, self.names[j])
        return None


def is_frame(X: Any) -> bool:
    """Whether X is a data frame that narwhals supports."""
    if isinstance(X, np.ndarray | list | tuple) or is_sparse(X):
        return False
    from narwhals.dependencies import is_into_dataframe

    return bool(is_into_dataframe(X))


def opened(X: Any) -> Any:
    """Return a data frame wrapped by narwhals."""
    import narwhals.stable.v2 as nw

    return nw.from_native(X, eager_only=True)


def open_columns(X: Any) -> Columns:
    """Return the columns of an array, a sparse matrix, or a data frame."""
    if is_sparse(X):
        return SparseColumns(X)
    return FrameColumns(X) if is_frame(X) else ArrayColumns(X)


def _unreadable(name: str, dtype: Any) -> ValueError:
    return ValueError(
        f"column {name!r} has type {dtype}; accepted are numbers, booleans, dates, strings and categories"
    )


def is_missing(value: Any) -> bool:
    """Whether a value is missing: None, NaN, or pandas' NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # comparing pandas.NA with itself gives NA
        return True


def _to_numbers(values: Any, name: str) -> Floats:
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"column {name!r} has values that are not numbers: {error}") from None


def _factorize_objects(values: list[Any]) -> tuple[NDArray[Any], list[Hashable]]:
    positions: dict[Hashable, int] = {}
    codes = [-1 if is_missing(value) else positions.setdefault(value, len(positions)) for value in values]
    return np.array(codes, dtype=np.intp), list(positions)


def _factorize_numbers(numbers: Floats) -> tuple[NDArray[Any], list[Hashable]]:
    present = ~np.isnan(numbers)
    return _factorize(numbers[present], present)


def _factorize(values: NDArray[Any], present: NDArray[np.bool_]) -> tuple[NDArray[Any], list[Hashable]]:
    """Factorize the values that are not missing; integers stay exact, however large."""
    codes = np.full(len(present), -1)
    distinct, codes[present] = np.unique(values, return_inverse=True)
    return codes, distinct.tolist()


def is_beyond_floats(value: Any) -> bool:
    """Whether a value is an integer too large for floats to represent exactly."""
    return isinstance(value, Integral) and abs(int(value)) > LARGEST_EXACT


def some_rows(X: Any, positions: NDArray[Any]) -> Any:
    """Return some rows of a table, or of its labels, in the same container."""
    if type(X).__module__.split(".")[0] == "pyarrow":  # not supported by all versions of scikit-learn
        return X.take(positions)
    if is_bare(X):
        return X[positions]
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, positions)


def is_bare(y: Any) -> bool:
    """Whether labels are an array of pandas without an index, such as series.values of text."""
    return is_pandas(y) and not hasattr(y, "iloc")


def is_pandas(values: Any) -> bool:
    """Whether values are in a container of pandas."""
    return type(values).__module__.split(".")[0] == "pandas"


def is_sparse(X: Any) -> bool:
    """Whether X is a SciPy sparse matrix or array; SciPy is not imported to find out."""
    return type(X).__module__.startswith("scipy.sparse")


def sound(X: Any) -> Any:
    """Return X with valid indices, because compiled code does not check them.

    The result is a new matrix of the same arrays; cached attributes of X are not trusted, and X is unchanged.

    Raises
    ------
    ValueError
        The indices are not those of a matrix.
    """
    if X.format not in ("csr", "csc", "bsr"):  # SciPy checks other formats itself
        return X
    try:
        same = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        same.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is a damaged sparse matrix: {error}") from None
    return same


def by_column(X: Any) -> Any:
    """Return X in csc format, with sorted rows and no duplicate entries; X itself if it is so already."""
    if X.format == "csc" and X.has_canonical_format:
        return X
    # Both conversions keep duplicate entries in order, so that their sums equal those of the dense table.
    columns = X.tocsr().tocsc()
    columns.sum_duplicates()
    return columns


def same_values(X: Any, other: Any) -> bool:
    """Whether two sparse matrices have the same values, however they are stored; NaN equals NaN."""
    if X.shape != other.shape:
        return False
    first, second = by_column(X).copy(), by_column(other).copy()
    first.eliminate_zeros()
    second.eliminate_zeros()
    return (
        np.array_equal(first.indptr, second.indptr)
        and np.array_equal(first.indices, second.indices)
        and np.array_equal(first.data, second.data, equal_nan=True)
    )


@dataclass(frozen=True)
class SparseRows:
    """Rows that are read when needed, one block at a time, as the dense table may not fit into memory.

    Attributes
    ----------
    X : csr matrix or array
        The rows.
    read : callable
        Returns dense rows as numbers.
    """

    X: Any
    read: Callable[[NDArray[Any]], Floats]

    def __len__(self) -> int:
        return int(self.X.shape[0])


def blocks(rows: Floats | SparseRows) -> Iterator[tuple[slice, Floats]]:
    """Yield blocks of rows as numbers, with their positions; dense rows are one block."""
    if not isinstance(rows, SparseRows):
        yield slice(None), rows
        return
    n_rows, n_columns = rows.X.shape
    step = max(1, CELLS_AT_ONCE // n_columns)
    for start in range(0, n_rows, step):
        some = slice(start, min(start + step, n_rows))
        yield some, rows.read(rows.X[some].toarray())
