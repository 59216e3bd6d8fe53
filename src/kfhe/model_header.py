"""The header of a model file: parameters, classes, columns and trace as plain JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.table import Schema
from kfhe.trace import Trace

# As wide as they need to be: strings, 0 stands for.
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES += ("float16", "float32", "float64", "str", "object")
MOST_BINS = 255


class NotInFile:
    """Stands in for a function or object that a model was trained with and that its file can't hold.

    Parameters
    ----------
    name : str
        What it was called.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}, not in the model file>"

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Raise an error: it is gone."""
        raise RuntimeError(
            f"the model came from a file, which can't hold {self.name}: "
            "set the parameter anew with set_params before fitting again"
        )


def parse(text: str | bytes) -> Any:
    """Parse JSON that is strict: UTF-8, no key twice, no NaN; a ValueError says what is wrong."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("its header is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"its header is no proper JSON ({error})") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not accepted")


def write_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Describe parameters; only whole numbers make a `random_state` that can be written down."""
    seed = parameters["random_state"]
    if not isinstance(seed, int | np.integer):
        parameters = {**parameters, "random_state": None}
    return {name: _write(value) for name, value in parameters.items()}


def read_parameters(found: Any) -> dict[str, Any]:
    """Make parameters of what `write_parameters` wrote."""
    return {name: _read(value) for name, value in _expect(dict, found, "parameters").items()}


def _write(value: Any) -> Any:
    """Describe a parameter: objects of JSON with a single key stand for what JSON doesn't have."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list | tuple):
        return [_write(item) for item in value]
    if isinstance(value, dict):
        return {"pairs": [[_write(key), _write(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray):
        return {"array": write_array(value, "a parameter")}
    if isinstance(value, NotInFile):
        return {"absent": value.name}
    return {"absent": getattr(value, "__qualname__", type(value).__qualname__)}


def _read(found: Any) -> Any:
    if isinstance(found, list):
        return [_read(item) for item in found]
    if not isinstance(found, dict):
        return found
    kind, content = next(iter(found.items()), ("", None))
    if len(found) == 1 and kind == "float" and content in ("inf", "-inf", "nan"):
        return float(content)
    if len(found) == 1 and kind == "absent" and isinstance(content, str):
        return NotInFile(content)
    if len(found) == 1 and kind == "array":
        return read_array(content, "parameters")
    if len(found) == 1 and kind == "pairs" and isinstance(content, list):
        if all(isinstance(pair, list) and len(pair) == 2 and _is_label(pair[0]) for pair in content):
            return {key: _read(value) for key, value in content}
    raise ValueError("its parameters are not as they should be")


def write_array(values: NDArray[Any], what: str) -> dict[str, Any]:
    """Describe a one-dimensional array of labels."""
    dtype = "str" if values.dtype.kind == "U" else values.dtype.name
    plain = values.tolist()
    odd = [value for value in plain if not _is_label(value)]
    if dtype not in DTYPES or values.ndim != 1 or odd:
        kind = type(odd[0]).__name__ if odd else dtype
        raise ValueError(
            f"{what} of type {kind} can't be saved; accepted are strings, finite numbers and booleans. "
            "skops.io.dump saves any model"
        )
    return {"dtype": dtype, "values": plain}


def read_array(found: Any, what: str) -> NDArray[Any]:
    """Make an array of what `write_array` wrote."""
    dtype, values = _members(found, what, "dtype", "values")
    _expect(list, values, what)
    _require(dtype in DTYPES and all(map(_is_label, values)), what)
    if dtype == "object":
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    kinds = {"b": bool, "i": int, "u": int, "f": float}
    _require({type(value) for value in values} <= {kinds.get(np.dtype(dtype).kind, str)}, what)
    try:
        array = np.array(values, dtype=dtype)
    except (OverflowError, ValueError):  # such as 300 in 8 bits
        raise ValueError(f"its {what} are not as they should be") from None
    _require(array.tolist() == values, what)  # such as 0.1 in 32 bits
    return array


def read_classes(found: Any) -> NDArray[Any]:
    """Make the class labels of what `write_array` wrote."""
    classes = read_array(found, "classes")
    labels = classes.tolist()
    try:
        in_order = all(low < high for low, high in zip(labels[:-1], labels[1:], strict=True))
    except TypeError:
        in_order = False
    _require(bool(labels) and in_order, "classes")
    return classes


def write_schema(schema: Schema) -> dict[str, Any]:
    """Describe the columns: names, and for categorical ones the categories and their bins."""
    columns = list(zip(schema.names, schema.categories, strict=True))
    return {"names": schema.names, "categories": [_write_categories(*column) for column in columns]}


def _write_categories(name: str, bins: dict[Hashable, int] | None) -> Any:
    if bins is None:
        return None
    odd = [value for value in bins if not _is_category(value)]
    if odd:
        raise ValueError(
            f"column {name!r} has categories of type {type(odd[0]).__name__}, which can't be saved; accepted are "
            "strings and finite numbers. skops.io.dump saves any model"
        )
    # Most often each category has a bin of its own, in order.
    numbered = list(bins.values()) == list(range(len(bins)))
    return {"values": list(bins)} if numbered else {"values": list(bins), "bins": list(bins.values())}


def read_schema(found: Any) -> Schema:
    """Make a schema of what `write_schema` wrote."""
    names, categories = _members(found, "columns", "names", "categories")
    _expect(list, names, "columns")
    _expect(list, categories, "columns")
    _require(all(isinstance(name, str) for name in names), "columns")
    _require(0 < len(names) == len(categories) <= 65535, "columns")
    return Schema(names, [_read_categories(column) for column in categories])


def _read_categories(found: Any) -> dict[Hashable, int] | None:
    if found is None:
        return None
    values = _expect(dict, found, "categories").get("values")
    _expect(list, values, "categories")
    bins = found.get("bins", list(range(len(values))))
    _expect(list, bins, "categories")
    _require(set(found) <= {"values", "bins"} and len(bins) == len(values), "categories")
    _require(all(type(bin) is int and 0 <= bin < MOST_BINS for bin in bins), "categories")
    _require(all(map(_is_category, values)) and len(set(values)) == len(values), "categories")
    return dict(zip(values, bins, strict=True))


def read_trace(names: Any, columns: NDArray[Any]) -> Trace:
    """Make a trace of the names of its columns and their values."""
    kinds: dict[str, Callable[[float], float]] = {
        column.name: int if column.type == "list[int]" else float for column in fields(Trace)
    }
    _require(isinstance(names, list) and names == list(kinds), "trace")
    _require(columns.dtype.str[1:] == "f8" and columns.ndim == 2 and len(columns) == len(names), "trace")
    _require(bool(np.isfinite(columns).all()), "trace")
    rows = dict(zip(names, columns.tolist(), strict=True))
    _require(all(0 <= gain <= 1 for gain in rows["gain"]), "trace")
    return Trace(**{name: [kinds[name](value) for value in values] for name, values in rows.items()})


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int) or _is_finite(value)


def _is_category(value: Any) -> bool:
    return not isinstance(value, bool) and _is_label(value)


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and bool(np.isfinite(value))


def _members(found: Any, what: str, *names: str) -> list[Any]:
    """Return the members of an object that has just these."""
    _require(isinstance(found, dict) and set(found) == set(names), what)
    return [found[name] for name in names]


def _expect(kind: type, found: Any, what: str) -> Any:
    _require(isinstance(found, kind), what)
    return found


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"its {what} are not as they should be")
