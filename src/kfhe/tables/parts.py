"""Parquet files that form one table, too large for memory: read part by part, on a cluster.

A part is a run of rows of a file. Names, types and numbers of rows are in the footers of the files;
everything else is computed from the parts, on the workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kfhe.display.text import SHOWN
from kfhe.tables.csv import check_names
from kfhe.tables.errors import TableFileError
from kfhe.tables.files import READABLE
from kfhe.tables.labelled import (
    ColumnRoles,
    check_classes,
    check_types,
    checked_groups,
    label_gaps,
    values_of,
)
from kfhe.tables.parquet import columns_of, damage_told, damaged
from kfhe.tables.readings import CATEGORY, check_type, is_date, is_text, moments_as_text

PART_BYTES = 64 << 20  # memory of a part, unless a single row group is larger


class Part(NamedTuple):
    """A run of rows of a file."""

    path: str
    first_row: int  # its number in the file, from 1
    n_rows: int
    n_bytes: int  # of memory


class PartClasses(NamedTuple):
    """The labels in a part."""

    counts: pl.DataFrame  # rows by label
    gaps: list[str]  # numbers of the first rows without a label
    n_gaps: int


@dataclass(frozen=True)
class View:
    """The columns that are read of each part, and their types.

    Attributes
    ----------
    schema : mapping of str to DataType
        Common types of the columns.
    roles : ColumnRoles
        The roles of the columns.
    features : list of str
        The features.
    """

    schema: Mapping[str, pl.DataType]
    roles: ColumnRoles
    features: list[str]

    @property
    def target(self) -> str:
        """The column of labels."""
        return str(self.roles.target)

    def table(self, part: Part) -> pl.DataFrame:
        """Return the features of a part; dates and times that are categories are text."""
        return moments_as_text(self._rows(part, self.features)[0], self.roles.categories)

    def labels(self, part: Part) -> NDArray[Any]:
        """Return the labels of a part."""
        return values_of(self._rows(part, [self.target])[0][self.target])

    def groups(self, part: Part) -> NDArray[Any]:
        """Return the groups of the rows of a part; raise if one is missing."""
        rows, numbers = self._rows(part, [str(self.roles.groups)])
        called = f"{part.path}: column {self.roles.groups!r} of groups"
        return checked_groups(rows.to_series(), called, numbers)

    def classes(self, part: Part) -> PartClasses:
        """Return the classes in a part, and the rows where labels are missing."""
        column = self._read(part, [self.target])[self.target]
        gaps = column.is_null().arg_true() + part.first_row
        counts = column.drop_nulls().alias("value").value_counts(name="count")
        return PartClasses(counts, [str(row) for row in gaps[:SHOWN]], len(gaps))

    def _rows(self, part: Part, columns: list[str]) -> tuple[pl.DataFrame, NDArray[np.intp]]:
        """Return some columns of a part and the numbers of the rows, without ignored rows."""
        numbers = np.arange(part.n_rows) + part.first_row
        if not self.roles.drop_unlabelled:
            return self._read(part, columns), numbers
        rows = self._read(part, [*dict.fromkeys([*columns, self.target])])
        labelled = rows[self.target].is_not_null()
        return rows.filter(labelled).select(columns), numbers[labelled.to_numpy()]

    def _read(self, part: Part, columns: list[str]) -> pl.DataFrame:
        if not Path(part.path).is_file():
            raise TableFileError(f"{part.path}: is not here; the workers of a cluster read files themselves")
        with damage_told(part.path):
            rows = pl.scan_parquet(part.path).slice(part.first_row - 1, part.n_rows).select(columns).collect()
        return rows.cast({column: self.schema[column] for column in columns})


@dataclass(frozen=True)
class PartedTable:
    """Parquet files whose footers have been read.

    Attributes
    ----------
    name : str
        Their name in messages.
    files : list of Path
        The files.
    parts : list of Part
        The parts of all files.
    view : View
        The columns to read.
    categorical : list of bool
        For each feature, whether it is categorical.
    """

    name: str
    files: list[Path]
    parts: list[Part]
    view: View
    categorical: list[bool]

    @classmethod
    def open(cls, paths: Sequence[Path], roles: ColumnRoles) -> PartedTable:
        """Read the footers.

        Parameters
        ----------
        paths : sequence of Path
            Parquet files, or folders of them.
        roles : ColumnRoles
            The roles of the columns. Text is not converted to dates or numbers.

        Raises
        ------
        TableFileError
            A file is not parquet, files have different columns, or the columns are not suitable.
        """
        files = parquet_files(paths)
        name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        footers = [footer_of(file) for file in files]
        schema = common_schema(files, [footer.schema for footer in footers])
        roles = roles.of([*schema], name)
        features = roles.features([*schema], name)
        check_types({column: schema[column] for column in features}, name)
        for column in features:
            _check_kind(column, schema[column], roles.read_as.get(column), name)
        used = [*features, *roles.labels]
        parts = [
            part for file, footer in zip(files, footers, strict=True) for part in footer.parts(file, used)
        ]
        if not parts:
            raise TableFileError(f"{name}: has no rows")
        categorical = [is_text(schema[column]) or column in roles.categories for column in features]
        return cls(name, files, parts, View(schema, roles, features), categorical)

    @property
    def n_rows(self) -> int:
        """The number of rows, including those without a label."""
        return sum(part.n_rows for part in self.parts)

    @property
    def n_dates(self) -> int:
        """The number of features that are dates."""
        dates = [is_date(self.view.schema[name]) for name in self.view.features]
        return sum(is_date and not of for is_date, of in zip(dates, self.categorical, strict=True))

    def class_counts(self, classes: Sequence[PartClasses]) -> dict[str, int]:
        """Return the number of rows of each class, from those of the parts; raise if unsuitable."""
        self._check_gaps(classes)
        every = pl.concat([each.counts for each in classes])
        total = every.group_by("value").agg(pl.col("count").sum()).sort("value")
        if not len(total):
            raise TableFileError(f"{self.name}: no row has a label")
        check_classes(total["value"], int(total["count"].sum()), f"{self.name}: target {self.view.target!r}")
        return dict(zip(map(str, total["value"]), total["count"], strict=True))

    def _check_gaps(self, classes: Sequence[PartClasses]) -> None:
        """Raise if labels are missing; the message names the first such file."""
        if self.view.roles.drop_unlabelled:
            return
        for file in dict.fromkeys(part.path for part in self.parts):
            found = [each for part, each in zip(self.parts, classes, strict=True) if part.path == file]
            rows = [row for each in found for row in each.gaps]
            if rows:
                called = f"{file}: target {self.view.target!r}"
                raise label_gaps(rows, sum(each.n_gaps for each in found), called)

    def frames(self) -> tuple[Any, Any]:
        """Return features and labels as Dask collections; parts are read when needed."""
        import pandas as pd

        view = self.view
        X = pd.DataFrame({name: pd.Series(dtype=object) for name in view.features})
        return self._parted(view.table, X), self._parted(view.labels, self._empty(view.target))

    def groups(self) -> Any:
        """Return the groups of the rows as a Dask collection; None if there is no such column."""
        column = self.view.roles.groups
        return None if column is None else self._parted(self.view.groups, self._empty(column))

    def _parted(self, read: Callable[[Part], Any], meta: Any) -> Any:
        import dask.dataframe as dd

        return dd.from_map(read, self.parts, meta=meta, enforce_metadata=False)

    def _empty(self, column: str) -> Any:
        """Return a column without rows."""
        import pandas as pd

        empty = pl.Series(column, [], self.view.schema[column])
        return pd.Series(values_of(empty), name=column)


def _check_kind(column: str, dtype: pl.DataType, kind: str | None, name: str) -> None:
    """Raise if a column can't be read as requested without looking at all rows."""
    if kind not in (None, CATEGORY) and is_text(dtype):
        raise TableFileError(
            f"{name}: column {column!r} is text, which can't be read as {kind} part by part. Convert it in "
            "the files, or leave it out"
        )
    check_type(column, dtype, kind, name)


