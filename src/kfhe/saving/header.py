"""The header of a model file: parameters, classes and columns as plain JSON, and back.

What is read comes from anywhere: it is checked, and a ValueError says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.forest import RULES, STEPS_OF_SHARPNESS
from kfhe.tables.dates import PARTS
from kfhe.tables.features import ENCODED, LEFT_OUT, Encodings, Rule, Rules
from kfhe.tables.readings import DATES, READINGS
from kfhe.tables.schema import Schema
from kfhe.target_encoding import TargetEncoding
from kfhe.trace import COLUMNS, TIME, Trace

# Types of arrays, and of their members; strings are as wide as they have to be.
MEMBERS = {
    "bool": bool,
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), int),
    **dict.fromkeys(("float16", "float32", "float64"), float),
    "str": str,
    "object": object,
}
MOST_BINS = 255
MOST_COLUMNS = 65535
TRACE = tuple(name for name in COLUMNS if name != TIME)


class NotInFile:
    """Stands in for a function that a model was trained with, as its file can't hold one.

    Parameters
    ----------
    name : str
        What the function was called.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}, not in the model file>"

    def __call__(self, *arguments: Any) -> Any:
        """Raise an error: the function is not here."""
        raise RuntimeError(
            f"the function {self.name} is not in the file that the model was loaded from; "
            "set the parameter with set_params before fitting again"
        )


def parse(text: bytes | str) -> Any:
    """Parse JSON that is strict: UTF-8, no key twice, no NaN."""
    text = text.decode("utf-8") if isinstance(text, bytes) else text
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refused)
    except RecursionError:
        raise ValueError("JSON is nested too deeply") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("JSON has a key twice")
    return members


def _refused(constant: str) -> Any:
    raise ValueError(f"JSON has {constant}")


def write_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Describe parameters; a `random_state` other than an int is not kept."""
    seed = parameters.get("random_state")
    if not isinstance(seed, int | np.integer):
        parameters = {**parameters, **dict.fromkeys(parameters.keys() & {"random_state"})}
    return {name: _write(value, f"{name}=") for name, value in parameters.items()}


def read_parameters(found: Any) -> dict[str, Any]:
    """Read what `write_parameters` wrote."""
    _require(isinstance(found, dict), "parameters")
    return {name: _read(value) for name, value in found.items()}


def _write(value: Any, what: str) -> Any:
    """Describe a value: an object of JSON with one key stands for what JSON doesn't have."""
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


def _read(found: Any, levels: int = 4) -> Any:
    _require(levels > 0, "parameters")
    match found:
        case None | bool() | int() | float() | str():
            return found
        case list():
            return [_read(item, levels - 1) for item in found]
        case {"absent": str(name)}:
            return NotInFile(name)
        case {"array": array}:
            return read_array(array, "parameters")
        case {"early_stopping": [rounds, str() | {"absent": str()} as scoring, *fraction]} if (
            len(fraction) < 2
        ):
            from kfhe.early_stopping import EarlyStopping

            return EarlyStopping(rounds, _read(scoring, levels - 1), *fraction)
        case {"tree": dict(parameters)}:
            from kfhe.tree import CARTClassifier

            return _read_into(CARTClassifier(), parameters, levels - 1)
        case {"state_space": dict(parameters)}:
            from kfhe.state_space import StateSpace

            return _read_into(StateSpace(), parameters, levels - 1)
        case {"pairs": list(pairs)}:
            _require(all(isinstance(pair, list) and len(pair) == 2 for pair in pairs), "parameters")
            _require(all(_is_label(key) for key, _ in pairs), "parameters")
            return {key: _read(value, levels - 1) for key, value in pairs}
    raise ValueError("there is something wrong with its parameters")


def _read_into(estimator: Any, parameters: dict[str, Any], levels: int) -> Any:
    """Read the parameters of what is itself a parameter."""
    _require(parameters.keys() <= estimator.get_params().keys(), "parameters")
    estimator.set_params(**{name: _read(value, levels) for name, value in parameters.items()})
    estimator._validate_params()
    return estimator


