"""Types of pyarrow columns, as far as they matter here."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any


def value_type(type: Any) -> Any:
    """Return the type of a column's values, also if it is stored as positions in a list of values."""
    from pyarrow import types

    return type.value_type if types.is_dictionary(type) else type


def is_text(type: Any) -> bool:
    """Whether a column holds text."""
    from pyarrow import types

    return bool(types.is_string(value_type(type)) or types.is_large_string(value_type(type)))


def holds_categories(type: Any) -> bool:
    """Whether a column's type tells that it holds categories: text, or positions in a list of values."""
    from pyarrow import types

    return is_text(type) or bool(types.is_dictionary(type))


def is_number(type: Any) -> bool:
    """Whether a column holds numbers, true and false counted among them; nothing but gaps, too."""
    from pyarrow import types

    ours = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(is_it(type) for is_it in ours)


def is_moment(type: Any) -> bool:
    """Whether a column holds dates, times of day or durations."""
    from pyarrow import types

    ours = (types.is_date, types.is_timestamp, types.is_time, types.is_duration)
    return any(is_it(type) for is_it in ours)


def moments_as_text(table: Any, columns: Collection[str]) -> Any:
    """Write those of some columns that hold dates, times of day or durations as text."""
    import pyarrow as pa

    for j, field in enumerate(table.schema):
        if field.name in columns and is_moment(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(pa.string()))
    return table


def is_plain(type: Any) -> bool:
    """Whether a type found in a csv is one of ours: numbers, booleans, text, nothing but gaps."""
    from pyarrow import types

    ours = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_null)
    return any(is_it(type) for is_it in ours)
