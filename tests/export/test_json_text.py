"""JSON: a short reader of the text gets the scores of the model, to the last bit."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from random_tables import models, random_classes, random_table
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.export import to_json


def goes_left(split, value, known):
    if value is None or value != value or (known is not None and value not in known):
        return split["missing"] == "left"
    if known is not None:
        return value in split["categories"]
    return split["threshold"] is None or value <= split["threshold"]


def read_scores(text, rows):
    model = json.loads(text)
    categories = {feature["name"]: feature["categories"] for feature in model["features"]}
    scores = np.zeros((len(rows), len(model["classes"])))
    for tree in model["trees"]:
        for total, row in zip(scores, rows, strict=True):
            node = tree["nodes"][0]
            while "class_weights" not in node:
                name = node["feature"]
                side = "left" if goes_left(node, row[name], categories[name]) else "right"
                node = tree["nodes"][node[side]]
            weights = node["class_weights"]
            if tree["voting"] == "hard":
                total[weights.index(max(weights))] += tree["weight"]
            else:
                total += [tree["weight"] * (weight / sum(weights)) for weight in weights]
    return scores


@settings(max_examples=20)
@given(models())
def test_a_reader_gets_the_scores_of_the_model(model_and_rows):
    model, rows = model_and_rows
    read = read_scores(to_json(model), rows.to_dict("records"))
    np.testing.assert_allclose(read, model.predict_proba(rows), rtol=0, atol=1e-15)


def test_a_split_on_gaps_alone_can_be_read():
    X = pd.DataFrame({"a": [1.0, None] * 20})
    tree = CARTClassifier().fit(X, [0, 1] * 20)
    root = json.loads(to_json(tree))["trees"][0]["nodes"][0]
    assert root == {"feature": "a", "threshold": None, "missing": "right", "left": 1, "right": 2}
    read = read_scores(to_json(tree), X.to_dict("records"))
    np.testing.assert_array_equal(read, tree.predict_proba(X))


def test_arrays_have_their_column_numbers_for_names():
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = KFHEClassifier(n_estimators=3, random_state=0).fit(X, np.where(X[:, 0] > X[:, 1], "ja", "nein"))
    text = to_json(model)
    assert json.loads(text)["classes"] == ["ja", "nein"]
    read = read_scores(text, [dict(zip("01", row, strict=True)) for row in X])
    np.testing.assert_array_equal(read, model.predict_proba(X))


def test_there_is_a_line_per_node():
    X, scores = random_table(np.random.default_rng(0), 200, [5], 0.1)
    model = KFHEClassifier(n_estimators=2).fit(X, random_classes(scores, 2))
    lines = to_json(model).splitlines()
    n_nodes = sum("class_weights" in line or "missing" in line for line in lines)
    assert n_nodes == len(model.estimators_.nodes)


def test_what_json_has_no_word_for_is_refused():
    days = [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)] * 20
    X = pd.DataFrame({"day": pd.Series(days, dtype="category")})
    with pytest.raises(ValueError, match=r"column 'day' .* datetime\.date\(2020, 1, 1\)"):
        to_json(KFHEClassifier(n_estimators=1).fit(X, [0, 1] * 20))


def test_what_has_no_native_trees_is_told_what_to_use():
    with pytest.raises(NotFittedError):
        to_json(KFHEClassifier())
    with pytest.raises(ValueError, match="skops"):
        to_json(KFHEClassifier(LogisticRegression(), n_estimators=2).fit([[1.0], [2.0]] * 9, [0, 1] * 9))
