"""Export to JSON: the trees of a model as text."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from kfhe.export.plain_trees import PlainTrees, check_names
from kfhe.forest import CATEGORICAL, LEAF, MISSING_LEFT, Tree
from kfhe.tables.schema import Schema


def json_text(model: Any) -> str:
    """Write the text described in `kfhe.export.to_json`."""
    plain = PlainTrees.of(model, otherwise="skops.io.dump saves models with other components")
    forest, schema = plain.forest, plain.forest.schema
    check_names(schema.names)
    _check_values("the classes", plain.classes)
    for name, categories in zip(schema.names, schema.categories, strict=True):
        _check_values(f"the categories of column {name!r}", categories or ())
    features = [
        {"name": name, "categories": None if categories is None else list(categories)} | _shares(schema, k)
        for k, (name, categories) in enumerate(zip(schema.names, schema.categories, strict=True))
    ]
    trees = []
    for t, tree in enumerate(forest):
        voting = "soft" if forest.soft or t == 0 else "hard"  # h_0 votes by shares
        head = _dump({"weight": float(forest.weights[t]), "voting": voting})
        votes = forest.tree_votes(t) if forest.shrinkage else None
        nodes = _lines(_dump(_node(tree, schema, i, votes)) for i in range(len(tree.nodes)))
        trees.append(f'{head[:-1]}, "nodes": {nodes}}}')
    head = _dump(
        {"format": "kfhe trees", "version": 1, "classes": plain.classes}
        | ({"class_factors": forest.class_factors.tolist()} if forest.prior_power else {})
        | ({"sharpness": forest.sharpness} if forest.sharpness != 1 else {})
    )
    return f'{head[:-1]},\n"features": {_lines(map(_dump, features))},\n"trees": {_lines(trees)}}}'


def _shares(schema: Schema, k: int) -> dict[str, Any]:
    """Return the column of an encoded feature, and its shares."""
    j = schema.feature_columns[k]
    if j not in schema.encodings:
        return {}
    column = schema.columns[j]
    categories = schema.encodings[j].categories
    _check_values(f"the categories of column {column!r}", categories)
    *known, other = schema.shares(k).tolist()
    return {"column": column, "shares": [*map(list, zip(categories, known, strict=True))], "other": other}


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _lines(items: Iterable[str]) -> str:
    """Return a JSON array with a line per item."""
    return "[\n" + ",\n".join(items) + "\n]"


def _check_values(what: str, values: Iterable[Hashable]) -> None:
    for value in values:
        if not isinstance(value, str | int | float) or value in (np.inf, -np.inf):
            raise ValueError(f"{what} can't be written to JSON: {value!r}; accepted are strings and numbers")


def _node(tree: Tree, schema: Schema, i: int, votes: Any) -> dict[str, Any]:
    node = tree.nodes[i]
    left = int(node["left"])
    if node["kind"] == LEAF:
        leaf: dict[str, Any] = {"class_weights": tree.leaf_weights[left].tolist()}
        return leaf if votes is None else leaf | {"votes": votes[left].tolist()}
    condition: dict[str, Any] = {"feature": schema.names[node["feature"]]}
    if node["kind"] & CATEGORICAL:
        goes_left = tree.bins_left(i)
        categories = schema.categories[node["feature"]] or {}
        condition["categories"] = [category for category, bin in categories.items() if goes_left[bin]]
    else:
        threshold = float(node["threshold"])
        condition["threshold"] = None if threshold == np.inf else threshold
    missing = "left" if node["kind"] & MISSING_LEFT else "right"
    return condition | {"missing": missing, "left": left, "right": left + 1}
