"""Export to ONNX: a graph from raw columns to labels and probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from kfhe.export.plain_trees import PlainTrees, check_names
from kfhe.forest import LEAF

# The oldest possible version, for old runtimes: LabelEncoder supports doubles since ai.onnx.ml 4.
IR_VERSION, OPSET, ML_OPSET = 8, 13, 4
ML = "ai.onnx.ml"


def onnx_model(model: Any) -> onnx.ModelProto:
    """Build the graph described in `kfhe.export.to_onnx`."""
    plain = PlainTrees.of(
        model, otherwise="skl2onnx exports other components, one by one, from model.estimators_"
    )
    inputs, nodes, matrix = _read_columns(plain)
    names = {value.name for value in inputs} | {matrix}
    label, probabilities, best, table = (
        _unused(name, names) for name in ("label", "probabilities", "best", "classes")
    )
    scores = _unused("scores", names) if plain.forest.sharpness != 1 else probabilities
    sharpening, numbers = _sharpening(plain, scores, probabilities, names)
    weighing, factors, weighed = _weighing(plain, scores, names)
    nodes += [
        helper.make_node("TreeEnsembleRegressor", [matrix], [scores], domain=ML, **_tree_attributes(plain)),
        *sharpening,
        *weighing,
        helper.make_node("ArgMax", [weighed], [best], axis=1, keepdims=0),
        helper.make_node("Gather", [table, best], [label]),
    ]
    labels = _label_tensor(plain.classes, table)
    graph = helper.make_graph(
        nodes,
        "kfhe",
        inputs,
        [
            helper.make_tensor_value_info(label, labels.data_type, [None]),
            helper.make_tensor_value_info(probabilities, TensorProto.FLOAT, [None, len(plain.classes)]),
        ],
        initializer=[labels, *numbers, *factors],
    )
    return helper.make_model(
        graph,
        producer_name="kfhe",
        producer_version=version("kfhe"),
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)],
    )


def _weighing(
    plain: PlainTrees, scores: str, names: set[str]
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto], str]:
    """Return the nodes that multiply scores by the class factors, if any, and the name of the product."""
    if not plain.forest.prior_power:
        return [], [], scores
    factors, weighed = _unused("class factors", names), _unused("weighed scores", names)
    numbers = numpy_helper.from_array(plain.forest.class_factors.astype(np.float32), factors)
    return [helper.make_node("Mul", [scores, factors], [weighed])], [numbers], weighed


def _sharpening(
    plain: PlainTrees, scores: str, probabilities: str, names: set[str]
) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """Return the nodes that turn scores into probabilities, as in `Forest.probabilities`."""
    if plain.forest.sharpness == 1:
        return [], []
    sharpness, axis, powers, total = (
        _unused(name, names) for name in ("sharpness", "axis", "powers", "total")
    )
    numbers = [
        numpy_helper.from_array(np.array(plain.forest.sharpness, dtype=np.float32), sharpness),
        numpy_helper.from_array(np.array([1]), axis),
    ]
    nodes = [
        helper.make_node("Pow", [scores, sharpness], [powers]),
        helper.make_node("ReduceSum", [powers, axis], [total], keepdims=1),
        helper.make_node("Div", [powers, total], [probabilities]),
    ]
    return nodes, numbers


def _unused(name: str, names: set[str]) -> str:
    """Return a name that no other value has, and reserve it."""
    while name in names:
        name += "_"
    names.add(name)
    return name


def _read_columns(plain: PlainTrees) -> tuple[list[onnx.ValueInfoProto], list[onnx.NodeProto], str]:
    """Return the inputs, the nodes that turn them into a matrix of numbers, and its name.

    Columns that were left out in training are inputs, too, so that the graph takes the same tables as the
    model.
    """
    schema = plain.forest.schema
    if all(categories is None for categories in schema.column_categories):
        shape = [None, len(schema.names)]
        return [helper.make_tensor_value_info("X", TensorProto.DOUBLE, shape)], [], "X"
    check_names(schema.columns)
    names = {*schema.columns, *schema.names}
    inputs, nodes, numbers = [], [], []
    for j, (name, categories) in enumerate(zip(schema.columns, schema.column_categories, strict=True)):
        kind: int = TensorProto.DOUBLE
        if categories is not None:
            kind, keys = _keys(name, list(categories))
        for k in (k for k, column in enumerate(schema.feature_columns) if column == j):
            numbers.append(name)
            if categories is not None:
                numbers[-1] = _unused(f"{schema.names[k]} as a number", names)
                nodes += _lookup(name, numbers[-1], kind, keys, *_values(plain, k), names)
        inputs.append(helper.make_tensor_value_info(name, kind, [None, 1]))
    if not numbers:  # all columns were left out, but the number of rows is needed
        kind, keys = _keys(schema.columns[0], [])
        numbers.append(_unused(f"{schema.columns[0]} as a number", names))
        nodes += _lookup(schema.columns[0], numbers[0], kind, keys, [np.nan], np.nan, names)
    matrix = _unused("X", names)
    nodes.append(helper.make_node("Concat", numbers, [matrix], axis=1))
    return inputs, nodes, matrix


def _values(plain: PlainTrees, k: int) -> tuple[list[float], float]:
    """Return the value of feature k for each category, and for others."""
    schema = plain.forest.schema
    j = schema.feature_columns[k]
    if j in schema.encodings:
        *known, other = schema.shares(k).tolist()
        return known, other
    positions, categories = plain.positions[k], schema.categories[k]
    assert positions is not None
    assert categories is not None
    return [float(positions[bin]) for bin in categories.values()] or [np.nan], np.nan


def _lookup(
    column: str,
    made: str,
    kind: int,
    keys: NDArray[Any],
    values: list[float],
    other: float,
    names: set[str],
) -> list[onnx.NodeProto]:
    """Return the nodes that turn a column of categories into numbers; missing values stay missing."""
    if kind == TensorProto.STRING and not np.isnan(other) and "" not in keys:
        keys, values = np.append(keys, ""), [*values, np.nan]
    found = made if kind == TensorProto.STRING or np.isnan(other) else _unused(f"{made}, gaps aside", names)
    lookup = helper.make_node(
        "LabelEncoder",
        [column],
        [found],
        domain=ML,
        keys_tensor=numpy_helper.from_array(keys),
        values_tensor=numpy_helper.from_array(np.array(values)),
        default_tensor=numpy_helper.from_array(np.array([other])),
    )
    if found == made:
        return [lookup]
    is_gap = _unused(f"{made}, gap", names)
    return [
        lookup,
        helper.make_node("IsNaN", [column], [is_gap]),
        helper.make_node("Where", [is_gap, column, found], [made]),
    ]


def _keys(name: str, categories: list[Hashable]) -> tuple[int, NDArray[Any]]:
    """Return the type of a categorical column, and its categories as an array."""
    if all(isinstance(category, str) for category in categories):
        return TensorProto.STRING, np.array(categories or [""], dtype=object)
    if not all(isinstance(category, int | float) for category in categories):
        kinds = sorted({type(category).__name__ for category in categories})
        raise ValueError(
            f"column {name!r} has categories of type {', '.join(kinds)}; ONNX takes strings or numbers"
        )
    keys = np.array(categories, dtype=np.float64)
    if len(np.unique(keys)) < len(keys):
        raise ValueError(f"column {name!r} has categories that are the same number as float64")
    return TensorProto.DOUBLE, keys


def _label_tensor(labels: list[Any], name: str) -> onnx.TensorProto:
    """Return the class labels as strings, integers or booleans."""
    if all(isinstance(label, str) for label in labels):
        return numpy_helper.from_array(np.array(labels, dtype=object), name)
    if all(isinstance(label, bool) for label in labels):
        return numpy_helper.from_array(np.array(labels), name)
    if all(isinstance(label, int | float) and label == int(label) for label in labels):
        return numpy_helper.from_array(np.array(labels, dtype=np.int64), name)
    kinds = sorted({type(label).__name__ for label in labels})
    raise ValueError(f"the classes are of type {', '.join(kinds)}; ONNX gives strings, integers or booleans")


# The attributes of TreeEnsembleRegressor: one row per node, and one per leaf and class.
NODES = np.dtype(
    [
        ("nodes_treeids", "i8"),
        ("nodes_nodeids", "i8"),
        ("nodes_modes", "U10"),
        ("nodes_featureids", "i8"),
        ("nodes_values_as_tensor", "f8"),
        ("nodes_truenodeids", "i8"),
        ("nodes_falsenodeids", "i8"),
        ("nodes_missing_value_tracks_true", "i8"),
    ]
)
TARGETS = np.dtype(
    [
        ("target_treeids", "i8"),
        ("target_nodeids", "i8"),
        ("target_ids", "i8"),
        ("target_weights_as_tensor", "f8"),
    ]
)


def _tree_attributes(plain: PlainTrees) -> dict[str, Any]:
    """Convert the trees to attributes of the operator TreeEnsembleRegressor, which adds up scores."""
    nodes: list[tuple[Any, ...]] = []
    targets: list[tuple[Any, ...]] = []
    first_leaf = plain.forest.tree_leaves
    for t, tree in enumerate(plain.forest):
        nodes += _branches(plain, t)  # first, because the first node is the root
        votes = plain.votes[first_leaf[t] : first_leaf[t + 1]]
        for i in np.flatnonzero(tree.nodes["kind"] == LEAF).tolist():
            nodes.append((t, i, "LEAF", 0, 0.0, 0, 0, 0))
            vote = votes[tree.nodes["left"][i]]
            targets += [(t, i, k, vote[k]) for k in np.flatnonzero(vote).tolist()]
    attributes: dict[str, Any] = {"n_targets": plain.votes.shape[1]}
    for rows in (np.array(nodes, dtype=NODES), np.array(targets, dtype=TARGETS)):
        for name in rows.dtype.names or ():
            as_tensor = name.endswith("_as_tensor")
            attributes[name] = numpy_helper.from_array(rows[name]) if as_tensor else rows[name].tolist()
    return attributes


def _branches(plain: PlainTrees, t: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a tree's splits.

    A set of categories becomes a chain of thresholds. If one holds, it leads to one of the two children, and
    otherwise to the next threshold. So a child can have many parents, but is the false branch of only one of
    them, as onnxruntime requires.
    """
    tree = plain.forest[t]
    new = len(tree.nodes)  # number of the next node in a chain
    for i, split in plain.splits(t):
        children = {True: int(tree.nodes["left"][i]), False: int(tree.nodes["left"][i]) + 1}
        chain = [i, *range(new, new + len(split.steps) - 1)]
        new += len(chain) - 1
        for k, (threshold, left) in enumerate(split.steps):
            otherwise = chain[k + 1] if k + 1 < len(chain) else children[not left]
            missing = left == split.missing_left
            yield t, chain[k], "BRANCH_LEQ", split.feature, threshold, children[left], otherwise, missing
