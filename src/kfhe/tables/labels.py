"""Labels: what a target column holds, and what is said of one that can't be learnt."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING, Any

from kfhe.display.text import counted
from kfhe.tables.errors import TableFileError, some
from kfhe.tables.types import is_moment, is_number, is_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from polars import Series


def as_written(column: Series) -> Series:
    """Return names as numbers or booleans if they print like that, so that they come back as written."""
    import polars as pl

    words = column.drop_nulls().unique().to_list()
    for convert, dtype in ((int, pl.Int64), (float, pl.Float64)):
        if words and all(_prints_alike(word, convert) for word in words):
            numbers = column.cast(dtype, strict=False)  # of which there are none for more than 64 bits
            return numbers if numbers.null_count() == column.null_count() else column
    if words and {*words} <= {"True", "False"}:
        return column == "True"
    return column


def without_label(n_rows: int) -> str:
    """Say that so many rows have no label."""
    return f"{counted(n_rows, 'row')} without a label {'is' if n_rows == 1 else 'are'} left out"


def _prints_alike(word: str, convert: Callable[[str], Any]) -> bool:
    try:
        value = convert(word)
    except ValueError:
        return False
    return str(value) == word and value - value == 0  # not so for infinity


def checked_labels(column: Series, called: str, first_row: int) -> NDArray[Any]:
    """Return the values of a target that can be learnt.

    Parameters
    ----------
    column : Series
        The target.
    called : str
        What messages call it.
    first_row : int
        Number of the first row in messages.

    Raises
    ------
    TableFileError
        If there are gaps, values that are no classes, or one class only.
    """
    if column.null_count():
        gaps = column.is_null().arg_true() + first_row
        raise label_gaps([str(row) for row in gaps], len(gaps), called, header=first_row == 2)
    check_classes(column.unique(maintain_order=True), len(column), called)
    return values_of(column)


def notes_on_classes(target: str, counts: dict[str, int]) -> list[str]:
    """Name the classes that may be one, or none: their names differ by capitals and blanks, or are blanks."""
    alike: dict[str, list[str]] = {}
    for label in counts:
        plain = unicodedata.normalize("NFKC", label)
        alike.setdefault(" ".join(plain.casefold().split()), []).append(label)
    blank = alike.pop("", [])
    return [
        f"Target {target!r} has a class of blanks, {label!r} ({counts[label]:,}). If it stands for a gap: "
        f"--na {quote(label)} --drop-unlabelled"
        for label in blank
    ] + [
        f"Target {target!r} has classes that differ by capitals or blanks only, "
        f"{some([f'{label!r} ({counts[label]:,})' for label in labels])}: each is taken for a class of its "
        "own. If they are one, write them alike."
        for labels in alike.values()
        if len(labels) > 1
    ]


def check_classes(values: Series, n_rows: int, called: str) -> None:
    """Raise if the values of a target, each once, are no classes: fractions, too many, or one only."""
    import polars as pl

    dtype = values.dtype
    if not (is_text(dtype) or dtype.is_integer() or dtype.is_float() or dtype == pl.Boolean):
        raise TableFileError(f"{called} has type {dtype}; accepted are text, whole numbers and booleans")
    n_values, fractions = len(values), _are_fractions(values)
    if fractions or (n_values > n_rows / 2 and n_values > 2):
        raise TableFileError(
            f"{called} has {n_values} different values in {n_rows} rows: "
            f"{'fractions' if fractions else 'too many to be classes'}. kfhe learns classes; "
            "choose another column, or make classes of it, such as low, middle and high"
        )
    if n_values == 1:
        raise TableFileError(f"{called} has one class only ({values[0]}); there must be two or more to learn")


def checked_groups(
    column: Series, called: str, row_numbers: NDArray[np.intp], *, header: bool = False
) -> NDArray[Any]:
    """Return the values of a column that tells which rows belong together.

    Parameters
    ----------
    column : Series
        The column.
    called : str
        What messages call it.
    row_numbers : ndarray of int
        Numbers of the rows in messages.
    header : bool
        Whether they count a header.

    Raises
    ------
    TableFileError
        If there are gaps, or values that can't be told apart.
    """
    dtype = column.dtype
    if not (is_text(dtype) or is_number(dtype) or is_moment(dtype)):
        raise TableFileError(
            f"{called} has type {dtype}; accepted are text, numbers, booleans, dates and categories"
        )
    missing = column.is_null() | column.is_nan() if dtype.is_float() else column.is_null()
    gaps = row_numbers[missing.to_numpy()]
    if len(gaps):
        where = _where([str(row) for row in gaps], len(gaps), header=header)
        raise TableFileError(f"{called} has {where}; give a row that belongs to no other a value of its own")
    return values_of(column)


def values_of(column: Series) -> NDArray[Any]:
    """Return labels, or groups, as an array: text as objects."""
    import polars as pl

    return (column.cast(pl.String) if is_text(column.dtype) else column).to_numpy()


def label_gaps(rows: list[str], n_gaps: int, called: str, *, header: bool = False) -> TableFileError:
    """Return an error for labels that are missing: in these rows, and maybe in more."""
    fix = "fill it in, or leave this row out" if n_gaps == 1 else "fill them in, or leave these rows out"
    return TableFileError(
        f"{called} has {_where(rows, n_gaps, header=header)}; {fix}, as kfhe fit, evaluate and "
        "audit do with --drop-unlabelled (empty cells, NA, None and the like are gaps)"
    )


def _where(rows: list[str], n_gaps: int, *, header: bool) -> str:
    """Say how many gaps there are, and where; numbers of rows count the header of a csv."""
    told = " (the header is row 1)" if header else ""
    where = some(rows, n_gaps)
    return f"1 gap, in row {where}{told}" if n_gaps == 1 else f"{n_gaps} gaps, in rows {where}{told}"


def _are_fractions(values: Series) -> bool:
    """Whether labels are numbers that no class would be called by."""
    import polars as pl

    numbers = values.cast(pl.Float64, strict=False)
    return bool((numbers.is_finite() & (numbers != numbers.floor())).any()) and not numbers.has_nulls()
