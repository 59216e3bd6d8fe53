"""The cells of tables of all kinds, for chosen rows; and digests by which a row is known again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_EXACT = 1e12  # whole numbers up to here are written in full, whatever holds them
DIGITS = 12  # programs that read a csv differ beyond them


def column_names(X: Any) -> list[str]:
    """Return the names of a table's columns; those of an array are numbers."""
    # A pyarrow table's columns are the columns themselves, not their names
    names = X.column_names if hasattr(X, "column_names") else getattr(X, "columns", range(X.shape[1]))
    return [str(name) for name in names]


def cells(X: Any, rows: NDArray[np.intp]) -> list[list[Any]]:
    """Return some rows of an array, a pandas, polars or pyarrow table as Python's values, row by row."""
    kind = type(X).__module__.split(".")[0]
    if kind == "pandas":
        columns = [X.iloc[rows, j].tolist() for j in range(X.shape[1])]
    elif kind == "polars":
        columns = [column.to_list() for column in X[rows]]
    elif kind == "pyarrow":
        columns = [column.to_pylist() for column in X.take(rows).columns]
    else:
        return (X[rows].toarray() if hasattr(X, "toarray") else np.asarray(X)[rows]).tolist()
    return [list(row) for row in zip(*columns, strict=True)]


def is_gap(value: Any) -> bool:
    """Whether a value is missing: None, NaN, or what pandas has for it."""
    if value is None or isinstance(value, str):
        return value is None
    try:
        return not bool(value == value)
    except TypeError:  # pandas.NA
        return True


def label_text(label: Any) -> str:
    """Return a label as it is written in decisions, and in a csv."""
    return str(label.item() if isinstance(label, np.generic) else label)


def plain_cell(value: Any) -> str:
    """Return a value as text that is the same in csv and parquet files, and in tables of all kinds.

    A column that is read as text here may be one of numbers there: 007, 7 and 7.0 are the same.

    Examples
    --------
    >>> from kfhe.review.cells import plain_cell
    >>> [plain_cell(value) for value in ("007", 7.0, True, "True", None, "a b")]
    ['7', '7', 'true', 'true', '', 'a b']
    """
    if is_gap(value):
        return ""
    if isinstance(value, bool | np.bool_) or value in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return str(value).lower()
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)
    if number.is_integer() and abs(number) < MOST_EXACT:
        return str(int(number))
    return f"{number:.{DIGITS}g}"


def digest(names: Sequence[str], row: Sequence[Any]) -> str:
    """Return a short digest of a row.

    It begins with a letter: a spreadsheet would take some others for numbers, and write them otherwise.
    """
    content = "\x1e".join(f"{name}\x1f{plain_cell(value)}" for name, value in zip(names, row, strict=True))
    return "r" + hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:15]


def row_digests(X: Any, rows: NDArray[np.intp]) -> list[str]:
    """Return what rows are known by in decisions, wherever they stand: digests of their cells.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
        The table, without its labels.
    rows : int array
        Positions of the rows.

    Returns
    -------
    list of str
        A digest for each of them, the same for csv files, parquet files and frames that hold the same.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.review import row_digests
    >>> one, other = row_digests(np.array([[1.0, 2.0], [1.0, 3.0]]), np.arange(2))
    >>> one == other
    False
    """
    names = column_names(X)
    return [digest(names, row) for row in cells(X, rows)]
