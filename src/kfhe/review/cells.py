"""Cells of tables of all kinds as text, and digests that identify rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.tables.columns import is_frame, is_missing, is_sparse, opened

MOST_EXACT = 1e12  # integers up to here are written in full, whatever their type
DIGITS = 12  # further digits differ between programs that read a csv


def column_names(X: Any) -> list[str]:
    """Return the names of a table's columns; those of an array are numbers."""
    return [str(name) for name in (opened(X).columns if is_frame(X) else range(X.shape[1]))]


def cells(X: Any, rows: NDArray[np.intp]) -> list[list[Any]]:
    """Return some rows of an array or a data frame as Python values, row by row."""
    if is_frame(X):
        return [list(row) for row in opened(X)[rows].rows()]
    return (X[rows].toarray() if is_sparse(X) else np.asarray(X)[rows]).tolist()


def label_text(label: Any) -> str:
    """Return a label as in decisions and in a csv."""
    return str(label.item() if isinstance(label, np.generic) else label)


def plain_cell(value: Any) -> str:
    """Return a value as text that is the same for csv files, parquet files, and data frames of all kinds.

    Text that looks like a number is normalised, because a column may be text in one table and numeric in
    another.

    Examples
    --------
    >>> from kfhe.review.cells import plain_cell
    >>> [plain_cell(value) for value in ("007", 7.0, True, "True", None, "a b")]
    ['7', '7', 'true', 'true', '', 'a b']
    """
    if is_missing(value):
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

    It starts with a letter, because a spreadsheet would convert some digests to numbers.
    """
    content = "\x1e".join(f"{name}\x1f{plain_cell(value)}" for name, value in zip(names, row, strict=True))
    return "r" + hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:15]


def row_digests(X: Any, rows: NDArray[np.intp]) -> list[str]:
    """Return digests that identify rows in decisions, wherever they are in a table.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
        The table, without its labels.
    rows : int array
        Positions of the rows.

    Returns
    -------
    list of str
        One digest per row, the same for csv files, parquet files and data frames with the same values.

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
