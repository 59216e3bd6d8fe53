"""Tables with a target column: features, labels and groups."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kfhe.display.text import counted, some
from kfhe.tables.errors import TableFileError, no_column
from kfhe.tables.files import AS_FOUND, Dialect, TableFile, open_table
from kfhe.tables.readings import BOOLEAN, CATEGORY, is_number, is_text, read_texts

if TYPE_CHECKING:
    import polars as pl

USUAL_TARGET = "class"


@dataclass(frozen=True)
class ColumnRoles:
    """What the columns of a table are for; columns without a role are features.

    Attributes
    ----------
    target : str or None
        The column to predict; None: the one named ``class``, else the last one.
    read_as : mapping of str to str
        Types of columns: "category", "number", "date", "day-first", "month-first", "time" or "boolean". Other
        columns are what they look like, if that is unambiguous.
    drop : collection of str
        Columns to ignore, such as ``id,x_*``; ``*`` matches any characters.
    true : str or None
        The column of the true labels, if the target may be wrong.
    groups : str or None
        The column of groups.
    drop_unlabelled : bool
        Whether to ignore rows without a label, instead of raising an error.
    """

    target: str | None = None
    read_as: Mapping[str, str] = field(default_factory=dict)
    drop: Collection[str] = ()
    true: str | None = None
    groups: str | None = None
    drop_unlabelled: bool = False

    def of(self, columns: list[str], source: str) -> ColumnRoles:
        """Return the roles with all columns named; raise if a column does not exist."""
        target = self.target or (USUAL_TARGET if USUAL_TARGET in columns else columns[-1])
        found = replace(self, target=target, drop=named_columns(self.drop, columns, source))
        for column in (*found.labels, *self.read_as):
            if column not in columns:
                raise no_column(source, column, columns)
        return found

    @property
    def labels(self) -> list[str]:
        """The columns of labels and groups."""
        return [name for name in (self.target, self.true, self.groups) if name is not None]

    @property
    def categories(self) -> set[str]:
        """The columns that `read_as` makes categorical."""
        return {column for column, kind in self.read_as.items() if kind == CATEGORY}

    def features(self, columns: list[str], source: str) -> list[str]:
        """Return the features among a table's columns; raise if there are none."""
        features = [column for column in columns if column not in {*self.labels, *self.drop}]
        if not features:
            raise TableFileError(f"{source}: no columns are left to learn from")
        return features


AS_USUAL = ColumnRoles()


