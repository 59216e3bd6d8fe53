"""Tables with a target column, read for training: their features, labels, and what they look like."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from kfhe.table_files import TableFileError, open_table
from kfhe.table_files.errors import no_column

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MANY_NUMBERS = 20  # different numbers in a target from which on they may be a quantity
SHOWN = 6  # categories, rows and the like that are named one by one
CSV_FIRST_ROW = 2  # below the header
MOST_CATEGORIES = 255  # that a column tells apart
NEARLY_ALL = 0.9  # share of numbers from which on other values look like mistakes


@dataclass(frozen=True)
class LabelledTable:
    """Rows to learn from.

    Attributes
    ----------
    name : str
        The file, as messages call it.
    target : str
        The column that holds the labels.
    X : pyarrow.Table
        The features.
    y : ndarray
        The labels: strings, numbers or booleans, none of them missing.
    categorical : list of bool
        For each feature, whether it holds categories.
    first_row : int
        Number of the first row in messages.
    all_columns : pyarrow.Table
        The table as it was read, with the target and the columns that are left out.
    made_categories : collection of str
        Columns that are categories because somebody said so.
    """

    name: str
    target: str
    X: Any
    y: NDArray[Any]
    categorical: list[bool]
    first_row: int
    all_columns: Any
    made_categories: Collection[str] = ()

    @classmethod
    def read(
        cls, path: Path, target: str, *, categorical: Collection[str] = (), drop: Collection[str] = ()
    ) -> LabelledTable:
        """Read a csv or parquet file.

        Parameters
        ----------
        path : Path
            The file, ``-`` for standard input.
        target : str
            The column to learn.
        categorical : collection of str
            Columns of numbers that are categories; columns of text always are.
        drop : collection of str
            Columns to leave out.

        Raises
        ------
        TableFileError
            If the file can't be read, or its target can't be learnt.
        """
        from pyarrow import types

        with open_table(path) as file:
            for column in (target, *categorical, *drop):
                if column not in file.columns:
                    raise no_column(file.name, column, file.columns)
            name, first_row = file.name, file.first_row
            # What looks like a number in a csv may be a name; in parquet types are certain
            named = {target, *categorical} if first_row == CSV_FIRST_ROW else set()
            table = file.read(named)
        for column in named:
            position = table.column_names.index(column)
            table = table.set_column(position, column, _as_written(table.column(column)))
        y = _labels(table.column(target), name, target, first_row)
        X = table.drop_columns([target, *(column for column in {*drop} if column != target)])
        if not X.num_columns:
            raise TableFileError(f"{name}: there is no column left to learn from")
        text = [types.is_string(f.type) or types.is_large_string(f.type) for f in X.schema]
        of_categories = [
            is_text or types.is_dictionary(field.type) or field.name in categorical
            for is_text, field in zip(text, X.schema, strict=True)
        ]
        return cls(name, target, X, y, of_categories, first_row, table, categorical)

    def frame(self) -> Any:
        """Return the features as a pandas frame."""
        return self.X.to_pandas()

    def class_counts(self) -> dict[str, int]:
        """Return the number of rows of each class."""
        import numpy as np

        classes, counts = np.unique(self.y, return_counts=True)
        return dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True))

    def summary(self) -> Any:
        """Return what was found in each column, as a table for the terminal."""
        from rich.markup import escape
        from rich.table import Table

        shown = Table("column", "type", "values", "gaps")
        for field, is_category in zip(self.X.schema, self.categorical, strict=True):
            column = self.X.column(field.name)
            values = _categories(column) if is_category else _span(column)
            kind = "category" if is_category else "number"
            shown.add_row(escape(field.name), kind, escape(values), str(column.null_count or ""))
        classes = [f"{label} ({count})" for label, count in self.class_counts().items()]
        shown.add_row(escape(self.target), "target", escape(_some(classes, len(classes))), "")
        return shown

    def notes(self) -> list[str]:
        """Return what may be wrong with the table, in sentences."""
        from pyarrow import compute

        notes = []
        for field, is_category in zip(self.X.schema, self.categorical, strict=True):
            column = self.X.column(field.name)
            if field.name.startswith("Unnamed: "):
                notes.append(
                    f"Column {field.name!r} has no name in the header. If it numbers the rows, leave it out: "
                    f"--drop {quote(field.name)}"
                )
            if not is_category or len(column) < MANY_NUMBERS:
                continue
            values = compute.unique(column.drop_null())
            n_values = len(values)
            if n_values > MOST_CATEGORIES:
                notes.append(
                    f"Column {field.name!r} has {n_values} categories; the rarest are taken for one, since a "
                    f"column tells {MOST_CATEGORIES} apart."
                )
            others = _not_numbers(values)
            if field.name not in self.made_categories and 0 < len(others) <= (1 - NEARLY_ALL) * n_values:
                notes.append(
                    f"Column {field.name!r} holds numbers but for {_some(others, len(others))}, so it is "
                    "taken for categories. Mend these cells, or leave them empty, if it is a quantity."
                )
            if n_values > len(column) / 2:
                notes.append(
                    f"Column {field.name!r} has {n_values} categories in {len(column)} rows. If it names the "
                    f"rows, or holds dates or free text, leave it out: --drop {quote(field.name)}"
                )
        n_classes = len(self.class_counts())
        if self.y.dtype.kind in "iuf" and n_classes > MANY_NUMBERS:
            notes.append(
                f"Target {self.target!r} has {n_classes} different numbers: each is taken for a class."
            )
        return notes


def _as_written(column: Any) -> Any:
    """Return names as numbers or booleans if they print like that, so that they come back as written."""
    import pyarrow as pa
    from pyarrow import compute

    words = compute.unique(column.drop_null()).to_pylist()
    for convert, type in ((int, pa.int64()), (float, pa.float64()), (_boolean, pa.bool_())):
        if words and all(_prints_alike(word, convert) for word in words):
            try:
                return column.cast(type)
            except pa.ArrowInvalid:  # more than 64 bits
                return column
    return column


def _prints_alike(word: str, convert: Callable[[str], Any]) -> bool:
    try:
        value = convert(word)
    except ValueError:
        return False
    return str(value) == word and value - value == 0  # not so for infinity


def _boolean(word: str) -> bool:
    return word == "True"


def _not_numbers(values: Any) -> list[str]:
    """Return those of a column's categories that are no numbers."""
    others = []
    for value in map(str, values.to_pylist()):
        try:
            float(value)
        except ValueError:
            others.append(value)
    return others


