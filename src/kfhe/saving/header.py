"""The header of a model file: parameters, classes and columns as plain JSON, and back.

Files are not trusted. Classes and columns must be exactly what would be written for the values that were
read, so only a few things need separate checks. Classifiers validate their parameters themselves.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.forest import SCORE_SETTINGS, STEPS_OF_SHARPNESS
from kfhe.tables.dates import PARTS
from kfhe.tables.readings import DATES, READINGS
from kfhe.tables.schema import ENCODED, LEFT_OUT, Rule, Schema
from kfhe.target_encoding import TargetEncoding
from kfhe.trace import COLUMNS, TIME, Trace

# Types of arrays; strings are as wide as necessary.
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *INTEGERS, "float16", "float32", "float64", "str", "object")
MOST_BINS = 255
MOST_COLUMNS = 65535
TRACE = tuple(name for name in COLUMNS if name != TIME)


class NotInFile:
    """Stands for a function that a model was trained with, because files can't contain functions.

    Parameters
    ----------
    name : str
        Name of the function.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}, not in the model file>"

    def __call__(self, *arguments: Any) -> Any:
        """Raise an error, because the function is not available."""
        raise RuntimeError(
            f"the function {self.name} is not in the file that the model was loaded from; "
            "set the parameter with set_params before fitting again"
        )


def parse(text: bytes | str) -> Any:
    """Parse strict JSON: UTF-8, no duplicate keys, no NaN."""
    text = text.decode("utf-8") if isinstance(text, bytes) else text
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refused)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None


@contextmanager
def section(what: str) -> Iterator[None]:
    """Add the name of a section of the header to errors."""
    wrong = f"there is something wrong with its {what}"
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{wrong}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError):
        raise ValueError(wrong) from None


def require(condition: Any) -> None:
    """Raise an error for `section` unless a condition holds."""
    if not condition:
        raise TypeError


def require_same(written: Any, found: Any) -> None:
    """Raise unless the file has exactly what would be written, including types of numbers."""
    require(json.dumps(written) == json.dumps(found))


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("JSON has a key twice")
    return members


def _refused(constant: str) -> Any:
    raise ValueError(f"JSON has {constant}")


