"""Datasets: labelled tables, prepared in the same way for all classifiers of a study."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kfhe.display.text import needed, some
from kfhe.study.errors import NoTargetError, StudyError
from kfhe.tables.columns import open_columns
from kfhe.tables.errors import TableFileError
from kfhe.tables.files import AS_FOUND, READABLE, Dialect, open_table
from kfhe.tables.labelled import USUAL_TARGET, ColumnRoles, LabelledTable, columns_like
from kfhe.tables.readings import CATEGORY
from kfhe.tables.schema import FeatureColumns, rules_for

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Roles:
    """Roles and types of columns in a study's tables, where they differ from the defaults.

    Attributes
    ----------
    given, true : str or None
        The columns of training labels and of true labels for testing. None: there is a single
        column of labels, the target.
    drop : tuple of str
        Columns to ignore, if they exist; ``*`` matches any characters.
    target : str or None
        The column to predict; datasets of the catalogue without such a column use their own. None: the one
        named ``class``.
    dialect : Dialect
        How files are written, where that can't be detected.
    read_as : tuple of (str, str)
        Types of columns, if they exist.
    """

    given: str | None = None
    true: str | None = None
    drop: tuple[str, ...] = ()
    target: str | None = None
    dialect: Dialect = AS_FOUND
    read_as: tuple[tuple[str, str], ...] = ()

    def learnt(self, name: str, columns: list[str], *, of_catalogue: bool) -> str | None:
        """Return the column to predict; None for the default of a dataset of the catalogue.

        Raises
        ------
        NoTargetError
            The column would have to be guessed.
        """
        if self.given is not None:
            return self.given
        if of_catalogue:
            return self.target if self.target in columns else None
        if self.target is None and USUAL_TARGET not in columns:
            raise NoTargetError(
                f'{name}: which column is the target? Name it with --target (in a plan: target = "..."), as '
                f"none is named '{USUAL_TARGET}'; there are {some(columns, most=20)}"
            )
        return self.target or USUAL_TARGET

    def dropped(self, columns: Iterable[str]) -> list[str]:
        """Return the columns of a table that are not features, apart from labels."""
        return [column for column in columns if any(columns_like(name, [column]) for name in self.drop)]


AS_USUAL = Roles()


@dataclass(frozen=True)
class Dataset:
    """Rows and labels: columns are numeric (float64, with NaN for missing values) or pandas categories.

    A date is several columns: the days since 1970, and the parts that vary.

    Attributes
    ----------
    name : str
        Its name in plans and results.
    X : DataFrame
        The features.
    y : ndarray of int
        The class of each row, as a position in `classes`.
    classes : list of str
        The classes, sorted.
    source : str
        Where it was found.
    true : ndarray of int or None
        The true class of each row, if `y` may be wrong; used for testing only.
    target : str
        The column of `y`.
    notes : tuple of str
        Notes on the file, as sentences.
    dropped : tuple of str
        The columns that were left out.
    added : tuple of str
        Additions, as in `kfhe.study.careless`.
    """

    name: str
    X: pd.DataFrame
    y: NDArray[np.intp]
    classes: list[str]
    source: str
    true: NDArray[np.intp] | None = None
    target: str = USUAL_TARGET
    notes: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def categorical(self) -> list[str]:
        """Names of the columns that hold categories."""
        return [name for name, dtype in self.X.dtypes.items() if dtype == "category"]

    @property
    def wrong(self) -> float | None:
        """Share of wrong labels; None if the true ones are unknown."""
        return None if self.true is None else float(np.mean(self.y != self.true))

    def fingerprint(self) -> str:
        """Return a checksum of the contents, to detect changed data."""
        digest = hashlib.sha256()
        for name in self.X.columns:
            column = self.X[name]
            digest.update(f"{name}\x1e".encode())
            if column.dtype == "category":
                digest.update("\x1f".join(column.astype(object).fillna("\x00")).encode())
            else:
                digest.update(column.to_numpy(np.float64).tobytes())
        digest.update("\x1f".join(self.classes).encode())
        for labels in (self.y, self.true):
            if labels is not None:
                digest.update(labels.astype(np.int64).tobytes())
        return digest.hexdigest()


def is_table(name: str) -> bool:
    """Whether a dataset's name is the path of a file."""
    return name.endswith(READABLE)


