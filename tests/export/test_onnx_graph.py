"""ONNX: onnxruntime gets from raw columns to the scores and labels of the model."""

import io
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from hypothesis import given, settings
from random_tables import models, random_classes, random_table
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import kfhe
from kfhe import CARTClassifier, KFHEClassifier
from kfhe.export import to_onnx


def open_session(graph):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # starting threads takes longer than all else
    return onnxruntime.InferenceSession(graph.SerializeToString(), options)


def run(model, X):
    """Return labels and probabilities for a table, as onnxruntime sees them."""
    graph = to_onnx(model)
    onnx.checker.check_model(graph, full_check=True)
    session = open_session(graph)
    inputs = {}
    for value in session.get_inputs():
        column = X if value.name == "X" else X[[value.name]]
        kind = object if value.type == "tensor(string)" else float
        inputs[value.name] = pd.DataFrame(column).to_numpy(dtype=kind)
    return session.run(None, inputs)


def check(model, X):
    labels, probabilities = run(model, X)
    scores = model.predict_proba(X)
    np.testing.assert_allclose(probabilities, scores, rtol=0, atol=1e-6)
    best = np.sort(scores, axis=1)[:, ::-1]
    clear = best[:, 0] - best[:, 1] > 1e-5 if scores.shape[1] > 1 else np.ones(len(scores), dtype=bool)
    assert labels[clear].tolist() == model.predict(X)[clear].tolist()


@settings(max_examples=40)
@given(models())
def test_scores_and_labels_are_those_of_the_model(model_and_rows):
    model, rows = model_and_rows
    check(model, rows)
    check(model, rows[-1:])  # onnxruntime goes other ways for a single row


def test_values_next_to_the_thresholds_go_the_same_way():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    model = KFHEClassifier(n_estimators=5, random_state=0).fit(X, random_classes(X.sum(axis=1), 3))
    nodes = model.estimators_.nodes
    thresholds = nodes["threshold"][nodes["kind"] != 0]
    values = np.concatenate([thresholds, *(np.nextafter(thresholds, end) for end in (-np.inf, np.inf))])
    check(model, np.column_stack([values, rng.permutation(values)]))


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (["no", "yes", "über"], "tensor(string)"),
        ([3, 5, -8], "tensor(int64)"),
        ([2.0, 4.0], "tensor(int64)"),
        ([False, True], "tensor(bool)"),
        (np.array(["a", "b"], dtype=object), "tensor(string)"),
        (np.array([np.int64(4), np.int64(7)], dtype=object), "tensor(int64)"),
    ],
)
def test_labels_are_of_the_type_of_the_classes(classes, kind):
    X, scores = random_table(np.random.default_rng(1), 100, [4], 0.1)
    model = KFHEClassifier(n_estimators=3).fit(X, np.asarray(classes)[random_classes(scores, len(classes))])
    check(model, X)
    session = open_session(to_onnx(model))
    assert session.get_outputs()[0].type == kind


def test_any_string_that_is_no_category_is_a_gap():
    rng = np.random.default_rng(2)
    X, scores = random_table(rng, 200, [6], 0.3)
    model = KFHEClassifier(n_estimators=5).fit(X, random_classes(scores, 2))
    probabilities = []
    for gap in ("", "unheard-of", None, np.nan):
        rows = X.copy()
        rows["category 0"] = pd.Series([gap] * len(X), dtype=object)
        probabilities.append(run(model, rows)[1])
    np.testing.assert_allclose(probabilities[0], model.predict_proba(rows), atol=1e-6)
    for other in probabilities[1:]:
        np.testing.assert_array_equal(other, probabilities[0])


def test_categories_can_be_numbers():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {"zip": rng.choice([10, 20, 35, 7], size=300), "half": rng.choice([0.5, -1.5, 2], size=300)}
    )
    X["flag"] = rng.random(300) < 0.5
    y = X["zip"].isin([10, 35]) ^ (X["half"] == 0.5) ^ X["flag"]
    model = KFHEClassifier(CARTClassifier(categorical_features=["zip", "half", "flag"]), n_estimators=5).fit(
        X, y
    )
    X.loc[:50, "zip"] = 99  # unknown
    check(model, X)
    model.fit(X.assign(zip=np.where(X["flag"], 2**60, 2**60 + 1)), y)
    with pytest.raises(ValueError, match="column 'zip' has categories that are the same number"):
        to_onnx(model)


def test_a_column_of_gaps_alone_can_be_a_category():
    X = pd.DataFrame({"a": np.arange(40.0), "b": pd.Series([None] * 40, dtype="category")})
    check(KFHEClassifier(n_estimators=2).fit(X, X["a"] > 20), X.assign(b=""))


def test_columns_that_no_graph_can_name_or_hold_are_refused():
    y = [0, 1] * 20
    mixed = pd.DataFrame({"a": pd.Series([1, "x"] * 20, dtype=object)})
    with pytest.raises(ValueError, match="'a' has categories of type int, str"):
        to_onnx(KFHEClassifier(n_estimators=1).fit(mixed, y))
    with pytest.raises(ValueError, match="need names"):
        to_onnx(KFHEClassifier(n_estimators=1).fit(pd.DataFrame({"": ["x", "y"] * 20}), y))


def test_outputs_make_way_for_columns_of_their_name():
    X = pd.DataFrame({"label": ["x", "y"] * 20, "X": np.arange(40.0), "probabilities": 1.0})
    model = KFHEClassifier(n_estimators=2).fit(X, [0, 1] * 20)
    session = open_session(to_onnx(model))
    assert [value.name for value in session.get_inputs()] == ["label", "X", "probabilities"]
    assert [value.name for value in session.get_outputs()] == ["label_", "probabilities_"]


def test_sets_of_categories_copy_no_leaves():
    X, scores = random_table(np.random.default_rng(4), 1000, [300, 40], 0.1)
    model = KFHEClassifier(n_estimators=5).fit(X, random_classes(scores, 4))
    (trees,) = [node for node in to_onnx(model).graph.node if node.op_type == "TreeEnsembleRegressor"]
    modes = next(list(item.strings) for item in trees.attribute if item.name == "nodes_modes")
    assert modes.count(b"LEAF") == len(model.estimators_.leaf_weights)


def test_a_single_tree_and_a_loaded_model_are_exported_too():
    X, scores = random_table(np.random.default_rng(5), 200, [5], 0.1)
    y = random_classes(scores, 3)
    check(CARTClassifier().fit(X, y), X)
    model, file = KFHEClassifier(n_estimators=3).fit(X, y), io.BytesIO()
    model.save(file)
    file.seek(0)
    assert to_onnx(kfhe.load(file)).SerializeToString() == to_onnx(model).SerializeToString()


def test_what_has_no_native_trees_is_told_what_to_use():
    X, y = np.arange(20.0).reshape(-1, 1), [0, 1] * 10
    with pytest.raises(NotFittedError):
        to_onnx(KFHEClassifier())
    with pytest.raises(ValueError, match="skl2onnx"):
        to_onnx(KFHEClassifier(LogisticRegression(), n_estimators=2).fit(X, y))
    with pytest.raises(TypeError, match="LogisticRegression"):
        to_onnx(LogisticRegression())


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "kfhe.export.onnx_graph")
    with pytest.raises(ImportError, match=r"kfhe\[onnx\]"):
        to_onnx(KFHEClassifier())
