"""Tables: a csv or parquet file, checked, as features and classes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kfhe import table_files
from kfhe.study.errors import StudyError
from kfhe.table_files import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd
    from numpy.typing import NDArray

MAX_CATEGORIES = 255


@dataclass(frozen=True)
class Dataset:
    """Rows to learn from: every column is a number (float64, gaps as NaN) or a pandas category.

    Attributes
    ----------
    name : str
        What it is called in plans and results.
    X : DataFrame
        The features.
    y : ndarray of int
        The class of each row, as a position in `classes`.
    classes : list of str
        The classes, sorted.
    source : str
        Where it was found.
    """

    name: str
    X: pd.DataFrame
    y: NDArray[np.intp]
    classes: list[str]
    source: str

    @property
    def categorical(self) -> list[str]:
        """Names of the columns that hold categories."""
        return [name for name, dtype in self.X.dtypes.items() if dtype == "category"]

    def fingerprint(self) -> str:
        """Return a checksum of the contents, by which changed data are noticed."""
        digest = hashlib.sha256()
        for name in self.X.columns:
            column = self.X[name]
            digest.update(f"{name}\x1e".encode())
            if column.dtype == "category":
                digest.update("\x1f".join(column.astype(object).fillna("\x00")).encode())
            else:
                digest.update(column.to_numpy(np.float64).tobytes())
        digest.update("\x1f".join(self.classes).encode())
        digest.update(self.y.astype(np.int64).tobytes())
        return digest.hexdigest()


def is_table(name: str) -> bool:
    """Whether a dataset's name is the path of a file rather than a name of the catalogue."""
    return name.endswith(SUFFIXES)


def table_name(path: str | Path) -> str:
    """Return a file's name without its folder and ending."""
    name = Path(path).name
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def read_table(path: Path, *, name: str | None = None, categorical: Collection[str] = ()) -> Dataset:
    """Read a csv or parquet file; its class column is the one named ``class``, else the last one.

    Parameters
    ----------
    path : Path
        The file.
    name : str, optional
        What to call the dataset; default: the file's name.
    categorical : collection of str
        Columns of codes that are categories, besides all columns of text.

    Returns
    -------
    Dataset
        The checked data.

    Raises
    ------
    StudyError
        If the file can't be read, or can't be learnt from.
    """
    import_pandas()
    try:
        frame = table_files.read_table(path, text=categorical).to_pandas()
    except table_files.TableFileError as error:
        raise StudyError(str(error)) from error
    return make_dataset(frame, name or table_name(path), source=str(path), categorical=categorical)


def make_dataset(frame: Any, name: str, *, source: str, categorical: Collection[str] = ()) -> Dataset:
    """Check a data frame with a class column and make a dataset of it."""
    pandas = import_pandas()
    if frame.shape[1] < 2 or not len(frame):
        raise StudyError(
            f"{source}: there must be rows of at least one feature and a class column, "
            f"got {len(frame)} rows and {frame.shape[1]} columns"
        )
    target = "class" if "class" in frame.columns else frame.columns[-1]
    labels = frame[target]
    _check_labels(labels, source)
    classes, y = np.unique(labels.astype(str).to_numpy(dtype=object).astype(str), return_inverse=True)
    columns = {
        str(column): _feature(frame[column], column in categorical, source)
        for column in frame.columns
        if column != target
    }
    X = pandas.DataFrame(columns, index=pandas.RangeIndex(len(frame)))
    return Dataset(name, X, y.astype(np.intp), classes.tolist(), source)


def _check_labels(labels: Any, source: str) -> None:
    name = labels.name
    gaps = np.flatnonzero(labels.isna())
    if gaps.size:
        # The header is line 1 of the file
        lines = ", ".join(str(row + 2) for row in gaps[:5]) + (", ..." if gaps.size > 5 else "")
        raise StudyError(f"{source}: class column '{name}' has {gaps.size} gaps, in lines {lines}")
    counts = labels.value_counts()
    numbers = labels.dtype.kind == "f"
    if len(counts) > len(labels) / 2 or (numbers and (labels % 1 != 0).any()):
        raise StudyError(
            f"{source}: there is no class column: none is named 'class', and the last one, '{name}', "
            f"has {len(counts)} different values in {len(labels)} rows"
            if name != "class"
            else f"{source}: column 'class' holds no classes: "
            f"it has {len(counts)} different values in {len(labels)} rows"
        )
    if len(counts) == 1:
        raise StudyError(f"{source}: class column '{name}' has one class only ('{counts.index[0]}')")
    single = [str(label) for label in counts.index[counts == 1]]
    if single:
        raise StudyError(
            f"{source}: class '{single[0]}' has one row only, so it can't be trained on and tested as well; "
            "leave the row out, or join the class with another"
        )


def _feature(column: Any, categorical: bool, source: str) -> Any:
    numeric = column.dtype.kind in "iufb" and not categorical
    if numeric:
        values = column.to_numpy(np.float64, na_value=np.nan)
        if np.isinf(values).any():
            raise StudyError(f"{source}: column '{column.name}' has infinite values")
        return values
    texts = column.astype(object).where(column.notna(), None)
    texts = texts.map(lambda value: None if value is None else str(value))
    n_categories = texts.nunique()
    if n_categories > MAX_CATEGORIES:
        raise StudyError(
            f"{source}: column '{column.name}' has {n_categories} categories, at most {MAX_CATEGORIES} "
            "are possible; if it only names the rows, leave it out, else join rare categories"
        )
    return import_pandas().Categorical(texts)


def import_pandas() -> Any:
    """Return pandas, or say which extra brings it."""
    try:
        import pandas
    except ImportError as error:
        raise StudyError("a study needs pandas: pip install kfhe[study]") from error
    return pandas
