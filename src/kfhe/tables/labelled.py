"""Tables with a target column: which columns are features, which of them hold categories, and the labels."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kfhe.tables.csv import AS_FOUND
from kfhe.tables.errors import TableFileError, no_column
from kfhe.tables.files import Dialect, TableFile, open_table
from kfhe.tables.labels import as_written, checked_groups, checked_labels, without_label
from kfhe.tables.readings import BOOLEAN
from kfhe.tables.texts import CATEGORY, check_kinds, read_texts
from kfhe.tables.types import is_moment, is_number, is_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from polars import DataFrame, DataType

USUAL_TARGET = "class"
NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True)
class LabelledTable:
    """Rows to learn from.

    Columns of text, and those that somebody says so of, hold categories, as many as there are; true and
    false are numbers. Numbers are finite, or missing. Text of a csv or of an Excel file that leaves no doubt
    is dates, numbers such as "$1,200", or true and false.

    Attributes
    ----------
    name : str
        The file, as messages call it.
    target : str
        The column that holds the labels.
    X : DataFrame
        The features.
    y : ndarray
        The labels: strings, numbers or booleans, none of them missing, of two classes or more.
    categorical : list of bool
        For each feature, whether it holds categories.
    first_row : int
        Number of the first row in messages.
    all_columns : DataFrame
        The table as it was read, with the target and the columns that are left out.
    made_categories : collection of str
        Columns that are categories because somebody said so.
    true : ndarray or None
        The true labels, if a column of them was named: not to be learnt from.
    notes : tuple of str
        What was noticed in the file, in sentences.
    positions : ndarray or None
        Where in the file the rows are, if some were left out.
    group_column : str or None
        The column that tells which rows belong together, if there is one. It is no feature.
    groups : ndarray or None
        Its values.
    readings : dict of str to str
        How the features were read that were text.
    """

    name: str
    target: str
    X: DataFrame
    y: NDArray[Any]
    categorical: list[bool]
    first_row: int
    all_columns: DataFrame
    made_categories: Collection[str] = ()
    true: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    positions: NDArray[np.intp] | None = None
    group_column: str | None = None
    groups: NDArray[Any] | None = None
    readings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        target: str | None = None,
        *,
        categorical: Collection[str] = (),
        read_as: Mapping[str, str] = NOTHING,
        drop: Collection[str] = (),
        true: str | None = None,
        groups: str | None = None,
        dialect: Dialect = AS_FOUND,
        drop_unlabelled: bool = False,
    ) -> LabelledTable:
        r"""Read a csv or parquet file.

        Parameters
        ----------
        path : path
            The file, ``-`` for standard input.
        target : str, optional
            The column to learn; default: the one named ``class``, else the last one.
        categorical : collection of str
            Columns of numbers that are categories.
        read_as : mapping of str to str
            What columns are read as: "category", "number", "date", "day-first", "month-first", "time" or
            "boolean"; default: as they look, if that leaves no doubt.
        drop : collection of str
            Columns to leave out, such as ``id,x_*``; ``*`` stands for any letters.
        true : str, optional
            The column of the true labels, if the target may be wrong. It is no feature.
        groups : str, optional
            The column that tells which rows belong together. It is no feature.
        dialect : Dialect
            How a csv is written; default: as its first rows look.
        drop_unlabelled : bool
            Whether rows without a label are left out; otherwise they are an error.

        Returns
        -------
        LabelledTable
            The rows, checked.

        Raises
        ------
        TableFileError
            If the file can't be read, or its target can't be learnt.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from kfhe.tables.labelled import LabelledTable
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "pets.csv"
        ...     _ = path.write_text("zip,legs,class\n01,4,cat\n01,2,bird\n02,4,cat\n02,2,bird\n")
        ...     table = LabelledTable.read(path, categorical=["zip"])
        >>> table.X.to_dict(as_series=False)
        {'zip': ['01', '01', '02', '02'], 'legs': [4, 2, 4, 2]}
        >>> table.categorical, table.y.tolist()
        ([True, False], ['cat', 'bird', 'cat', 'bird'])
        """
        with open_table(path, dialect) as file:
            return cls.from_file(
                file,
                target,
                categorical=categorical,
                read_as=read_as,
                drop=drop,
                true=true,
                groups=groups,
                drop_unlabelled=drop_unlabelled,
            )

    @classmethod
    def from_file(
        cls,
        file: TableFile,
        target: str | None = None,
        *,
        categorical: Collection[str] = (),
        read_as: Mapping[str, str] = NOTHING,
        drop: Collection[str] = (),
        true: str | None = None,
        groups: str | None = None,
        drop_unlabelled: bool = False,
    ) -> LabelledTable:
        """Read an open file; see `read`."""
        check_kinds(read_as)
        named = [name for name in (target, true, groups) if name is not None]
        for column in (*named, *categorical, *read_as):
            if column not in file.columns:
                raise no_column(file.name, column, file.columns)
        drop = named_columns(drop, file.columns, file.name)
        # What looks like a number in a csv may be a name; in parquet types are certain
        labels = {target or usual_target(file.columns), *named}
        categorical = {*categorical, *(column for column, kind in read_as.items() if kind == CATEGORY)}
        names = {*labels, *categorical} if file.is_text else set()
        table = file.read({*names, *read_as} if file.is_text else ())
        table = table.with_columns(as_written(table[column]) for column in names)
        found = cls.from_table(
            table,
            file.name,
            target,
            categorical=categorical,
            read_as=read_as,
            drop=drop,
            true=true,
            groups=groups,
            first_row=file.first_row,
            decimal=file.decimal,
            drop_unlabelled=drop_unlabelled,
        )
        flags = {column: BOOLEAN for column in file.truths if column in found.X.columns}
        return replace(found, notes=(*file.notes, *found.notes), readings={**flags, **found.readings})

    @classmethod
    def from_table(
        cls,
        table: DataFrame,
        name: str,
        target: str | None = None,
        *,
        categorical: Collection[str] = (),
        read_as: Mapping[str, str] = NOTHING,
        drop: Collection[str] = (),
        true: str | None = None,
        groups: str | None = None,
        first_row: int = 1,
        decimal: str | None = None,
        drop_unlabelled: bool = False,
    ) -> LabelledTable:
        """Check a data frame that `name` calls; see `read`. Without a decimal mark, text is text."""
        import numpy as np

        guessed = target is None
        target = usual_target(table.columns) if target is None else target
        left_out = {target, *drop, *(name for name in (true, groups) if name is not None)}
        X = table.drop(left_out)
        if not X.width:
            raise TableFileError(f"{name}: there is no column left to learn from")
        called = f"target {target!r}"
        if guessed and target != USUAL_TARGET:
            called += f" (the last column, as none is named {USUAL_TARGET!r})"
        kept = dict.fromkeys(categorical, CATEGORY)
        X, readings, notes = read_texts(X, name, first_row, {**read_as, **kept}, decimal)
        check_types(X.schema, name)
        _check_finite(X, name, first_row)
        positions = None
        if drop_unlabelled and table[target].has_nulls():
            labelled = table[target].is_not_null()
            positions = np.flatnonzero(labelled.to_numpy())
            notes.append(f"{name}: {without_label(len(table) - len(positions))}")
            table, X = table.filter(labelled), X.filter(labelled)
        y = checked_labels(table[target], f"{name}: {called}", first_row)
        truth = None
        if true is not None:
            truth = checked_labels(table[true], f"{name}: column {true!r} of true labels", first_row)
        of_categories = [is_text(dtype) or column in categorical for column, dtype in X.schema.items()]
        found = cls(
            name, target, X, y, of_categories, first_row, table, categorical, truth, tuple(notes), positions
        )
        found = replace(found, readings=readings)
        return found if groups is None else found.grouped(groups)

    def grouped(self, column: str) -> LabelledTable:
        """Return the table with a column that tells which rows belong together."""
        called = f"{self.name}: column {column!r} of groups"
        values = self.all_columns[column]
        groups = checked_groups(values, called, self.row_numbers, header=self.first_row == 2)
        if len({*groups.tolist()}) == 1:
            raise TableFileError(
                f"{called} has one value only ({groups[0]}); there must be two groups or more, so that rows "
                "can be judged by what was learnt from others"
            )
        return replace(self, group_column=column, groups=groups)

    @property
    def row_numbers(self) -> NDArray[np.intp]:
        """Number of each row in messages."""
        import numpy as np

        positions = np.arange(len(self.y)) if self.positions is None else self.positions
        return positions + self.first_row

    def class_counts(self) -> dict[str, int]:
        """Return the number of rows of each class."""
        import numpy as np

        classes, counts = np.unique(self.y, return_counts=True)
        return dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True))

    def check_can_be_split(self) -> None:
        """Raise if a class has one row only: it can't be trained on and tested as well."""
        counts = self.class_counts()
        rarest = min(counts, key=counts.__getitem__)
        if counts[rarest] < 2:
            raise TableFileError(
                f"{self.name}: class {rarest!r} has one row only, so it can't be trained on and tested as "
                "well; leave the row out, or join the class with another"
            )


