"""Parquet files that are one table together, too large to be read whole: read part by part, on a cluster.

A part is some neighbouring rows of a file. Names, types and numbers of rows are known by the files' footers;
what else is to be known of all rows is asked of the parts, on the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kfhe.tables.errors import SHOWN, TableFileError, no_column
from kfhe.tables.files import check_polars
from kfhe.tables.footers import Part, common_schema, footer_of, parquet_files
from kfhe.tables.labelled import check_types, named_columns
from kfhe.tables.labels import check_classes, checked_groups, label_gaps, values_of
from kfhe.tables.parquet import damage_told
from kfhe.tables.texts import CATEGORY, check_kinds, check_type
from kfhe.tables.types import is_date, is_moment, is_text, moments_as_text

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from polars import DataFrame, DataType


@dataclass(frozen=True)
class View:
    """What is read of each part.

    Attributes
    ----------
    schema : mapping of str to DataType
        The types that columns have in all parts.
    target : str
        The column that holds the labels.
    features : list of str
        The columns that are learnt from.
    as_text : list of str
        Those of dates and times that are categories.
    drop_unlabelled : bool
        Whether rows without a label are left out.
    group_column : str or None
        The column that tells which rows belong together, if there is one.
    """

    schema: Mapping[str, DataType]
    target: str
    features: list[str]
    as_text: list[str]
    drop_unlabelled: bool
    group_column: str | None = None

    def table(self, part: Part) -> DataFrame:
        """Return the features of a part."""
        needed = [*self.features, self.target] if self.drop_unlabelled else self.features
        rows = self._read(part, needed)
        if self.drop_unlabelled:
            rows = rows.drop_nulls(self.target).drop(self.target)
        return moments_as_text(rows, self.as_text)

    def labels(self, part: Part) -> NDArray[Any]:
        """Return the labels of a part."""
        column = self._read(part, [self.target])[self.target]
        return values_of(column.drop_nulls() if self.drop_unlabelled else column)

    def groups(self, part: Part) -> NDArray[Any]:
        """Return the groups of the rows of a part; raise where one is missing."""
        import numpy as np

        assert self.group_column is not None
        rows = self._read(part, [self.group_column, self.target])
        numbers = np.arange(len(rows)) + part.first_row
        if self.drop_unlabelled:
            labelled = rows[self.target].is_not_null()
            rows, numbers = rows.filter(labelled), numbers[labelled.to_numpy()]
        called = f"{part.path}: column {self.group_column!r} of groups"
        return checked_groups(rows[self.group_column], called, numbers)

    def classes(self, part: Part) -> PartClasses:
        """Return the classes in a part, and where labels are missing."""
        column = self._read(part, [self.target])[self.target]
        gaps = column.is_null().arg_true()
        shown = (gaps[:SHOWN] + part.first_row).to_list()
        counts = column.drop_nulls().alias("value").value_counts(name="count")
        return PartClasses(counts, shown, len(gaps))

    def _read(self, part: Part, columns: list[str]) -> DataFrame:
        import polars as pl

        if not Path(part.path).is_file():
            raise TableFileError(f"{part.path}: is not here; a cluster's workers read files themselves")
        with damage_told(part.path):
            rows = pl.scan_parquet(part.path).slice(part.first_row - 1, part.n_rows).select(columns).collect()
        return rows.cast({column: self.schema[column] for column in columns})


class PartClasses(NamedTuple):
    """What a part tells of the labels."""

    counts: DataFrame  # of rows of each value
    gaps: list[int]  # numbers of the first rows without a label
    n_gaps: int


@dataclass(frozen=True)
class PartedTable:
    """Parquet files, of which only the footers have been read.

    Attributes
    ----------
    name : str
        What messages call them.
    files : list of Path
        The files.
    parts : list of Part
        Their rows.
    view : View
        What is read of them.
    categorical : list of bool
        For each feature, whether it holds categories.
    made_categories : collection of str
        Columns that are categories because somebody said so.
    """

    name: str
    files: list[Path]
    parts: list[Part]
    view: View
    categorical: list[bool]
    made_categories: Collection[str]

    @classmethod
    def open(
        cls,
        paths: Sequence[Path],
        target: str,
        *,
        categorical: Collection[str] = (),
        read_as: Mapping[str, str],
        drop: Collection[str] = (),
        groups: str | None = None,
        drop_unlabelled: bool = False,
    ) -> PartedTable:
        """Read the footers; the parameters are those of `LabelledTable.read`.

        Parameters
        ----------
        paths : sequence of Path
            Parquet files, or folders of them.
        target, categorical, read_as, drop, groups, drop_unlabelled
            As there. Text that is dates or numbers is not read as such.

        Raises
        ------
        TableFileError
            If a file is none of parquet, if files have different columns, or if these can't be learnt.
        """
        check_polars()
        check_kinds(read_as)
        files = parquet_files(paths)
        name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        footers = [footer_of(file) for file in files]
        schema = common_schema(files, [footer.schema for footer in footers])
        columns = [*schema]
        named = [target, *([] if groups is None else [groups])]
        for column in (*named, *categorical, *read_as):
            if column not in schema:
                raise no_column(name, column, columns)
        left_out = {*named, *named_columns(drop, columns, name)}
        features = [column for column in columns if column not in left_out]
        if not features:
            raise TableFileError(f"{name}: there is no column left to learn from")
        of_features = {column: schema[column] for column in features}
        check_types(of_features, name)
        made = {*categorical, *(column for column, kind in read_as.items() if kind == CATEGORY)}
        for column, dtype in of_features.items():
            _check_kind(column, dtype, read_as.get(column), name)
        view = View(
            schema,
            target,
            features,
            [column for column, dtype in of_features.items() if column in made and is_moment(dtype)],
            drop_unlabelled,
            groups,
        )
        used = [*features, *named]
        parts = [
            part for file, footer in zip(files, footers, strict=True) for part in footer.parts(file, used)
        ]
        if not parts:
            raise TableFileError(f"{name}: there are no rows in it")
        of_categories = [is_text(dtype) or column in made for column, dtype in of_features.items()]
        return cls(name, files, parts, view, of_categories, made)

    @property
    def n_rows(self) -> int:
        """How many rows there are, those without a label counted."""
        return sum(part.n_rows for part in self.parts)

    @property
    def n_dates(self) -> int:
        """How many features hold dates."""
        dates = [is_date(self.view.schema[name]) for name in self.view.features]
        return sum(is_date and not of for is_date, of in zip(dates, self.categorical, strict=True))

    def class_counts(self, classes: Sequence[PartClasses]) -> dict[str, int]:
        """Return the number of rows of each class, by what the parts tell; raise if they can't be learnt."""
        import polars as pl

        self._check_gaps(classes)
        every = pl.concat([each.counts for each in classes])
        total = every.group_by("value").agg(pl.col("count").sum()).sort("value")
        if not len(total):
            raise TableFileError(f"{self.name}: there is no row with a label")
        check_classes(total["value"], int(total["count"].sum()), f"{self.name}: target {self.view.target!r}")
        return dict(zip(map(str, total["value"]), total["count"], strict=True))

    def _check_gaps(self, classes: Sequence[PartClasses]) -> None:
        """Raise if there are labels missing; the first file in which they are is named."""
        if self.view.drop_unlabelled:
            return
        for file in dict.fromkeys(part.path for part in self.parts):
            found = [each for part, each in zip(self.parts, classes, strict=True) if part.path == file]
            rows = [str(row) for each in found for row in each.gaps]
            if rows:
                called = f"{file}: target {self.view.target!r}"
                raise label_gaps(rows, sum(each.n_gaps for each in found), called)

    def frames(self) -> tuple[Any, Any]:
        """Return features and labels as Dask has them; parts are read when they are needed."""
        import pandas as pd

        view = self.view
        X = pd.DataFrame({name: pd.Series(dtype=object) for name in view.features})
        return self._parted(view.table, X), self._parted(view.labels, self._empty(view.target))

    def groups(self) -> Any:
        """Return the groups of the rows as Dask has them; None if no column tells."""
        column = self.view.group_column
        return None if column is None else self._parted(self.view.groups, self._empty(column))

    def _parted(self, read: Callable[[Part], Any], meta: Any) -> Any:
        import dask.dataframe as dd

        return dd.from_map(read, self.parts, meta=meta, enforce_metadata=False)

    def _empty(self, column: str) -> Any:
        """Return a column without rows."""
        import pandas as pd
        import polars as pl

        empty = pl.Series(column, [], self.view.schema[column])
        return pd.Series(values_of(empty), name=column)


def _check_kind(column: str, dtype: DataType, kind: str | None, name: str) -> None:
    """Raise if a column can't be read as somebody says, without looking at all of it."""
    if kind in (None, CATEGORY) or not is_text(dtype):
        check_type(column, dtype, kind, name)
        return
    raise TableFileError(
        f"{name}: column {column!r} holds text, and is read part by part: it can't be read as {kind}. "
        "Write it as such into the files, or leave it out"
    )
