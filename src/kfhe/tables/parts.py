"""Parquet files that are one table together, too large to be read whole: read part by part, on a cluster.

A part is some row groups of a file. Names, types and numbers of rows are known by the files' footers; what
else is to be known of all rows is asked of the parts, on the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kfhe.tables.errors import SHOWN, TableFileError, no_column
from kfhe.tables.files import check_pyarrow
from kfhe.tables.footers import Part, common_schema, footer_of, parquet_files
from kfhe.tables.labelled import check_types, named_columns
from kfhe.tables.labels import check_classes, checked_groups, label_gaps
from kfhe.tables.parquet import checked, damage_told
from kfhe.tables.texts import CATEGORY, check_kinds, check_type
from kfhe.tables.types import holds_categories, is_moment, is_text, moments_as_text, value_type

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class View:
    """What is read of each part.

    Attributes
    ----------
    schema : pyarrow.Schema
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

    schema: Any
    target: str
    features: list[str]
    as_text: list[str]
    drop_unlabelled: bool
    group_column: str | None = None

    def table(self, part: Part) -> Any:
        """Return the features of a part: a pyarrow table."""
        needed = [*self.features, self.target] if self.drop_unlabelled else self.features
        table = self._read(part, needed)
        if self.drop_unlabelled:
            table = table.filter(table.column(self.target).is_valid()).drop_columns([self.target])
        return moments_as_text(table, self.as_text)

    def labels(self, part: Part) -> NDArray[Any]:
        """Return the labels of a part."""
        column = self._read(part, [self.target]).column(0)
        column = column.cast(value_type(column.type))
        labels: NDArray[Any] = (column.drop_null() if self.drop_unlabelled else column).to_numpy()
        return labels

    def groups(self, part: Part) -> NDArray[Any]:
        """Return the groups of the rows of a part; raise where one is missing."""
        import numpy as np

        assert self.group_column is not None
        table = self._read(part, [self.group_column, self.target])
        rows = np.arange(len(table)) + part.first_row
        if self.drop_unlabelled:
            labelled = table.column(self.target).is_valid()
            table, rows = table.filter(labelled), rows[labelled.to_numpy()]
        called = f"{part.path}: column {self.group_column!r} of groups"
        return checked_groups(table.column(self.group_column), called, rows)

    def classes(self, part: Part) -> PartClasses:
        """Return the classes in a part, and where labels are missing."""
        import numpy as np
        from pyarrow import compute

        column = self._read(part, [self.target]).column(0)
        gaps = np.flatnonzero(compute.is_null(column).to_numpy())
        counted = column.cast(value_type(column.type)).drop_null().value_counts()
        shown = (gaps[:SHOWN] + part.first_row).tolist()
        return PartClasses(counted.field("values"), counted.field("counts"), shown, len(gaps))

    def _read(self, part: Part, columns: list[str]) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        if not Path(part.path).is_file():
            raise TableFileError(f"{part.path}: is not here; a cluster's workers read files themselves")
        with damage_told(part.path), parquet.ParquetFile(part.path) as file:
            groups = list(part.row_groups)
            table = checked(file.read_row_groups(groups, columns=columns, use_threads=False))
        return table.select(columns).cast(pa.schema([self.schema.field(column) for column in columns]))


class PartClasses(NamedTuple):
    """What a part tells of the labels."""

    values: Any  # a pyarrow array of the classes,
    counts: Any  # and one of how many rows each has
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
        check_pyarrow()
        check_kinds(read_as)
        files = parquet_files(paths)
        name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        footers = [footer_of(file) for file in files]
        schema = common_schema(files, [footer.schema for footer in footers])
        named = [target, *([] if groups is None else [groups])]
        for column in (*named, *categorical, *read_as):
            if column not in schema.names:
                raise no_column(name, column, schema.names)
        left_out = {*named, *named_columns(drop, schema.names, name)}
        features = [column for column in schema.names if column not in left_out]
        if not features:
            raise TableFileError(f"{name}: there is no column left to learn from")
        of_features = [schema.field(column) for column in features]
        check_types(of_features, name)
        made = {*categorical, *(column for column, kind in read_as.items() if kind == CATEGORY)}
        for field in of_features:
            _check_kind(field, read_as.get(field.name), name)
        view = View(
            schema,
            target,
            features,
            [field.name for field in of_features if field.name in made and is_moment(field.type)],
            drop_unlabelled,
            groups,
        )
        used = [*features, *named]
        parts = [
            part for file, footer in zip(files, footers, strict=True) for part in footer.parts(file, used)
        ]
        if not parts:
            raise TableFileError(f"{name}: there are no rows in it")
        of_categories = [holds_categories(field.type) or field.name in made for field in of_features]
        return cls(name, files, parts, view, of_categories, made)

    @property
    def n_rows(self) -> int:
        """How many rows there are, those without a label counted."""
        return sum(part.n_rows for part in self.parts)

    @property
    def n_dates(self) -> int:
        """How many features hold dates."""
        from pyarrow import types

        fields = [self.view.schema.field(name) for name in self.view.features]
        dates = [types.is_date(field.type) or types.is_timestamp(field.type) for field in fields]
        return sum(is_date and not of for is_date, of in zip(dates, self.categorical, strict=True))

    def class_counts(self, classes: Sequence[PartClasses]) -> dict[str, int]:
        """Return the number of rows of each class, by what the parts tell; raise if they can't be learnt."""
        import pyarrow as pa

        self._check_gaps(classes)
        table = pa.table(
            [
                pa.chunked_array([getattr(each, what) for each in classes]).combine_chunks()
                for what in ("values", "counts")
            ],
            names=["values", "counts"],
        )
        total = table.group_by("values").aggregate([("counts", "sum")]).sort_by("values")
        counts = total.column("counts_sum").to_pylist()
        if not counts:
            raise TableFileError(f"{self.name}: there is no row with a label")
        check_classes(
            total.column("values").combine_chunks(), sum(counts), f"{self.name}: target {self.view.target!r}"
        )
        return dict(zip(map(str, total.column("values").to_pylist()), counts, strict=True))

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

        dtype = value_type(self.view.schema.field(column).type).to_pandas_dtype()
        return pd.Series(dtype=dtype, name=column)


def _check_kind(field: Any, kind: str | None, name: str) -> None:
    """Raise if a column can't be read as somebody says, without looking at all of it."""
    if kind in (None, CATEGORY) or not is_text(field.type):
        check_type(field, kind, name)
        return
    raise TableFileError(
        f"{name}: column {field.name!r} holds text, and is read part by part: it can't be read as {kind}. "
        "Write it as such into the files, or leave it out"
    )
