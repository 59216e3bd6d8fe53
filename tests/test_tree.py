"""CARTClassifier: scikit-learn's trees up to ties, weights as repeated rows, a component of ensembles."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

from kfhe import CARTClassifier
from kfhe.forest import LEAF, NUMERIC


def free_tree(**settings):
    """A tree without limits."""
    return CARTClassifier(**({"max_depth": None, "min_samples_split": 2, "min_samples_leaf": 1} | settings))


def few_values(n, seed, n_columns=4, n_classes=3):
    """Columns of few distinct values with labels that follow them, noisily."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=8)[rng.integers(8, size=n)] for _ in range(n_columns)])
    return X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(scale=0.4, size=n), [-0.5, 0.5])


# ---------------------------------------------------------------- against scikit-learn

limits = st.fixed_dictionaries(
    {
        "max_depth": st.sampled_from([None, 1, 2, 4]),
        "min_samples_split": st.sampled_from([2, 10, 20]),
        "min_samples_leaf": st.sampled_from([1, 3, 7]),
    }
)


@settings(max_examples=60)
@given(n=st.integers(5, 150), seed=st.integers(0, 2**32), limits=limits, weighted=st.booleans())
def test_splits_are_those_of_scikit_learn_up_to_ties(n, seed, limits, weighted):
    X, y = few_values(n, seed)
    weights = np.random.default_rng(seed).integers(1, 5, size=n) if weighted else None
    ours = CARTClassifier(**limits).fit(X, y, weights).tree_
    theirs = DecisionTreeClassifier(**limits, random_state=0).fit(X, y, weights).tree_
    assert_same_splits(ours, theirs, X, y, weights)


def assert_same_splits(ours, theirs, X, y, weights):
    """Walk both trees side by side; where splits differ, they must be ties, and the walk ends."""
    weights = np.ones(len(y)) if weights is None else weights
    stack = [(0, 0, np.arange(len(y)))]
    while stack:
        our_node, their_node, rows = stack.pop()
        node = ours.nodes[our_node]
        is_leaf = theirs.children_left[their_node] < 0
        if is_leaf:
            assert node["kind"] == LEAF
            continue
        assert node["kind"] & NUMERIC
        our_left = X[rows, node["feature"]] <= node["threshold"]
        their_left = X[rows, theirs.feature[their_node]] <= theirs.threshold[their_node]
        if node["feature"] == theirs.feature[their_node] and (our_left == their_left).all():
            assert node["threshold"] == pytest.approx(theirs.threshold[their_node], abs=1e-6)
            for side, left in enumerate((our_left, ~our_left)):
                child = (theirs.children_left, theirs.children_right)[side][their_node]
                stack.append((node["left"] + side, child, rows[left]))
        else:
            scores = [gini_score(y[rows], weights[rows], left) for left in (our_left, their_left)]
            assert scores[0] == pytest.approx(scores[1], rel=1e-9)


def gini_score(y, weights, left):
    return sum(
        (np.bincount(y[side], weights[side]) ** 2).sum() / weights[side].sum() for side in (left, ~left)
    )


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize(
    "limits", [{}, {"min_samples_split": 2, "min_samples_leaf": 1}, {"max_leaf_nodes": 5}]
)
def test_training_accuracy_is_that_of_scikit_learn(load, limits):
    X, y = load(return_X_y=True)
    limits = {"max_depth": 30, "min_samples_split": 20, "min_samples_leaf": 7} | limits
    ours = CARTClassifier(**limits).fit(X, y).score(X, y)
    theirs = DecisionTreeClassifier(**limits, random_state=0).fit(X, y).score(X, y)
    assert ours == pytest.approx(theirs, abs=0.011)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_feature_importances_are_close_to_those_of_scikit_learn(load):
    X, y = load(return_X_y=True)
    ours = CARTClassifier().fit(X, y).feature_importances_
    peer = DecisionTreeClassifier(max_depth=30, min_samples_split=20, min_samples_leaf=7, random_state=0)
    np.testing.assert_allclose(ours, peer.fit(X, y).feature_importances_, atol=0.02)
    assert ours.sum() == pytest.approx(1)


def test_a_tree_without_a_split_has_no_importances_and_predicts_the_shares():
    model = CARTClassifier().fit([[1.0], [1.0], [1.0]], ["a", "b", "b"])
    np.testing.assert_array_equal(model.feature_importances_, [0])
    np.testing.assert_allclose(model.predict_proba([[5.0]]), [[1 / 3, 2 / 3]])
    assert model.tree_.export_text() == "b [1, 2]"
    assert (model.tree_.get_depth(), model.tree_.get_n_leaves()) == (0, 1)


# ---------------------------------------------------------------- weights