def write_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Convert parameters to JSON; a `random_state` other than an int becomes None."""
    seed = parameters.get("random_state")
    if not isinstance(seed, int | np.integer):
        parameters = {**parameters, **dict.fromkeys(parameters.keys() & {"random_state"})}
    return {name: _write(value, f"{name}=") for name, value in parameters.items()}


def _write(value: Any, what: str) -> Any:
    """Convert a value to JSON; an object with a single key stands for types that JSON lacks."""
    from kfhe.early_stopping import EarlyStopping  # they import scikit-learn, which prediction does without
    from kfhe.state_space import StateSpace
    from kfhe.tree import CARTClassifier

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, int) or _is_label(value):
        return value
    if isinstance(value, dict):
        return {"pairs": [[_write(key, what), _write(item, what)] for key, item in value.items()]}
    if isinstance(value, np.ndarray):
        return {"array": write_array(value, what)}
    if type(value) is CARTClassifier:
        return {"tree": write_parameters(value.get_params(deep=False))}
    if isinstance(value, StateSpace):
        return {"state_space": write_parameters(value.get_params(deep=False))}
    if isinstance(value, EarlyStopping):
        parts = [value.rounds, value.scoring, value.validation_fraction]
        return {"early_stopping": [_write(part, what) for part in parts if part is not None]}
    if isinstance(value, NotInFile):
        return {"absent": value.name}
    if callable(value):
        return {"absent": getattr(value, "__qualname__", type(value).__qualname__)}
    try:
        return [_write(item, what) for item in value]
    except TypeError:
        raise _not_saved(what, value) from None


def read_parameters(found: dict[str, Any]) -> dict[str, Any]:
    """Read the result of `write_parameters`."""
    return {name: _read(value) for name, value in found.items()}


def _read(found: Any) -> Any:
    match found:
        case list():
            return [_read(item) for item in found]
        case {"absent": str(name)}:
            return NotInFile(name)
        case {"array": array}:
            return read_array(array)
        case {"early_stopping": [rounds, scoring, *fraction]}:
            from kfhe.early_stopping import EarlyStopping

            return EarlyStopping(rounds, _read(scoring), *fraction)
        case {"tree": parameters}:
            from kfhe.tree import CARTClassifier

            return _checked(CARTClassifier(**read_parameters(parameters)))
        case {"state_space": parameters}:
            from kfhe.state_space import StateSpace

            return _checked(StateSpace(**read_parameters(parameters)))
        case {"pairs": pairs}:
            require(all(_is_label(key) for key, _ in pairs))
            return {key: _read(value) for key, value in pairs}
    require(not isinstance(found, dict))
    return found


def _checked(estimator: Any) -> Any:
    estimator._validate_params()
    return estimator


def write_array(values: NDArray[Any], what: str) -> dict[str, Any]:
    """Convert an array of labels to JSON."""
    dtype = "str" if values.dtype.kind == "U" else values.dtype.name
    labels = [label.item() if isinstance(label, np.generic) else label for label in values.tolist()]
    for label in labels:
        if not _is_label(label):
            raise _not_saved(what, label)
    if dtype not in DTYPES:
        raise _not_saved(what, values[0])
    return {"dtype": dtype, "values": labels}


def read_array(found: Any) -> NDArray[Any]:
    """Read the result of `write_array`."""
    dtype, values = found["dtype"], found["values"]
    require(dtype in DTYPES and all(map(_is_label, values)))
    if dtype != "object":
        return np.array(values, dtype=dtype)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@section("classes")
def read_classes(found: Any) -> NDArray[Any]:
    """Read the class labels: a sorted result of `write_array`."""
    classes = read_array(found)
    labels = classes.tolist()
    require(labels and labels == sorted(set(labels)))
    require_same(write_array(classes, "classes"), found)
    return classes


def write_schema(schema: Schema) -> dict[str, Any]:
    """Convert the columns to JSON: names, categories and rules."""
    categories = [
        _write_categories(name, bins)
        for name, bins in zip(schema.columns, schema.column_categories, strict=True)
    ]
    columns: dict[str, Any] = {"names": schema.columns, "categories": categories}
    if schema.rules:
        columns["rules"] = [[j, rule.reading, *rule.parts] for j, rule in schema.rules]
    if schema.encodings:
        columns["shares"] = [encoding.shares.tolist() for encoding in schema.encodings.values()]
    return columns


def _write_categories(name: str, bins: dict[Hashable, int] | None) -> dict[str, Any] | None:
    if bins is None:
        return None
    for category in bins:
        if not _is_label(category):
            raise _not_saved(f"categories of column {name!r}", category)
    own_bins = list(bins.values()) == list(range(len(bins)))  # the usual case
    return {"values": list(bins)} if own_bins else {"values": list(bins), "bins": list(bins.values())}


@section("columns")
def read_schema(found: Any) -> Schema:
    """Read the result of `write_schema`."""
    names, known = found["names"], [_read_categories(column) for column in found["categories"]]
    rules = tuple((j, Rule(reading, tuple(parts))) for j, reading, *parts in found.get("rules", []))
    encoded = [j for j, rule in rules if rule.reading == ENCODED]
    encodings = {
        j: TargetEncoding(known[j] or {}, np.array(rows, dtype=np.float64))
        for j, rows in zip(encoded, found.get("shares", []), strict=True)
    }
    special = {j for j, rule in rules if rule.reading in (ENCODED, LEFT_OUT)}
    bins = [None if j in special else each for j, each in enumerate(known)]
    schema = Schema.of_columns(names, bins, rules, encodings)
    places = [j for j, _ in rules]
    require(0 < len(names) == len(known) and len(schema.names) <= MOST_COLUMNS)
    require(all(isinstance(name, str) for name in names))
    require(all(type(bin) is int and 0 <= bin < MOST_BINS for each in bins if each for bin in each.values()))
    require(all(type(j) is int for j in places) and places == sorted({*places} & {*range(len(names))}))
    require(all(_fits(rule, known[j], encodings.get(j)) for j, rule in rules))
    require_same(write_schema(schema), found)
    return schema


def _fits(rule: Rule, categories: dict[Hashable, int] | None, encoding: TargetEncoding | None) -> bool:
    """Whether a rule is valid for a column with these categories."""
    if encoding is not None and categories is not None:
        shares = encoding.shares
        return (
            [*categories.values()] == [*range(len(categories))]
            and all(isinstance(part, str) and part for part in rule.parts)
            and shares.shape == (len(categories) + 1, len(rule.parts) + 1)
            and bool(((shares >= 0) & (shares <= 1)).all())
        )
    if rule.reading == LEFT_OUT:
        return categories is not None and not rule.parts
    known = PARTS if rule.reading in DATES else ()
    parts = tuple(part for part in known if part in rule.parts)
    return rule.reading in READINGS and categories is None and rule.parts == parts


def _read_categories(found: Any) -> dict[Hashable, int] | None:
    if found is None:
        return None
    values = found["values"]
    require(all(map(_is_label, values)))
    return dict(zip(values, found.get("bins", range(len(values))), strict=True))


@section("trace")
def read_trace(names: Any, columns: NDArray[Any]) -> Trace:
    """Create a trace from names and values of its columns."""
    require(names == list(TRACE) and columns.dtype.str[1:] == "f8" and np.isfinite(columns).all())
    trace = dict(zip(TRACE, columns.tolist(), strict=True))
    for name in ("gain", "step", "transition"):
        require(all(0 <= value <= 1 for value in trace[name]))
    return Trace({**trace, "resets": [int(resets) for resets in trace["resets"]]})


@section("rules")
def read_score_settings(found: Any, n_classes: int) -> dict[str, Any]:
    """Read how leaves vote and how scores are used."""
    require(found.keys() == {*SCORE_SETTINGS})
    settings = {**found, "class_shares": tuple(found["class_shares"])}
    shares = settings["class_shares"]
    numbers = [value for name, value in settings.items() if name != "class_shares"]
    require(all(type(value) is float and 0 <= value < 1e6 for value in (*numbers, *shares)))
    require(len(shares) in (0, n_classes) and (not shares or abs(sum(shares) - 1) < 0.01))
    require(settings["prior_power"] <= 1 and 0.5 <= settings["sharpness"] <= 8)
    require((STEPS_OF_SHARPNESS * settings["sharpness"]).is_integer())
    return settings


@section("findings")
def read_found(found: Any, names: tuple[str, ...]) -> dict[str, float | str]:
    """Read fitted attributes."""
    require(found.keys() <= {*names})
    for value in found.values():
        require(isinstance(value, str) or (type(value) is float and 0 <= value < 1e6))
    return dict(found)


def _is_label(value: Any) -> bool:
    """Whether a value can be a class or a category; long integers could be slow to look up."""
    if isinstance(value, float):
        return bool(np.isfinite(value))
    return isinstance(value, str) or (isinstance(value, int) and -(2**63) <= value < 2**64)


def _not_saved(what: str, value: Any) -> ValueError:
    return ValueError(
        f"{what} of type {type(value).__name__} can't be saved; accepted are strings, finite numbers and "
        "booleans. To save the model as it is, use skops.io.dump"
    )