@dataclass(frozen=True)
class LabelledTable:
    """Rows for training.

    Columns of text are categorical, with any number of categories, as are those that `read_as` names;
    booleans are numbers. Numbers are finite or missing. Text in a csv or Excel file that is unambiguously
    dates, numbers such as "$1,200", or booleans is converted.

    Attributes
    ----------
    name : str
        The name of the file in messages.
    roles : ColumnRoles
        The roles of the columns.
    X : DataFrame
        The features.
    y : ndarray
        The labels: strings, numbers or booleans, none missing, of at least two classes.
    categorical : list of bool
        For each feature, whether it is categorical.
    row_numbers : ndarray of int
        Number of each row in messages.
    all_columns : DataFrame
        All columns as they were read.
    true : ndarray or None
        The true labels, if there is a column of them.
    groups : ndarray or None
        The groups, if there is a column of them.
    readings : dict of str to str
        What text columns were read as.
    notes : tuple of str
        Notes on the file, as sentences.
    """

    name: str
    roles: ColumnRoles
    X: pl.DataFrame
    y: NDArray[Any]
    categorical: list[bool]
    row_numbers: NDArray[np.intp]
    all_columns: pl.DataFrame
    true: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    readings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        roles: ColumnRoles = AS_USUAL,
        dialect: Dialect = AS_FOUND,
    ) -> LabelledTable:
        r"""Read a csv, parquet or Excel file.

        Parameters
        ----------
        path : path
            The file, ``-`` for standard input.
        roles : ColumnRoles
            The roles of the columns.
        dialect : Dialect
            How a csv is written; default: detected.

        Returns
        -------
        LabelledTable
            The rows, checked.

        Raises
        ------
        TableFileError
            The file can't be read, or its target is not suitable.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kfhe.tables.labelled import ColumnRoles, LabelledTable
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "pets.csv"
        ...     _ = path.write_text("zip,legs,class\n01,4,cat\n01,2,bird\n02,4,cat\n02,2,bird\n")
        ...     table = LabelledTable.read(path, ColumnRoles(read_as={"zip": "category"}))
        >>> table.X.to_dict(as_series=False)
        {'zip': ['01', '01', '02', '02'], 'legs': [4, 2, 4, 2]}
        >>> table.categorical, table.y.tolist()
        ([True, False], ['cat', 'bird', 'cat', 'bird'])
        """
        with open_table(path, dialect) as file:
            return cls.from_file(file, roles)

    @classmethod
    def from_file(cls, file: TableFile, roles: ColumnRoles) -> LabelledTable:
        """Read an open file; see `read`."""
        known = roles.of(file.columns, file.name)
        # In a csv, what looks like a number may be a name; in parquet types are certain
        names = {*known.labels, *known.categories} if file.is_text else set()
        table = file.read({*names, *known.read_as} if file.is_text else ())
        table = table.with_columns(as_written(table[column]) for column in names)
        found = cls.from_table(
            table, roles, file.name, first_row=file.first_row, decimal=file.dialect.decimal
        )
        flags = {column: BOOLEAN for column in file.truths if column in found.X.columns}
        return replace(found, notes=(*file.notes, *found.notes), readings={**flags, **found.readings})

    @classmethod
    def from_table(
        cls,
        table: pl.DataFrame,
        roles: ColumnRoles,
        name: str,
        *,
        first_row: int = 1,
        decimal: str | None = None,
    ) -> LabelledTable:
        """Validate a data frame; see `read`. Without a decimal mark, text is not interpreted."""
        is_guess, roles = roles.target is None, roles.of(table.columns, name)
        assert roles.target is not None
        called = f"{name}: target {roles.target!r}"
        if is_guess and roles.target != USUAL_TARGET:
            called += f" (the last column, as none is named {USUAL_TARGET!r})"
        X = table.select(roles.features(table.columns, name))
        X, readings, notes = read_texts(X, name, first_row, roles.read_as, decimal)
        check_types(X.schema, name)
        _check_finite(X, name, first_row)
        rows, header = np.arange(len(table)) + first_row, first_row == 2
        if roles.drop_unlabelled and table[roles.target].has_nulls():
            labelled = table[roles.target].is_not_null()
            notes.append(f"{name}: {without_label(int((~labelled).sum()))}")
            rows, table, X = rows[labelled.to_numpy()], table.filter(labelled), X.filter(labelled)
        y = checked_labels(table[roles.target], called, rows, header=header)
        truth = groups = None
        if roles.true is not None:
            called = f"{name}: column {roles.true!r} of true labels"
            truth = checked_labels(table[roles.true], called, rows, header=header)
        if roles.groups is not None:
            called = f"{name}: column {roles.groups!r} of groups"
            groups = checked_groups(table[roles.groups], called, rows, header=header)
            if len({*groups.tolist()}) == 1:
                raise TableFileError(
                    f"{called} has one value only ({groups[0]}); there must be two groups or more, so that "
                    "rows can be judged by what was learnt from others"
                )
        categorical = [is_text(dtype) or column in roles.categories for column, dtype in X.schema.items()]
        return cls(name, roles, X, y, categorical, rows, table, truth, groups, readings, tuple(notes))

    @property
    def target(self) -> str:
        """The column of labels."""
        return str(self.roles.target)

    def class_counts(self) -> dict[str, int]:
        """Return the number of rows of each class."""
        classes, counts = np.unique(self.y, return_counts=True)
        return dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True))

    def check_can_be_split(self) -> None:
        """Raise if a class has a single row, which can't be both in training and in testing."""
        counts = self.class_counts()
        rarest = min(counts, key=counts.__getitem__)
        if counts[rarest] < 2:
            raise TableFileError(
                f"{self.name}: class {rarest!r} has only one row, so it can't be both trained on and tested; "
                "leave the row out, or merge the class with another"
            )


def columns_like(name: str, columns: Iterable[str]) -> list[str]:
    """Return the columns that match a name, in which ``*`` matches any characters."""
    like = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
    return [column for column in columns if like.fullmatch(column)]


def named_columns(names: Collection[str], columns: list[str], source: str) -> list[str]:
    """Return the columns that match names such as ``id`` or ``id,x_*``; raise if a name matches none.

    Examples
    --------
    >>> from kfhe.tables.labelled import named_columns
    >>> named_columns(["id,x_*", "a,b"], ["a,b", "id", "x_1", "x_2", "y"], "table.csv")
    ['id', 'x_1', 'x_2', 'a,b']
    """
    found: dict[str, None] = {}
    for name in (one for given in names for one in ([given] if given in columns else given.split(","))):
        like = columns_like(name, columns)
        if not like:
            raise no_column(source, name, columns)
        found |= dict.fromkeys(like)
    return list(found)


def check_types(schema: Mapping[str, pl.DataType], name: str) -> None:
    """Raise if a column has an unsupported type."""
    for column, dtype in schema.items():
        if not (is_number(dtype) or dtype.is_temporal() or is_text(dtype)):
            raise TableFileError(
                f"{name}: column {column!r} has type {dtype}; accepted are numbers, booleans, dates, text "
                "and categories"
            )