@settings(max_examples=40)
@given(n=st.integers(2, 80), seed=st.integers(0, 2**32))
def test_whole_weights_are_repeated_rows_where_nothing_counts_rows(n, seed):
    X, y = few_values(n, seed)
    weights = np.random.default_rng(seed).integers(0, 4, size=n)
    weights[0] = 1
    repeated = free_tree().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).tree_
    weighted = free_tree().fit(X, y, weights).tree_
    np.testing.assert_array_equal(weighted.nodes["threshold"], repeated.nodes["threshold"])
    np.testing.assert_array_equal(weighted.nodes["feature"], repeated.nodes["feature"])
    present = np.isin(np.unique(y), y[weights > 0])
    np.testing.assert_array_equal(weighted.leaf_weights[:, present], repeated.leaf_weights)


def test_min_samples_count_rows_whatever_they_weigh():
    X = np.arange(10.0)[:, None]
    y = X[:, 0] >= 1
    heavy = np.full(10, 100.0)
    assert CARTClassifier(min_samples_split=11, min_samples_leaf=1).fit(X, y, heavy).tree_.get_depth() == 0
    light = np.where(X[:, 0] < 1, 1000.0, 0.001)
    for weights in (heavy, light):
        tree = CARTClassifier(min_samples_split=2, min_samples_leaf=4).fit(X, y, weights).tree_
        assert np.bincount(tree.apply(X)).tolist() == [4, 6]


@pytest.mark.parametrize("scale", [1e-300, 0.3, 7.0, 1e300])
def test_the_scale_of_real_weights_does_not_matter(scale):
    X, y = few_values(120, 0)
    weights = np.random.default_rng(0).exponential(size=120)
    expected = free_tree().fit(X, y, weights).tree_
    scaled = free_tree().fit(X, y, weights * scale).tree_
    np.testing.assert_array_equal(scaled.nodes, expected.nodes)
    assert expected.predict(X).tolist() == scaled.predict(X).tolist()


def test_real_weights_give_the_splits_of_scikit_learn():
    X, y = few_values(150, 1)
    weights = np.random.default_rng(1).exponential(size=150)
    ours = free_tree(max_depth=4).fit(X, y, weights)
    theirs = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y, weights)
    assert_same_splits(ours.tree_, theirs.tree_, X, y, weights)
    assert ours.score(X, y, weights) == pytest.approx(theirs.score(X, y, weights), abs=0.02)


def test_rows_of_no_weight_are_absent():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))  # more values than bins: absent rows must not move the quantiles
    y = (X[:, 0] > X[:, 1]).astype(int)
    weights = (rng.random(2000) < 0.5).astype(float)
    X[weights == 0] *= 50
    expected = free_tree(max_depth=5).fit(X[weights > 0], y[weights > 0])
    X[np.flatnonzero(weights == 0)[0]] = np.inf
    found = free_tree(max_depth=5).fit(X, y, weights)
    np.testing.assert_array_equal(found.tree_.nodes, expected.tree_.nodes)


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pd.DataFrame.to_numpy])
def test_absent_rows_may_leave_a_class_without_any(container):
    X = container(pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0]}))
    model = free_tree().fit(X, ["a", "b", "b", "c"], [1, 1, 1, 0])
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict_proba(X), [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0]])


def test_class_weight_multiplies_sample_weight():
    X, y = few_values(100, 2)
    by_class = free_tree(class_weight={0: 1, 1: 2, 2: 5}, max_depth=3).fit(X, y)
    by_row = free_tree(max_depth=3).fit(X, y, np.array([1, 2, 5])[y])
    np.testing.assert_array_equal(by_class.tree_.nodes, by_row.tree_.nodes)
    balanced = free_tree(class_weight="balanced", max_depth=1).fit(X, y).tree_.leaf_weights.sum(axis=0)
    assert balanced == pytest.approx(balanced.mean(), rel=1e-6)


# ---------------------------------------------------------------- in ensembles of others


@pytest.mark.parametrize(
    "ensemble",
    [
        AdaBoostClassifier(CARTClassifier(max_depth=2), n_estimators=10, random_state=0),
        BaggingClassifier(CARTClassifier(), n_estimators=10, random_state=0),
    ],
    ids=["AdaBoost", "bagging"],
)
def test_ensembles_of_scikit_learn_take_it_as_they_take_their_own(ensemble):
    X, y = load_wine(return_X_y=True)
    tree = ensemble.estimator
    peer = DecisionTreeClassifier(max_depth=tree.max_depth, min_samples_split=20, min_samples_leaf=7)
    ours, theirs = (
        cross_val_score(ensemble.set_params(estimator=estimator), X, y).mean() for estimator in (tree, peer)
    )
    ensemble.set_params(estimator=tree)
    assert ours > theirs - 0.04


def test_bagging_in_processes_gives_the_same_trees():
    X, y = load_iris(return_X_y=True)
    bagging = BaggingClassifier(CARTClassifier(max_features=2), n_estimators=6, random_state=0)
    alone, together = (bagging.set_params(n_jobs=n_jobs).fit(X, y).estimators_ for n_jobs in (1, 2))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.tree_.nodes, other.tree_.nodes)