def table_name(path: str | Path) -> str:
    """Return a file's name without its folder and ending."""
    name = Path(path).name
    for suffix in READABLE:
        name = name.removesuffix(suffix)
    return name


def read_table(
    path: Path,
    *,
    name: str | None = None,
    categorical: Collection[str] = (),
    roles: Roles = AS_USUAL,
    of_catalogue: bool = False,
) -> Dataset:
    """Read a csv, parquet or Excel file.

    Parameters
    ----------
    path : Path
        The file.
    name : str, optional
        Name of the dataset; default: the file's name.
    categorical : collection of str
        Columns of codes that are categorical, if they exist, in addition to columns of text.
    roles : Roles
        Roles and types of columns, and how the file is written.
    of_catalogue : bool
        Whether the catalogue has the dataset. Its default target is ``class``, else the last column.

    Returns
    -------
    Dataset
        The checked data.

    Raises
    ------
    StudyError
        The file can't be read, is not suitable, or its target is unknown.
    """
    import_pandas()
    with _told_as_study_error(), open_table(path, roles.dialect) as file:
        drop = roles.dropped(file.columns)
        target = roles.learnt(file.name, file.columns, of_catalogue=of_catalogue)
        said = {**dict.fromkeys(categorical, CATEGORY), **dict(roles.read_as)}
        read_as = {column: kind for column, kind in said.items() if column in file.columns}
        table = LabelledTable.from_file(file, ColumnRoles(target, read_as, drop, roles.true))
        return replace(_dataset(table, name or table_name(path)), dropped=tuple(drop))


def make_dataset(
    frame: Any, name: str, *, source: str, categorical: Collection[str] = (), target: str | None = None
) -> Dataset:
    """Validate a data frame with a class column, and make a dataset of it."""
    import_pandas()
    with _told_as_study_error():
        with needed("table files need polars", "frames"):
            import polars as pl

        roles = ColumnRoles(target, dict.fromkeys(categorical, CATEGORY))
        return _dataset(LabelledTable.from_table(pl.from_pandas(frame), roles, source), name)


def _dataset(table: LabelledTable, name: str) -> Dataset:
    """Make a dataset of a table; numbers become float64, everything else text."""
    from kfhe.tables.csv import check_names

    table.check_can_be_split()
    given_columns = open_columns(table.X)
    features = FeatureColumns(given_columns, rules_for(given_columns, np.array(table.categorical)))
    check_names(table.name, features.names)
    columns = {
        name: _as_categories(table.X[:, j]) if table.categorical[j] else features.numbers(k)
        for k, (name, j) in enumerate(zip(features.names, features.columns, strict=True))
    }
    given = [str(label) for label in table.y.tolist()]
    true = [] if table.true is None else [str(label) for label in table.true.tolist()]
    classes, codes = np.unique(given + true, return_inverse=True)
    y, truth = np.split(codes.astype(np.intp), [len(given)])
    X = import_pandas().DataFrame(columns)
    return Dataset(
        name, X, y, classes.tolist(), table.name, truth if true else None, table.target, table.notes
    )


def _as_categories(column: Any) -> Any:
    texts = [None if value is None else str(value) for value in column]
    return import_pandas().Categorical(texts)


@contextmanager
def _told_as_study_error() -> Iterator[None]:
    try:
        yield
    except TableFileError as error:
        raise StudyError(str(error)) from error


def import_pandas() -> Any:
    """Return pandas; if it is not installed, say which extra installs it."""
    with needed("a study needs pandas", "study"):
        import pandas
    return pandas