def parquet_files(paths: Sequence[Path]) -> list[Path]:
    """Return the absolute paths of the parquet files, including those in folders, by name."""
    found: list[Path] = []
    for path in paths:
        inside = [path]
        if path.is_dir():
            # Hidden files are those of other programs
            inside = sorted(each for each in path.glob("*.parquet") if each.name[0] not in "._")
            if not inside:
                raise TableFileError(f"{path}: there are no .parquet files in this folder")
        elif path.name.endswith(tuple(each for each in READABLE if each != ".parquet")) or str(path) == "-":
            raise TableFileError(
                f"{path}: a table that is read part by part must be parquet files, or folders: in other "
                "formats, types depend on all rows. Convert it to parquet first"
            )
        elif not path.is_file():
            raise TableFileError(f"{path}: there is no such file")
        found += inside
    files = [path.resolve() for path in found]
    twice = [file for file, count in Counter(files).items() if count > 1]
    if twice:
        raise TableFileError(f"{twice[0]}: is given twice; its rows would count twice")
    return files


class RowGroup(NamedTuple):
    """The size of a row group."""

    n_rows: int
    stored: dict[str, int]  # bytes by column


class Footer(NamedTuple):
    """The footer of a parquet file."""

    schema: Any
    groups: list[RowGroup]

    def parts(self, path: Path, used: Sequence[str]) -> Iterator[Part]:
        """Yield the parts of the file, if only the columns `used` are read."""
        first_row, n_rows, n_bytes = 1, 0, 0
        for group in self.groups:
            more = self.bytes_of(group, used)
            if n_rows and n_bytes + more > PART_BYTES:
                yield Part(str(path), first_row, n_rows, n_bytes)
                first_row, n_rows, n_bytes = first_row + n_rows, 0, 0
            n_rows, n_bytes = n_rows + group.n_rows, n_bytes + more
        if n_rows:
            yield Part(str(path), first_row, n_rows, n_bytes)

    def bytes_of(self, group: RowGroup, used: Sequence[str]) -> int:
        """Return the approximate memory of columns in bytes, by their types; text as it is stored."""
        from pyarrow import types

        total = 0
        for column in used:
            type = self.schema.field(column).type
            fixed = types.is_primitive(type) or types.is_decimal(type)
            total += group.n_rows * (
                max(1, type.bit_width // 8) if fixed else 4
            )  # 4 bytes for the offset of a text
            total += group.stored[column] if _is_text(type) else 0
        return total


def _is_text(type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_dictionary(type) or types.is_string(type) or types.is_large_string(type))


def table_bytes(path: Path) -> int:
    """Return the approximate memory of a parquet file in bytes; 0 if it can't be read."""
    try:
        footer = footer_of(path)
    except (TableFileError, ImportError):  # pyarrow comes with Dask
        return 0
    return sum(footer.bytes_of(group, footer.schema.names) for group in footer.groups)


def footer_of(path: Path) -> Footer:
    """Read the footer of a file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            metadata, schema = file.metadata, file.schema_arrow
            check_names(str(path), schema.names)
            groups = [_row_group(metadata.row_group(i)) for i in range(metadata.num_row_groups)]
            fields = [schema.field(name) for name in columns_of(schema.names)]
            for field in fields:
                if _is_text(field.type) and any(field.name not in group.stored for group in groups):
                    raise OSError(f"column {field.name!r} is not stored in it")
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(str(path), error) from error
    return Footer(pa.schema(fields), groups)


def _row_group(group: Any) -> RowGroup:
    columns = [group.column(j) for j in range(group.num_columns)]
    return RowGroup(group.num_rows, {each.path_in_schema: each.total_uncompressed_size for each in columns})


def common_schema(files: list[Path], schemas: list[Any]) -> dict[str, pl.DataType]:
    """Return the common types of the columns of all files; raise if they are incompatible."""
    import pyarrow as pa

    first = schemas[0]
    common = {field.name: field.type for field in first}
    for path, schema in zip(files, schemas, strict=True):
        for column in sorted({*common} ^ {*schema.names}):
            without, other = (path, files[0]) if column in common else (files[0], path)
            raise TableFileError(f"{without}: there is no column {column!r}, which is in {other}")
        for column, type in common.items():
            pair = [pa.schema([(column, each)]) for each in (type, schema.field(column).type)]
            try:
                common[column] = pa.unify_schemas(pair, promote_options="permissive").field(0).type
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                raise TableFileError(
                    f"{path}: column {column!r} has type {pair[1].field(0).type}, but {type} in {files[0]}; "
                    "use the same type in all files"
                ) from None
    found = pl.DataFrame(pa.schema([(column, common[column]) for column in first.names]).empty_table())
    return {column: pl.String() if is_text(dtype) else dtype for column, dtype in found.schema.items()}