def write_array(values: NDArray[Any], what: str) -> dict[str, Any]:
    """Describe an array of labels."""
    dtype = "str" if values.dtype.kind == "U" else values.dtype.name
    labels = [label.item() if isinstance(label, np.generic) else label for label in values.tolist()]
    for label in labels:
        if not _is_label(label):
            raise _not_saved(what, label)
    if dtype not in MEMBERS:
        raise _not_saved(what, values[0])
    return {"dtype": dtype, "values": labels}


def read_array(found: Any, what: str) -> NDArray[Any]:
    """Read what `write_array` wrote."""
    dtype, values = _members(found, what, "dtype", "values")
    _require(isinstance(dtype, str) and dtype in MEMBERS and isinstance(values, list), what)
    _require(all(map(_is_label, values)), what)
    if dtype == "object":
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    _require(all(type(value) is MEMBERS[dtype] for value in values), what)
    if MEMBERS[dtype] is int:
        _require(all(np.iinfo(dtype).min <= value <= np.iinfo(dtype).max for value in values), what)
    array = np.array(values, dtype=dtype)
    _require(array.tolist() == values, what)  # not so with 0.1 in 32 bits
    return array


def read_classes(found: Any) -> NDArray[Any]:
    """Read the class labels: what `write_array` wrote, in order."""
    classes = read_array(found, "classes")
    try:
        in_order = all(low < high for low, high in pairwise(classes.tolist()))
    except TypeError:
        in_order = False
    _require(in_order and len(classes) > 0, "classes")
    return classes


def write_schema(schema: Schema) -> dict[str, Any]:
    """Describe the columns: their names, the categories of those that have them, and rules."""
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
    own_bins = list(bins.values()) == list(range(len(bins)))  # as most often
    return {"values": list(bins)} if own_bins else {"values": list(bins), "bins": list(bins.values())}


def read_schema(found: Any) -> Schema:
    """Read what `write_schema` wrote."""
    names, categories = _members(found, "columns", "names", "categories")
    _require(isinstance(names, list) and isinstance(categories, list), "columns")
    _require(0 < len(names) == len(categories) <= MOST_COLUMNS, "columns")
    _require(all(isinstance(name, str) for name in names), "columns")
    known = [_read_categories(column) for column in categories]
    rules = _read_rules(found.get("rules", []), known)
    encodings = _read_encodings(found.get("shares", []), known, rules)
    special = {j for j, rule in rules if rule.reading in (ENCODED, LEFT_OUT)}
    bins = [None if j in special else each for j, each in enumerate(known)]
    _require(all(max(each.values(), default=0) < MOST_BINS for each in bins if each), "categories")
    schema = Schema.of_columns(names, bins, rules, encodings)
    _require(len(schema.names) <= MOST_COLUMNS, "columns")
    return schema


def _read_rules(found: Any, categories: list[dict[Hashable, int] | None]) -> Rules:
    """Read how columns are read that are neither plain numbers nor categories, in the columns' order."""
    _require(isinstance(found, list), "rules of columns")
    rules: list[tuple[int, Rule]] = []
    for entry in found:
        match entry:
            case [int(j), str(reading), *parts] if type(j) is int and 0 <= j < len(categories):
                _require(not rules or rules[-1][0] < j, "rules of columns")
                if reading == ENCODED:
                    _require(categories[j] is not None, "rules of columns")
                    _require(all(isinstance(part, str) and part for part in parts), "rules of columns")
                else:
                    known = list(PARTS) if reading in DATES else []
                    _require(reading == LEFT_OUT or reading in READINGS, "rules of columns")
                    _require((categories[j] is None) == (reading != LEFT_OUT), "rules of columns")
                    _require(parts == [part for part in known if part in parts], "rules of columns")
                rules.append((j, Rule(reading, tuple(parts))))
            case _:
                _require(False, "rules of columns")
    return tuple(rules)