def usual_target(columns: list[str]) -> str:
    """Return the target of a table if nobody names one: the column ``class``, else the last one."""
    return USUAL_TARGET if USUAL_TARGET in columns else columns[-1]


def columns_like(name: str, columns: Iterable[str]) -> list[str]:
    """Return the columns that a name stands for, in which ``*`` is any letters."""
    like = re.compile(".*".join(map(re.escape, name.split("*"))), re.DOTALL)
    return [column for column in columns if like.fullmatch(column)]


def named_columns(names: Collection[str], columns: list[str], source: str) -> list[str]:
    """Return the columns that are named, as ``id`` or ``id,x_*``; raise if a name stands for none.

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


def check_types(schema: Mapping[str, DataType], name: str) -> None:
    """Raise if a column is of a type that nobody can learn from."""
    for column, dtype in schema.items():
        if not (is_number(dtype) or is_moment(dtype) or is_text(dtype)):
            raise TableFileError(
                f"{name}: column {column!r} has type {dtype}; accepted are numbers, booleans, dates, text "
                "and categories"
            )


def _check_finite(X: DataFrame, name: str, first_row: int) -> None:
    """Raise if a number is infinite."""
    for column, dtype in X.schema.items():
        if dtype.is_float() and (infinite := X[column].is_infinite()).any():
            raise TableFileError(
                f"{name}: column {column!r}, row {infinite.arg_true()[0] + first_row}: found infinity; "
                "accepted are finite numbers, and nothing for a gap"
            )