def test_seeds_matter_where_features_are_drawn():
    X, y = load_breast_cancer(return_X_y=True)
    trees = [CARTClassifier(max_features=2, random_state=seed).fit(X, y).tree_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(trees[0].nodes, trees[1].nodes)
    assert not np.array_equal(trees[0].nodes, trees[2].nodes)


@pytest.mark.parametrize(
    ("max_features", "n_tried"),
    [(None, 16), ("sqrt", 4), ("log2", 4), (0.5, 8), (3, 3), (100, 16), (0.01, 1)],
)
def test_max_features_is_a_number_a_share_or_a_rule(max_features, n_tried):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 16))
    y = (X[:, 5] > 0).astype(int)  # one feature decides: it is the root's if it was drawn
    roots = [
        CARTClassifier(max_features=max_features, random_state=seed, max_depth=1)
        .fit(X, y)
        .tree_.nodes["feature"][0]
        for seed in range(200)
    ]
    assert np.mean(np.array(roots) == 5) == pytest.approx(n_tried / 16, abs=0.1)


# ---------------------------------------------------------------- text and pictures


def animals():
    return pd.DataFrame(
        {
            "legs": [2, 2, 4, 4, 4, 0, 0, np.nan],
            "skin": ["feathers", "feathers", "fur", "fur", "scales", "scales", "scales", 'say "hair"'],
        }
    ), ["bird", "bird", "mammal", "mammal", "reptile", "reptile", "fish", "mammal"]


def test_the_text_tells_every_split_and_leaf():
    model = free_tree().fit(*animals())
    assert model.tree_.export_text().splitlines() == [
        'skin in {fur, say "hair"}: mammal [0, 0, 3, 0]',
        "skin in {feathers, scales} or missing:",
        '  skin in {fur, say "hair", scales} or missing:',  # no fur gets here
        "    legs <= 2.00 or missing: fish [0, 1, 0, 1]",
        "    legs > 2.00: reptile [0, 0, 0, 1]",
        "  skin in {feathers}: bird [2, 0, 0, 0]",
    ]


def test_the_text_says_where_only_missing_values_are_split_off():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    text = free_tree().fit(X, ["a", "a", "b", "b"]).tree_.export_text()
    assert text.splitlines() == ["0 not missing: a [2, 0]", "0 missing: b [0, 2]"]


def test_decimals_of_thresholds_can_be_chosen():
    tree = free_tree().fit([[0.0], [1 / 3]], [0, 1]).tree_
    assert "<= 0.17" in tree.export_text()
    assert "<= 0.1667" in tree.export_text(decimals=4)


def test_a_deep_tree_has_a_text_and_a_depth():
    n = 1500
    X = np.zeros((n, 6))
    X[np.arange(n), np.arange(n) // 250] = np.arange(n) % 250 + 1
    model = free_tree().fit(X, np.arange(n) % 2)
    assert model.tree_.get_depth() > 500
    assert len(model.tree_.export_text().splitlines()) == len(model.tree_.nodes) - 1
    assert model.score(X, np.arange(n) % 2) == 1


# ---------------------------------------------------------------- failures


def test_a_failed_fit_leaves_the_tree_as_it_was():
    X, y = few_values(50, 0)
    model = CARTClassifier().fit(X, y)
    expected = model.predict_proba(X)
    with pytest.raises(ValueError, match="infinity"):
        model.fit([[np.inf], [1.0]], [0, 1])
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert model.n_features_in_ == 4


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("max_depth", 0),
        ("min_samples_split", 1),
        ("min_samples_leaf", 0),
        ("max_leaf_nodes", 1),
        ("max_features", 0),
        ("max_features", 1.5),
        ("cp", -0.1),
        ("max_bins", 256),
        ("max_bins", 1),
        ("class_weight", "heavy"),
    ],
)
def test_bad_settings_are_refused_by_name(name, bad):
    with pytest.raises(ValueError, match=f"'{name}' parameter of CARTClassifier"):
        CARTClassifier(**{name: bad}).fit([[0.0], [1.0]], [0, 1])


def test_rows_fall_into_leaves_whose_shares_are_the_probabilities(iris):
    X, y = iris
    model = CARTClassifier().fit(X, y)
    leaves = model.apply(X)
    assert leaves.shape == (len(X),)
    weights = model.tree_.leaf_weights[leaves]
    np.testing.assert_array_equal(weights / weights.sum(axis=1, keepdims=True), model.predict_proba(X))


def test_logarithms_of_probabilities_are_minus_infinity_for_what_cannot_be(iris):
    X, y = iris
    model = CARTClassifier().fit(X, y)
    np.testing.assert_array_equal(np.exp(model.predict_log_proba(X)) > 0, model.predict_proba(X) > 0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-15)
