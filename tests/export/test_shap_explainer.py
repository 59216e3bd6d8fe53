"""SHAP: the values are Shapley's, found here by trying all sets of features."""

import sys
from functools import cache
from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import shap
from random_tables import random_classes, random_table
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.export import shap_explainer, to_shap
from kfhe.forest import LEAF, MISSING_LEFT


def shapley_values(value_of, n_features):
    """Return Shapley values by the formula; `value_of` gets the set of the features that are known."""
    values = []
    for j in range(n_features):
        others = [k for k in range(n_features) if k != j]
        values.append(0)
        for size in range(n_features):
            weight = factorial(size) * factorial(n_features - size - 1) / factorial(n_features)
            for known in map(frozenset, combinations(others, size)):
                values[j] += weight * (value_of(known | {j}) - value_of(known))
    return np.array(values)


def interventional(model, row, background):
    """Return a function: mean prediction where the known features are the row's."""

    @cache
    def value_of(known):
        rows = background.copy()
        for j in known:
            rows[rows.columns[j]] = row.iloc[0, j]
        return model.predict_proba(rows).mean(axis=0)

    return value_of


def path_dependent(model, row):
    """Return a function: the mean vote, by training weight at splits on features that are not known."""
    forest = model.estimators_
    values = row.iloc[0].tolist()

    def goes_left(tree, node):
        value, categories = values[node["feature"]], forest.schema.categories[node["feature"]]
        if value != value or (categories is not None and value not in categories):
            return bool(node["kind"] & MISSING_LEFT)
        if categories is None:
            return value <= node["threshold"]
        bin = categories[value]
        return bool(int(tree.category_sets[int(node["threshold"]), bin // 64]) >> bin % 64 & 1)

    def mean_vote(t, i, known):
        tree, node = forest[t], forest[t].nodes[i]
        if node["kind"] == LEAF:
            weights = tree.leaf_weights[node["left"]]
            if t > 0 and model.voting == "hard":
                return weights.sum(), np.eye(len(weights))[weights.argmax()]
            return weights.sum(), weights / weights.sum()
        (weight, vote), (other_weight, other_vote) = (
            mean_vote(t, child, known) for child in (node["left"], node["left"] + 1)
        )
        total = weight + other_weight
        if node["feature"] in known:
            return total, vote if goes_left(tree, node) else other_vote
        return total, (weight * vote + other_weight * other_vote) / total

    @cache
    def value_of(known):
        votes = [mean_vote(t, 0, known)[1] for t in range(len(forest))]
        return model.component_weights_ @ votes

    return value_of


@pytest.fixture(scope="module", params=range(6))
def case(request):
    """A model, some rows to explain, and some to compare with."""
    rng = np.random.default_rng(request.param)
    sizes = [[], [7, 7, 3], [12], [2, 12], [5, 4, 3, 2], [30, 6]][request.param]
    X, scores = random_table(rng, 150, sizes, 0.2 * (request.param % 3 > 0))
    model = KFHEClassifier(
        CARTClassifier(min_samples_split=2, min_samples_leaf=3),
        n_estimators=4,
        voting=["hard", "soft"][request.param % 2],
        random_state=0,
    ).fit(X, random_classes(scores, 2 + request.param % 3))
    rows, _ = random_table(rng, 4, [size + 1 for size in sizes], 0.2)
    return model, rows, X[:20]


@pytest.mark.parametrize("with_background", [False, True])
def test_values_are_shapley_values(case, with_background):
    model, rows, background = case
    explanation = to_shap(model, background if with_background else None)(rows)
    assert isinstance(explanation, shap.Explanation)
    scores = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(scores, model.predict_proba(rows), rtol=0, atol=1e-6)
    for i in range(len(rows)):
        row = rows[i : i + 1]
        value_of = interventional(model, row, background) if with_background else path_dependent(model, row)
        expected = shapley_values(value_of, rows.shape[1])
        np.testing.assert_allclose(explanation.values[i], expected, rtol=0, atol=1e-6)
        np.testing.assert_allclose(explanation.base_values[i], value_of(frozenset()), rtol=0, atol=1e-6)


def test_interaction_values_add_up_to_the_values(case):
    model, rows, _ = case
    explainer = to_shap(model)
    interactions = explainer.shap_interaction_values(rows)
    np.testing.assert_allclose(interactions.sum(axis=2), explainer.shap_values(rows), atol=1e-9)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_the_explanation_shows_the_values_that_were_given(table):
    X = table({"number": np.arange(40) % 7, "word": ["x", "y"] * 20})
    explanation = to_shap(KFHEClassifier(n_estimators=2).fit(X, [0, 1] * 20))(X)
    assert explanation.feature_names == ["number", "word"]
    assert explanation[1, :, 0].data.tolist() == [1, "y"]


def test_values_next_to_the_thresholds_go_the_same_way():
    """They are equal in single precision, in which shap compares."""
    X = np.array([[1.0], [np.nextafter(1.0, 2)]] * 20)
    model = KFHEClassifier(n_estimators=2).fit(X, [0, 1] * 20)
    explanation = to_shap(model, X[:2])(X[:2])
    np.testing.assert_allclose(explanation.values[:, 0], [[0.5, -0.5], [-0.5, 0.5]])


def test_the_whole_background_counts():
    X, scores = random_table(np.random.default_rng(1), 300, [3], 0.1)
    model = KFHEClassifier(n_estimators=3).fit(X, random_classes(scores, 3))
    np.testing.assert_allclose(to_shap(model, X).expected_value, model.predict_proba(X).mean(axis=0))


def test_a_single_tree_and_a_single_class_can_be_explained():
    X, scores = random_table(np.random.default_rng(2), 100, [5], 0.1)
    tree = CARTClassifier().fit(X, random_classes(scores, 3))
    explanation = to_shap(tree)(X)
    scores = explanation.base_values + explanation.values.sum(axis=1)
    np.testing.assert_allclose(scores, tree.predict_proba(X), rtol=0, atol=1e-9)
    certain = to_shap(KFHEClassifier().fit(X, np.zeros(len(X), dtype=int)), X[:5])(X)
    assert not certain.values.any()
    assert (certain.base_values == 1).all()


def test_a_tree_that_shap_can_not_hold_is_refused(monkeypatch):
    monkeypatch.setattr(shap_explainer, "MAX_NODES", 20)
    X, scores = random_table(np.random.default_rng(3), 300, [30, 30], 0)
    model = KFHEClassifier(n_estimators=1).fit(X, random_classes(scores, 3))
    with pytest.raises(ValueError, match="too many sets of categories for shap, which takes up to 20 nodes"):
        to_shap(model)


def test_rows_are_checked_as_for_predictions():
    X, scores = random_table(np.random.default_rng(4), 50, [3], 0)
    explainer = to_shap(KFHEClassifier(n_estimators=1).fit(X, random_classes(scores, 2)))
    with pytest.raises(ValueError, match="feature names"):
        explainer(X[list(X)[::-1]])


def test_what_has_no_native_trees_is_told_what_to_use():
    with pytest.raises(NotFittedError):
        to_shap(KFHEClassifier())
    with pytest.raises(ValueError, match=r"shap\.Explainer"):
        to_shap(KFHEClassifier(LogisticRegression(), n_estimators=2).fit([[1.0], [2.0]] * 9, [0, 1] * 9))


def test_shap_itself_takes_the_classes_of_its_list_only():
    """If it ever takes others, `docs/guide/shipping.md` should say so."""
    model = KFHEClassifier(n_estimators=1).fit([[1.0], [2.0]] * 20, [0, 1] * 20)
    with pytest.raises(shap.utils._exceptions.InvalidModelError, match="not yet supported by TreeExplainer"):
        shap.TreeExplainer(model)


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    monkeypatch.delitem(sys.modules, "kfhe.export.shap_explainer")
    with pytest.raises(ImportError, match=r"kfhe\[shap\]"):
        to_shap(KFHEClassifier())
