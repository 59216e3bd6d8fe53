"""Algorithms: each takes categories and gaps in the way it can, and mistakes are named."""

import sys

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from kfhe.study.algorithms import SHORT_NAMES, build, check, components_of, versions_for
from kfhe.study.encoding import Categorical, encoding_steps
from kfhe.study.errors import StudyError
from kfhe.study.plan import Algorithm, Plan

FAST = {
    "CatBoost": {"iterations": 10},
    # Its defaults leave out categories of fewer than 100 rows
    "LightGBM": {"n_estimators": 10, "min_data_per_group": 5, "cat_smooth": 0.0},
}


@pytest.fixture
def table():
    """Rows whose class is a matter of two categories, with gaps in a number and in a category."""
    random = np.random.default_rng(0)
    colours = random.choice(["red", "green", "blue", "black"], size=200)
    y = np.isin(colours, ["red", "blue"]).astype(int)
    colour = pd.Categorical(np.where(random.random(200) < 0.05, None, colours))
    size = np.where(random.random(200) < 0.1, np.nan, random.normal(size=200))
    return pd.DataFrame({"x0": size, "x1": colour}), y


@pytest.mark.parametrize("name", SHORT_NAMES)
def test_every_short_name_learns_from_categories_and_gaps(name, table):
    X, y = table
    parameters = FAST.get(name, {"n_estimators": 10} if "n_estimators" in _parameters(name) else {})
    model = build(Algorithm(name, name, parameters), X, seed=0)
    with threadpool_limits(1):
        model.fit(X[:150], y[:150])
    assert np.mean(np.ravel(model.predict(X[150:])) == y[150:]) > 0.9


def _parameters(name):
    return SHORT_NAMES[name].make(Categorical([], []), {}).get_params()


def test_a_classifier_by_import_path_gets_categories_one_hot_and_no_gaps(table):
    X, y = table
    model = build(Algorithm("ridge", "sklearn.linear_model.RidgeClassifier", {"alpha": 0.1}), X, seed=3)
    model.fit(X[:150], y[:150])
    assert np.mean(model.predict(X[150:]) == y[150:]) > 0.9
    assert (model[-1].alpha, model[-1].random_state) == (0.1, 3)
    # Four colours and the gap, and the number
    assert model[-1].n_features_in_ == 6


def test_an_array_has_no_categorical_columns():
    assert Categorical.of(np.zeros((2, 3))) == ([], [])


@pytest.mark.parametrize(
    ("name", "scaled"),
    [("sklearn.svm.SVC", True), ("sklearn.naive_bayes.MultinomialNB", False), ("random forest", False)],
)
def test_numbers_are_standardised_for_classifiers_by_import_path(name, scaled):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"small": rng.random(50), "large": 1000 * rng.random(50)})
    X["kind"] = pd.Categorical(rng.choice(["a", "b"], 50))
    classifier = build(Algorithm(name, name), X, 0).fit(X, np.arange(50) % 2)
    numbers = classifier[:-1].transform(X)[:, 2:]
    np.testing.assert_allclose(numbers.std(axis=0), [1, 1] if scaled else X[["small", "large"]].std(ddof=0))


def test_codes_tell_each_category_and_the_gap_apart():
    X = pd.DataFrame({"x0": [0.5, 1.5, 2.5], "x1": pd.Categorical(["blue", None, "red"])})
    to_codes, _ = encoding_steps("codes", Categorical.of(X), None)
    np.testing.assert_array_equal(to_codes.transform(X), [[0.5, 0], [1.5, 2], [2.5, 1]])


def test_the_same_seed_gives_the_same_model_and_another_one_another(table):
    X, y = table

    def scores(seed):
        model = build(Algorithm("RF", "random forest", {"n_estimators": 5}), X, seed)
        return model.fit(X, y).predict_proba(X)

    np.testing.assert_array_equal(scores(1), scores(1))
    assert (scores(1) != scores(2)).any()


def test_parameters_reach_the_tree_of_an_ensemble(table):
    X, _ = table
    model = build(Algorithm("AB", "AdaBoost", {"n_estimators": 7, "cp": 0.01, "max_depth": 2}), X, seed=0)
    booster = model[-1]
    assert booster.n_estimators == 7
    assert (booster.estimator.cp, booster.estimator.max_depth) == (0.01, 2)
    assert list(booster.estimator.categorical_features) == [1]


def test_components_are_counted(table):
    X, y = table
    counts = {
        name: components_of(
            build(Algorithm(name, name, {"n_estimators": 4}), X[["x0"]].fillna(0), 0).fit(
                X[["x0"]].fillna(0), y
            )
        )
        for name in ("KFHE-e", "GBM")
    }
    assert counts == {"KFHE-e": 5, "GBM": 4}, "KFHE has an initial component besides"
    assert components_of(object()) is None


def plan_of(*algorithms):
    return Plan(("iris",), algorithms)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (
            Algorithm("KFHE", "KFHE"),
            r"'algorithms\.KFHE': there is no algorithm 'KFHE'; did you mean 'KFHE-e' or 'KFHE-l'\?",
        ),
        (Algorithm("a", "robust kfhe"), r"there is no algorithm 'robust kfhe'; did you mean 'Robust KFHE'\?"),
        (Algorithm("a", "nothing"), "there is no algorithm 'nothing'; there are KFHE-e, KFHE-l, Robust KFHE"),
        (Algorithm("a", "sklearn.nothing.Tree"), r"'algorithms\.a' needs the package sklearn\.nothing\.Tree"),
        (Algorithm("a", "sklearn.tree.Tree"), r"sklearn\.tree\.Tree is not a classifier"),
        (Algorithm("a", "sklearn.metrics.f1_score"), r"f1_score is not a classifier"),
        (
            Algorithm("a", "sklearn.linear_model.LinearRegression"),
            "LinearRegression is not a classifier: it does not predict classes",
        ),
        (Algorithm("a", "sklearn.cluster.KMeans"), "KMeans is not a classifier"),
        (Algorithm("a", "KFHE-e", {"n_trees": 3}), r"'algorithms\.a': .*n_trees"),
        (Algorithm("a", "AdaBoost", {"depth": 3}), r"'algorithms\.a': .*depth"),
    ],
)
def test_a_mistake_is_known_before_anything_runs(algorithm, message):
    with pytest.raises(StudyError, match=message):
        check(plan_of(algorithm))


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("GBM", "lightgbm", "study"),
        ("XGBoost", "xgboost", "peers"),
        ("CleanLearning", "cleanlab.classification", "peers"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(name, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "kfhe.study.clean_learning", raising=False)
    with pytest.raises(
        StudyError, match=rf"needs the package {package.split('.')[0]}, .*pip install \"kfhe\[{extra}\]\""
    ):
        check(plan_of(Algorithm("b", name)))


def test_versions_are_kept_of_the_packages_that_are_used():
    plan = plan_of(Algorithm("a", "GBM"), Algorithm("b", "CatBoost"), Algorithm("c", "sklearn.svm.SVC"))
    assert {"catboost", "lightgbm", "scikit-learn"} < versions_for(plan).keys()