def _check_finite(X: pl.DataFrame, name: str, first_row: int) -> None:
    """Raise if a number is infinite."""
    for column, dtype in X.schema.items():
        if dtype.is_float() and (infinite := X[column].is_infinite()).any():
            raise TableFileError(
                f"{name}: column {column!r}, row {infinite.arg_true()[0] + first_row}: found infinity; "
                "accepted are finite numbers, and nothing for a gap"
            )


def as_written(column: pl.Series) -> pl.Series:
    """Convert names to numbers or booleans if they would be written in the same way."""
    import polars as pl

    words = column.drop_nulls().unique()
    for dtype in (pl.Int64, pl.Float64):
        numbers = words.cast(dtype, strict=False)
        if len(words) and [*map(str, numbers)] == words.to_list() and numbers.is_finite().all():
            return column.cast(dtype)
    return column == "True" if len(words) and words.is_in(["True", "False"]).all() else column


def without_label(n_rows: int) -> str:
    """Return a note on ignored rows."""
    return f"{counted(n_rows, 'row')} without a label {'is' if n_rows == 1 else 'are'} left out"


def checked_labels(
    column: pl.Series, called: str, row_numbers: NDArray[np.intp], *, header: bool
) -> NDArray[Any]:
    """Return the labels; raise if any are missing, or if the values are unsuitable as classes.

    Parameters
    ----------
    column : Series
        The target.
    called : str
        The name of the column in messages.
    row_numbers : ndarray of int
        Numbers of the rows in messages.
    header : bool
        Whether the numbers of rows count a header.
    """
    if column.null_count():
        gaps = row_numbers[column.is_null().to_numpy()]
        raise label_gaps([str(row) for row in gaps], len(gaps), called, header=header)
    check_classes(column.unique(maintain_order=True), len(column), called)
    return values_of(column)


def check_classes(values: pl.Series, n_rows: int, called: str) -> None:
    """Raise if the distinct values of a target are unsuitable: fractions, too many, or a single one."""
    import polars as pl

    dtype = values.dtype
    if not (is_text(dtype) or dtype.is_integer() or dtype.is_float() or dtype == pl.Boolean):
        raise TableFileError(f"{called} has type {dtype}; accepted are text, whole numbers and booleans")
    numbers = values.cast(pl.Float64, strict=False)
    fractions = not numbers.has_nulls() and (numbers.is_finite() & (numbers != numbers.floor())).any()
    n_values = len(values)
    if fractions or (n_values > n_rows / 2 and n_values > 2):
        raise TableFileError(
            f"{called} has {n_values} different values in {n_rows} rows: "
            f"{'fractions' if fractions else 'too many to be classes'}. kfhe predicts classes; "
            "choose another column, or turn it into classes, such as low, middle and high"
        )
    if n_values == 1:
        raise TableFileError(f"{called} has one class only ({values[0]}); at least two are needed")


def checked_groups(
    column: pl.Series, called: str, row_numbers: NDArray[np.intp], *, header: bool = False
) -> NDArray[Any]:
    """Return the groups of rows; raise if any are missing or of an unsupported type.

    The parameters are those of `checked_labels`.
    """
    dtype = column.dtype
    if not (is_text(dtype) or is_number(dtype) or dtype.is_temporal()):
        raise TableFileError(
            f"{called} has type {dtype}; accepted are text, numbers, booleans, dates and categories"
        )
    missing = column.is_null() | column.is_nan() if dtype.is_float() else column.is_null()
    gaps = row_numbers[missing.to_numpy()]
    if len(gaps):
        where = _where([str(row) for row in gaps], len(gaps), header=header)
        raise TableFileError(f"{called} has {where}; give a row without a group a value of its own")
    return values_of(column)


def values_of(column: pl.Series) -> NDArray[Any]:
    """Return labels or groups as an array; text becomes objects."""
    import polars as pl

    return (column.cast(pl.String) if is_text(column.dtype) else column).to_numpy()


def label_gaps(rows: list[str], n_gaps: int, called: str, *, header: bool = False) -> TableFileError:
    """Return the error for missing labels: in these rows, and possibly in more."""
    fix = "fill it in, or leave this row out" if n_gaps == 1 else "fill them in, or leave these rows out"
    return TableFileError(
        f"{called} has {_where(rows, n_gaps, header=header)}; {fix}, as kfhe fit, evaluate and "
        "audit do with --drop-unlabelled (empty cells, NA, None and similar words are missing values)"
    )


def _where(rows: list[str], n_gaps: int, *, header: bool) -> str:
    """Describe the number of missing values and their rows; numbers of rows count the header of a csv."""
    told = " (the header is row 1)" if header else ""
    where = some(rows, n_gaps)
    return f"1 gap, in row {where}{told}" if n_gaps == 1 else f"{n_gaps} gaps, in rows {where}{told}"
