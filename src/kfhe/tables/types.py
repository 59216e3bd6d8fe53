"""What columns of polars hold, as far as it matters here."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polars import DataFrame, DataType


def is_text(dtype: DataType) -> bool:
    """Whether a column holds text, which may be stored as positions in a list of words."""
    import polars as pl

    return dtype in (pl.String, pl.Categorical, pl.Enum)


def is_number(dtype: DataType) -> bool:
    """Whether a column holds numbers, true and false counted among them; nothing but gaps, too."""
    import polars as pl

    return dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)


def is_date(dtype: DataType) -> bool:
    """Whether a column holds dates, with the time of day or without."""
    import polars as pl

    return dtype in (pl.Date, pl.Datetime)


def is_moment(dtype: DataType) -> bool:
    """Whether a column holds dates, times of day or durations."""
    return dtype.is_temporal()


def moments_as_text(frame: DataFrame, columns: Collection[str]) -> DataFrame:
    """Write those of some columns that hold dates, times of day or durations as text."""
    import polars as pl

    moments = [name for name, dtype in frame.schema.items() if name in columns and is_moment(dtype)]
    spans = [name for name in moments if frame.schema[name] == pl.Duration]
    others = [name for name in moments if name not in spans]
    return frame.with_columns(pl.col(others).cast(pl.String), pl.col(spans).dt.to_string("polars"))