def _read_encodings(found: Any, categories: list[dict[Hashable, int] | None], rules: Rules) -> Encodings:
    """Read what categories stand for, in the columns that have such a rule."""
    encoded = [(j, rule) for j, rule in rules if rule.reading == ENCODED]
    _require(isinstance(found, list) and len(found) == len(encoded), "shares of classes")
    encodings = {}
    for (j, rule), rows in zip(encoded, found, strict=True):
        known = categories[j] or {}
        width = 1 + len(rule.parts)
        _require([*known.values()] == [*range(len(known))], "categories")
        _require(isinstance(rows, list) and len(rows) == len(known) + 1, "shares of classes")
        _require(all(isinstance(row, list) and len(row) == width for row in rows), "shares of classes")
        _require(
            all(type(share) is float and 0 <= share <= 1 for row in rows for share in row),
            "shares of classes",
        )
        encodings[j] = TargetEncoding(known, np.array(rows))
    return encodings


def _read_categories(found: Any) -> dict[Hashable, int] | None:
    if found is None:
        return None
    (values,) = _members(found, "categories", "values")
    _require(isinstance(values, list), "categories")
    bins = found.get("bins", list(range(len(values))))
    _require(isinstance(bins, list) and len(bins) == len(values), "categories")
    _require(all(type(bin) is int and bin >= 0 for bin in bins), "categories")
    _require(all(map(_is_label, values)) and len(set(values)) == len(values), "categories")
    return dict(zip(values, bins, strict=True))


def read_trace(names: Any, columns: NDArray[Any]) -> Trace:
    """Make a trace of the names and the values of its columns; columns from the future are left aside."""
    _require(isinstance(names, list) and all(isinstance(name, str) for name in names), "trace")
    _require(len(set(names)) == len(names) and set(TRACE) <= set(names), "trace")
    _require(columns.dtype.str[1:] == "f8" and columns.ndim == 2 and len(columns) == len(names), "trace")
    _require(bool(np.isfinite(columns).all()), "trace")
    found = dict(zip(names, columns, strict=True))
    for name in ("gain", "step", "transition"):
        _require(bool(((found[name] >= 0) & (found[name] <= 1)).all()), "trace")
    trace = {name: found[name].tolist() for name in TRACE}
    return Trace({**trace, "resets": [int(resets) for resets in trace["resets"]]})


def read_rules(found: Any, n_classes: int) -> dict[str, Any]:
    """Read how leaves vote and how scores are used."""
    rules = dict(zip(RULES, _members(found, "rules", *RULES), strict=True))
    shares = rules.pop("class_shares")
    _require(isinstance(shares, list) and len(shares) in (0, n_classes), "rules")
    _require(all(type(value) is float and 0 <= value < 1e6 for value in (*rules.values(), *shares)), "rules")
    _require(not shares or abs(sum(shares) - 1) < 0.01, "rules")
    _require(rules["prior_power"] <= 1 and 0.5 <= rules["sharpness"] <= 8, "rules")
    _require((STEPS_OF_SHARPNESS * rules["sharpness"]).is_integer(), "rules")
    return {**rules, "class_shares": tuple(shares)}


def read_found(found: Any, names: tuple[str, ...]) -> dict[str, float | str]:
    """Read what training found out, as far as it is known here."""
    _require(isinstance(found, dict), "findings")
    known = {name: found[name] for name in names if name in found}
    plain = (
        isinstance(value, str) or (type(value) is float and 0 <= value < 1e6) for value in known.values()
    )
    _require(all(plain), "findings")
    return known


def _is_label(value: Any) -> bool:
    """Whether a value can be a class or a category; longer numbers could be made to look up slowly."""
    if isinstance(value, float):
        return bool(np.isfinite(value))
    return isinstance(value, str) or (isinstance(value, int) and -(2**63) <= value < 2**64)


def _not_saved(what: str, value: Any) -> ValueError:
    return ValueError(
        f"{what} of type {type(value).__name__} can't be saved; accepted are strings, finite numbers and "
        "booleans. To save the model as it is, use skops.io.dump"
    )


def _members(found: Any, what: str, *names: str) -> list[Any]:
    _require(isinstance(found, dict) and set(names) <= set(found), what)
    return [found[name] for name in names]


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(f"there is something wrong with its {what}")
