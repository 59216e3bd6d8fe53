"""The forest: scores are those of a slow walk down each tree, for whole tables and for single rows."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.forest import CATEGORICAL, LEAF, MISSING_LEFT
from kfhe.target_encoding import TargetEncoding

CITIES = ["Cork", "Derry", "Dublin", "Galway", "Sligo"]


def table(n, seed, gaps=0.1):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.integers(5, size=n).astype(float)})
    X["city"] = rng.choice(CITIES, size=n)
    y = np.digitize(X["a"] + X["city"].isin(["Cork", "Sligo"]), [0, 1]) + (X["b"] > 3)
    for name in X:
        X.loc[rng.random(n) < gaps, name] = None
    return X, np.array(["no", "maybe", "yes", "surely"])[y]


def unlike(n, seed):
    """Rows of another kind than the training rows: far off values, new categories, more gaps."""
    rng = np.random.default_rng(seed)
    X, _ = table(n, seed, gaps=0.3)
    X["a"] *= 10
    X.loc[rng.random(n) < 0.3, "city"] = "Wexford"
    return X


def walk(forest, t, X):
    """Leaf of each row in tree t, one row at a time."""
    tree = forest[t]
    leaves = []
    for row in X.to_dict("records"):
        node = tree.nodes[0]
        while node["kind"] != LEAF:
            value = row[forest.schema.names[node["feature"]]]
            categories = forest.schema.categories[node["feature"]]
            if value is None or value != value or (categories is not None and value not in categories):
                left = bool(node["kind"] & MISSING_LEFT)
            elif node["kind"] & CATEGORICAL:
                bin = categories[value]
                left = int(tree.category_sets[int(node["threshold"]), bin // 64]) >> bin % 64 & 1
            else:
                left = value <= node["threshold"]
            node = tree.nodes[node["left"] + (not left)]
        leaves.append(node["left"])
    return np.array(leaves)


def slow_votes(model, t, X):
    weights = model.estimators_[t].leaf_weights[walk(model.estimators_, t, X)]
    if t == 0 or model.voting == "soft":
        return weights / weights.sum(axis=1, keepdims=True, dtype=float)
    return np.eye(len(model.classes_))[weights.argmax(axis=1)]


@settings(max_examples=25)
@given(
    n=st.integers(2, 150),
    seed=st.integers(0, 2**32),
    gaps=st.sampled_from([0, 0.2]),
    voting=st.sampled_from(["hard", "soft"]),
    min_samples_leaf=st.sampled_from([1, 7]),
    max_bins=st.sampled_from([255, 4]),
)
def test_scores_are_those_of_a_slow_walk(n, seed, gaps, voting, min_samples_leaf, max_bins):
    model = KFHEClassifier(
        CARTClassifier(min_samples_leaf=min_samples_leaf, min_samples_split=2, max_bins=max_bins),
        n_estimators=5,
        voting=voting,
        random_state=0,
    )
    X, y = table(n, seed, gaps)
    model.fit(X, y)
    for rows in (X, unlike(40, seed)):
        votes = [slow_votes(model, t, rows) for t in range(model.n_iter_ + 1)]
        expected = np.tensordot(model.component_weights_, votes, 1)
        np.testing.assert_allclose(model.predict_proba(rows), expected, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(
            model.predict(rows), model.classes_[model.predict_proba(rows).argmax(1)]
        )


@pytest.fixture(scope="module")
def fitted():
    X, y = table(600, 0)
    return KFHEClassifier(n_estimators=30, random_state=0).fit(X, y), X, y


def test_staged_scores_are_the_filters_after_each_component(fitted):
    model, X, _ = fitted
    scores = slow_votes(model, 0, X)
    staged = list(model.staged_predict_proba(X))
    labels = list(model.staged_predict(X))
    assert len(staged) == len(labels) == model.n_iter_ + 1
    for t, found in enumerate(staged):
        if t:
            scores = scores + model.trace_["gain"][t - 1] * ((scores + slow_votes(model, t, X)) / 2 - scores)
        np.testing.assert_allclose(found, scores, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(labels[t], model.classes_[found.argmax(axis=1)])
    np.testing.assert_allclose(staged[-1], model.predict_proba(X), rtol=0, atol=1e-12)


def test_each_tree_can_be_used_alone(fitted):
    model, X, _ = fitted
    assert len(model.estimators_) == model.n_iter_ + 1
    for t, tree in enumerate(model.estimators_):
        leaves = walk(model.estimators_, t, X)
        np.testing.assert_array_equal(tree.apply(X), leaves)
        weights = tree.leaf_weights[leaves]
        shares = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(tree.predict_proba(X), shares, rtol=1e-15)
        np.testing.assert_array_equal(tree.predict(X), model.classes_[weights.argmax(axis=1)])
        assert tree.classes_ is model.classes_
        assert tree.get_n_leaves() == (tree.nodes["kind"] == LEAF).sum() == len(set(leaves))
        text = tree.export_text()
        depth = max(line.index(line.strip()) // 2 + 1 for line in text.splitlines())
        assert tree.get_depth() == depth
        assert text.count("[") == tree.get_n_leaves()
        assert tree.feature_importances_.sum() == pytest.approx(1)
        assert repr(tree) == f"Tree(depth={depth}, leaves={tree.get_n_leaves()})"


def test_leaves_hold_what_was_drawn(fitted):
    model, X, y = fitted
    for tree in model.estimators_:
        assert tree.leaf_weights.sum() == len(y)
    h_0 = model.estimators_[0]
    totals = np.zeros_like(h_0.leaf_weights)
    np.add.at(totals, (h_0.apply(X), np.searchsorted(model.classes_, y)), 1)
    np.testing.assert_array_equal(totals, h_0.leaf_weights)


def test_trees_are_counted_like_a_list(fitted):
    forest = fitted[0].estimators_
    first, last = forest[0], forest[-1]
    assert first.nodes.base is forest.nodes or np.shares_memory(first.nodes, forest.nodes)
    np.testing.assert_array_equal(last.nodes, forest[len(forest) - 1].nodes)
    assert [len(tree.nodes) for tree in forest[1:4]] == [len(forest[t].nodes) for t in (1, 2, 3)]
    for bad in (len(forest), -len(forest) - 1):
        with pytest.raises(IndexError, match=f"there are {len(forest)} trees"):
            forest[bad]


def test_a_row_alone_scores_as_among_others(fitted):
    model, X, _ = fitted
    expected = model.predict_proba(X)
    for i in range(0, len(X), 37):
        np.testing.assert_array_equal(model.predict_proba(X.iloc[[i]]), expected[[i]])


@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 129, 1025])
def test_batches_of_any_size_score_alike_on_any_number_of_threads(fitted, n):
    model, X, _ = fitted
    X = pd.concat([X] * 2, ignore_index=True)
    expected = model.predict_proba(X)
    for n_jobs in (1, 2, 3):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).predict_proba(X[:n]), expected[:n])
    model.set_params(n_jobs=None)


def test_missing_values_at_prediction_where_training_had_none_go_to_the_heavier_child():
    X = pd.DataFrame({"a": [0.0] * 10 + [1.0] * 30, "city": ["Cork"] * 30 + ["Sligo"] * 10})
    y = [0] * 10 + [1] * 20 + [2] * 10
    model = CARTClassifier().fit(X, y)
    gaps = pd.DataFrame({"a": [np.nan, 1.0, np.nan], "city": ["Cork", None, "Wexford"]})
    np.testing.assert_array_equal(model.predict(gaps), [1, 1, 1])


def test_several_threads_may_predict_at_once(fitted):
    model, X, _ = fitted
    model = pickle.loads(pickle.dumps(model))  # with nothing worked out yet
    X = pd.concat([X] * 4)
    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda _: model.predict_proba(X), range(12)))
    expected = fitted[0].predict_proba(X)
    for found in scores:
        np.testing.assert_array_equal(found, expected)


def test_importances_sum_to_one_and_find_what_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    model = KFHEClassifier(n_estimators=20, random_state=0).fit(X, X[:, 2] + 0.3 * rng.normal(size=300) > 0)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_.argmax() == 2
    by_tree = np.array([tree.feature_importances_ for tree in model.estimators_])
    np.testing.assert_allclose(model.feature_importances_, model.component_weights_ @ by_tree)


def test_importances_sum_to_one_even_if_some_trees_have_no_split():
    # One row has most of the weight: some samples hold hardly anything else.
    X, y = table(30, 3)
    model = KFHEClassifier(n_estimators=10, random_state=0).fit(X, y, [1000] + [1] * 29)
    n_splits = [len(tree.nodes) // 2 for tree in model.estimators_]
    assert 0 in n_splits
    assert max(n_splits) > 0
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_a_model_of_one_class_is_one_leaf():
    model = KFHEClassifier(n_estimators=5).fit([[0.0], [1.0]], ["only", "only"])
    assert model.n_iter_ == 0
    assert len(model.estimators_) == 1
    np.testing.assert_array_equal(model.predict_proba([[3.0], [np.nan]]), [[1.0], [1.0]])
    np.testing.assert_array_equal(model.feature_importances_, [0.0])
    assert [scores.tolist() for scores in model.staged_predict_proba([[3.0]])] == [[[1.0]]]


def test_a_model_without_any_split_predicts_the_shares():
    model = KFHEClassifier(n_estimators=3, random_state=0).fit(np.zeros((10, 2)), [0] * 7 + [1] * 3)
    assert (model.predict(np.ones((4, 2))) == 0).all()
    assert model.feature_importances_.tolist() == [0, 0]


@pytest.mark.parametrize("n_classes", [2, 40, 300])
def test_many_classes_are_told_apart(n_classes):
    X = np.repeat(np.arange(n_classes), 8).astype(float)[:, None]
    model = CARTClassifier(max_depth=None, min_samples_split=2, min_samples_leaf=1).fit(X, X[:, 0])
    assert model.score(X, X[:, 0]) == min(1, 255 / n_classes)


def test_a_forest_survives_pickling(fitted):
    model, X, _ = fitted
    restored = pickle.loads(pickle.dumps(model))
    assert restored.fingerprint() == model.fingerprint()
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))


def test_the_digest_covers_all_that_predictions_depend_on_and_nothing_else(fitted):
    forest = fitted[0].estimators_
    nodes, leaf_weights, category_sets = (
        array.copy() for array in (forest.nodes, forest.leaf_weights, forest.category_sets)
    )
    nodes["threshold"][0] += 1e-9
    leaf_weights[0, 0] += 1
    category_sets[0, 0] ^= np.uint64(1)
    cities = dict(zip(CITIES, reversed(range(5)), strict=True))
    changes = [
        {"soft": not forest.soft},
        {"classes": forest.classes[::-1]},
        {"nodes": nodes},
        {"leaf_weights": leaf_weights},
        {"category_sets": category_sets},
        {"tree_nodes": forest.tree_nodes[:-1]},
        {"schema": replace(forest.schema, categories=[None, None, cities])},
        {"schema": replace(forest.schema, encodings={2: TargetEncoding({"a": 0}, np.array([[0.5], [0.2]]))})},
        {"schema": replace(forest.schema, encodings={2: TargetEncoding({"b": 0}, np.array([[0.5], [0.2]]))})},
        {"schema": replace(forest.schema, encodings={2: TargetEncoding({"a": 0}, np.array([[0.4], [0.2]]))})},
    ]
    digests = [replace(forest, **change).digest() for change in changes]
    assert len({forest.digest(), *digests}) == len(changes) + 1
    same = replace(forest, gains=forest.gains + 1, schema=replace(forest.schema, columns=["x", "y", "z"]))
    assert same.digest() == forest.digest()


def test_the_fingerprint_depends_on_the_weights_of_the_components(fitted):
    model = pickle.loads(pickle.dumps(fitted[0]))
    model.estimators_ = replace(model.estimators_, steps=model.estimators_.steps[::-1])
    assert model.fingerprint() != fitted[0].fingerprint()