def _labels(column: Any, name: str, target: str, first_row: int) -> NDArray[Any]:
    """Return the target's values, checked."""
    import numpy as np
    from pyarrow import compute, types

    if column.null_count:
        gaps = np.flatnonzero(compute.is_null(column).to_numpy()) + first_row
        rows = _some([str(row) for row in gaps[:SHOWN]], len(gaps))
        header = " (the header is row 1)" if first_row == 2 else ""
        found = f"1 gap, in row {rows}" if len(gaps) == 1 else f"{len(gaps)} gaps, in rows {rows}"
        raise TableFileError(
            f"{name}: target {target!r} has {found}{header}; fill them in, or leave these rows out "
            "(empty cells, NA, None and the like are gaps)"
        )
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    text = types.is_string(column.type) or types.is_large_string(column.type)
    numeric = types.is_integer(column.type) or types.is_floating(column.type)
    if not (text or numeric or types.is_boolean(column.type)):
        raise TableFileError(
            f"{name}: target {target!r} has type {column.type}; accepted are text, whole numbers and booleans"
        )
    labels: NDArray[np.generic] = column.to_numpy()
    n_values = len(compute.unique(column))
    fractions = _are_fractions(column)
    if fractions or (n_values > len(labels) / 2 and n_values > 2):
        raise TableFileError(
            f"{name}: target {target!r} has {n_values} different values in {len(labels)} rows: "
            f"{'fractions' if fractions else 'too many to be classes'}. kfhe learns classes; "
            "choose another column, or make classes of it, such as low, middle and high"
        )
    if n_values == 1:
        raise TableFileError(
            f"{name}: target {target!r} has one class only ({column[0]}); there must be two or more to learn"
        )
    return labels


def _are_fractions(column: Any) -> bool:
    """Whether labels are numbers that no class would be called by."""
    import numpy as np
    import pyarrow as pa

    try:
        numbers = column.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # words
        return False
    return bool((np.isfinite(numbers) & (numbers != np.floor(numbers))).any())


def _categories(column: Any) -> str:
    from pyarrow import compute

    values = sorted(map(str, compute.unique(column.drop_null()).to_pylist()))
    return f"{len(values)}: {_some(values, len(values))}" if values else ""


def _span(column: Any) -> str:
    from pyarrow import compute, types

    if types.is_boolean(column.type):
        return "false (0), true (1)"
    if types.is_integer(column.type) or types.is_floating(column.type):
        span = compute.min_max(column).as_py()
        return "" if span["min"] is None else f"{span['min']:g} to {span['max']:g}"
    return "" if types.is_null(column.type) else str(column.type)


def _some(words: list[str], total: int) -> str:
    """Join the first few of some words."""
    return ", ".join(words[:SHOWN]) + (f" and {total - SHOWN} more" if total > SHOWN else "")
