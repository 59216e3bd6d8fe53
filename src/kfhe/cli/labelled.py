"""Tables with a target column, read for training: their features, labels, and what they look like."""

from __future__ import annotations

from collections.abc import Collection
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
    """

    name: str
    target: str
    X: Any
    y: NDArray[Any]
    categorical: list[bool]
    first_row: int
    all_columns: Any

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
            table, name, first_row = file.read(), file.name, file.first_row
        y = _labels(table.column(target), name, target, first_row)
        X = table.drop_columns([target, *(column for column in {*drop} if column != target)])
        if not X.num_columns:
            raise TableFileError(f"{name}: there is no column left to learn from")
        text = [types.is_string(f.type) or types.is_large_string(f.type) for f in X.schema]
        of_categories = [
            is_text or types.is_dictionary(field.type) or field.name in categorical
            for is_text, field in zip(text, X.schema, strict=True)
        ]
        return cls(name, target, X, y, of_categories, first_row, table)

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
            if not is_category or len(column) < MANY_NUMBERS:
                continue
            n_values = len(compute.unique(column.drop_null()))
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


def _labels(column: Any, name: str, target: str, first_row: int) -> NDArray[Any]:
    """Return the target's values, checked."""
    import numpy as np
    from pyarrow import compute, types

    if column.null_count:
        gaps = np.flatnonzero(compute.is_null(column).to_numpy()) + first_row
        rows = _some([str(row) for row in gaps[:SHOWN]], len(gaps))
        header = " (the header is row 1)" if first_row == 2 else ""
        raise TableFileError(
            f"{name}: target {target!r} has {len(gaps)} gaps, in rows {rows}{header}; "
            "fill them in, or leave these rows out"
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
    fractions = types.is_floating(column.type) and bool((labels % 1 != 0).any())  # NaN and inf count as such
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
