"""Sparse matrices: by column for training, and by dense blocks of rows for trees to walk down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CELLS_AT_ONCE = 1 << 22  # of a block of rows: 32 MB


def is_sparse(X: Any) -> bool:
    """Whether X is one of SciPy's sparse matrices or arrays; SciPy is not loaded to find out."""
    return type(X).__module__.startswith("scipy.sparse")


def sound(X: Any) -> Any:
    """Return X, with indices of which none points outside: compiled code follows them wherever they lead.

    It is a new matrix of the same arrays: what X says of itself is not believed, and X stays as it is.

    Raises
    ------
    ValueError
        If the indices can't be those of a matrix.
    """
    if X.format not in ("csr", "csc", "bsr"):  # SciPy checks the others itself
        return X
    try:
        same = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
        same.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"X is a damaged sparse matrix: {error}") from None
    return same


def by_column(X: Any) -> Any:
    """Return X in the csc format, with rows in order and one entry for each; X itself if it is so already."""
    if X.format == "csc" and X.has_canonical_format:
        return X
    # Both conversions keep entries for the same place in order: their sum is that of the dense table.
    columns = X.tocsr().tocsc()
    columns.sum_duplicates()
    return columns


def same_values(X: Any, other: Any) -> bool:
    """Whether two sparse matrices hold the same values, however they store them; NaN is the same as NaN."""
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
    """Rows that are read when they are needed, a block at a time, as all of them may not fit into memory.

    Attributes
    ----------
    X : csr matrix or array
        The rows.
    read : callable
        Returns dense rows as the numbers that trees take.
    """

    X: Any
    read: Callable[[NDArray[Any]], Floats]

    def __len__(self) -> int:
        return int(self.X.shape[0])


def blocks(rows: Floats | SparseRows) -> Iterator[tuple[slice, Floats]]:
    """Yield rows as numbers, and which ones they are; those that are numbers already are one block."""
    if not isinstance(rows, SparseRows):
        yield slice(None), rows
        return
    n_rows, n_columns = rows.X.shape
    step = max(1, CELLS_AT_ONCE // n_columns)
    for start in range(0, n_rows, step):
        some = slice(start, min(start + step, n_rows))
        yield some, rows.read(rows.X[some].toarray())
