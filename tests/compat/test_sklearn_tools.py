"""KFHE inside the tools of scikit-learn: what they give is what doing their steps by hand gives."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    learning_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from kfhe import EarlyStopping, KFHEClassifier

FOLDS = StratifiedKFold(3)


@pytest.fixture(params=[None, DecisionTreeClassifier(max_depth=3)], ids=["native", "foreign"])
def model(request):
    """An ensemble of two kinds, small and reproducible."""
    return KFHEClassifier(request.param, n_estimators=4, random_state=0)


@pytest.fixture(params=["pandas", "polars"])
def fruit(request):
    """Return a table with categories, strings, numbers and gaps, and labels of strings."""
    rng = np.random.default_rng(0)
    n = 120
    colour = rng.choice(["red", "green", "yellow"], size=n)
    weight = rng.normal(100, 20, size=n) + 50 * (colour == "red")
    weight[::11] = np.nan
    shop = rng.choice(["north", "south"], size=n).astype(object)
    shop[::13] = None
    y = np.where(weight + rng.normal(0, 10, size=n) > 120, "apple", "pear")
    if request.param == "pandas":
        table = pd.DataFrame({"colour": pd.Categorical(colour), "weight": weight, "shop": shop})
    else:
        table = pl.DataFrame({"colour": colour, "weight": weight, "shop": shop.tolist()}).with_columns(
            pl.col("colour").cast(pl.Categorical)
        )
    return table, y


# Pipelines and tables


def test_in_a_pipeline(iris, model):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(
        pipeline.predict_proba(X), clone(model).fit(scaled, y).predict_proba(scaled)
    )
    assert pipeline[-1].n_features_in_ == 4


def test_behind_a_column_transformer_that_gives_tables(fruit):
    table, y = fruit
    library = type(table).__module__.split(".")[0]
    columns = ColumnTransformer(
        [("text", "passthrough", ["colour", "shop"]), ("numbers", SimpleImputer(), ["weight"])],
        verbose_feature_names_out=False,
    ).set_output(transform=library)
    pipeline = make_pipeline(columns, KFHEClassifier(n_estimators=4, random_state=0)).fit(table, y)
    prepared = columns.fit_transform(table)
    assert type(prepared) is type(table)
    assert pipeline[-1].feature_names_in_.tolist() == ["colour", "shop", "weight"]
    assert pipeline[-1].estimators_.schema.categories[0] == {"green": 0, "red": 1, "yellow": 2}
    direct = KFHEClassifier(n_estimators=4, random_state=0).fit(prepared, y)
    np.testing.assert_array_equal(pipeline.predict_proba(table), direct.predict_proba(prepared))


def test_around_a_pipeline_that_needs_named_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"colour": rng.choice(["red", "green"], size=80), "weight": rng.normal(size=80)})
    y = (table["colour"] == "red").to_numpy() ^ (rng.uniform(size=80) < 0.1)
    columns = ColumnTransformer(
        [("text", OrdinalEncoder(), make_column_selector(dtype_exclude="number"))], remainder="passthrough"
    )
    pipeline = make_pipeline(columns, DecisionTreeClassifier(max_depth=2))
    ensemble = KFHEClassifier(pipeline, n_estimators=3, random_state=0)
    ensemble.fit(table[:60], y[:60], X_val=table[60:], y_val=y[60:])
    assert ensemble.score(table, y) > 0.8
    assert len(ensemble.validation_scores_) == ensemble.n_iter_ + 1


def test_tables_with_categories_through_cross_validation(fruit):
    table, y = fruit
    model = KFHEClassifier(n_estimators=4, random_state=0)
    found = cross_val_predict(model, table, y, cv=FOLDS, method="predict_proba")
    for train, test in FOLDS.split(table, y):
        pick = table.iloc.__getitem__ if isinstance(table, pd.DataFrame) else table.__getitem__
        by_hand = clone(model).fit(pick(train), y[train]).predict_proba(pick(test))
        np.testing.assert_array_equal(found[test], by_hand)


# Model selection


def test_searching_for_parameters(iris, model):
    X, y = iris
    grid = {"emphasis": ["exponential", "linear"], "n_estimators": [1, 4], "voting": ["hard", "soft"]}
    search = GridSearchCV(model, grid, cv=FOLDS, scoring="neg_log_loss").fit(X, y)
    assert len(search.cv_results_["params"]) == 8
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = clone(model).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), best.predict_proba(X))


def test_searching_in_nested_parameters(iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), KFHEClassifier(DecisionTreeClassifier(), n_estimators=2))
    search = GridSearchCV(pipeline, {"kfheclassifier__estimator__max_depth": [1, 3]}, cv=FOLDS).fit(X, y)
    depth = search.best_params_["kfheclassifier__estimator__max_depth"]
    assert search.best_estimator_[-1].estimators_[-1].max_depth == depth


def test_scores_of_folds_in_several_processes(iris, model):
    X, y = iris
    alone, together = (cross_val_score(model, X, y, cv=FOLDS, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(alone, together)


@pytest.mark.parametrize("scoring", ["f1_macro", "neg_log_loss", "neg_brier_score", "roc_auc_ovr"])
def test_every_scorer_takes_the_scores(iris, scoring):
    X, y = iris
    model = KFHEClassifier(emphasis="linear", n_estimators=20, random_state=0)
    if scoring == "neg_brier_score":
        y = y == 1  # older versions know it for two classes only
    assert np.isfinite(cross_val_score(model, X, y, cv=FOLDS, scoring=scoring)).all()


def test_learning_curve(iris, model):
    sizes, _, scores = learning_curve(
        model, *iris, cv=FOLDS, train_sizes=[0.3, 1.0], shuffle=True, random_state=0
    )
    assert sizes.tolist() == [30, 100]
    assert (scores[1] > 0.5).all()


def test_a_clone_is_not_fitted_and_fits_the_same(iris, model):
    X, y = iris
    model.set_params(early_stopping=EarlyStopping(2, "accuracy"), n_jobs=2, verbose=0)
    first = clone(model).fit(X, y, X_val=X, y_val=y)
    copy = clone(first)
    assert not hasattr(copy, "classes_")
    np.testing.assert_array_equal(copy.fit(X, y, X_val=X, y_val=y).predict_proba(X), first.predict_proba(X))


# Other ensembles and wrappers


def test_calibration_of_folds(iris, model):
    X, y = iris
    calibrated = CalibratedClassifierCV(model, method="sigmoid", cv=FOLDS).fit(X, y)
    assert calibrated.score(X, y) > 0.7
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)


def test_calibration_of_a_frozen_model_leaves_it_as_it_is(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=4, random_state=0).fit(X[::2], y[::2])
    fingerprint = model.fingerprint()
    calibrated = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid").fit(X[1::2], y[1::2])
    assert calibrated.score(X, y) > 0.7
    assert model.fingerprint() == fingerprint


def test_voting_averages_the_scores(iris, model):
    X, y = iris
    other = KFHEClassifier(emphasis="linear", n_estimators=2, random_state=1)
    vote = VotingClassifier([("a", model), ("b", other)], voting="soft").fit(X, y)
    by_hand = (clone(model).fit(X, y).predict_proba(X) + clone(other).fit(X, y).predict_proba(X)) / 2
    np.testing.assert_allclose(vote.predict_proba(X), by_hand, atol=1e-15)


def test_stacking_trains_on_the_scores(iris, model):
    X, y = iris
    stack = StackingClassifier([("kfhe", model)], LogisticRegression(), cv=FOLDS).fit(X, y)
    np.testing.assert_array_equal(stack.transform(X), clone(model).fit(X, y).predict_proba(X))
    assert stack.score(X, y) > 0.7


def test_bagging_gives_each_member_a_seed_of_its_own(iris, model):
    X, y = iris
    bag = BaggingClassifier(model, n_estimators=3, random_state=0).fit(X, y)
    assert len({member.random_state for member in bag.estimators_}) == 3
    assert bag.score(X, y) > 0.7


def test_one_against_the_rest(iris, model):
    X, y = iris
    rest = OneVsRestClassifier(model).fit(X, y)
    by_hand = [clone(model).fit(X, y == label).predict_proba(X)[:, 1] for label in range(3)]
    assert len(rest.estimators_) == 3
    np.testing.assert_array_equal([one.predict_proba(X)[:, 1] for one in rest.estimators_], by_hand)


def test_as_its_own_component(iris):
    """An ensemble of ensembles is a classifier like any other."""
    X, y = iris
    inner = KFHEClassifier(n_estimators=2)
    model = KFHEClassifier(inner, n_estimators=2, random_state=0).fit(X, y)
    assert isinstance(model.estimators_[1], KFHEClassifier)
    assert model.score(X, y) > 0.7


# Inspection


def test_permutation_importance_finds_the_features_that_matter(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=10, random_state=0).fit(X, y)
    one, two = (
        permutation_importance(model, X, y, n_repeats=3, random_state=0, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    assert one.importances_mean[2:].max() > one.importances_mean[:2].max()  # petals tell irises apart
    np.testing.assert_array_equal(one.importances, two.importances)


def test_partial_dependence_is_the_mean_score(fruit):
    table, y = fruit
    model = KFHEClassifier(n_estimators=4, random_state=0).fit(table, y)
    if isinstance(table, pl.DataFrame):  # scikit-learn itself takes pandas tables only
        table = table.to_pandas()
    found = partial_dependence(model, table, ["colour"], categorical_features=["colour"], kind="average")
    assert list(found["grid_values"][0]) == ["green", "red", "yellow"]
    by_hand = [
        model.predict_proba(table.assign(colour=colour))[:, 1].mean() for colour in ("green", "red", "yellow")
    ]
    np.testing.assert_allclose(found["average"][0], by_hand)
    assert len(set(by_hand)) > 1


def test_features_can_be_selected_by_importance(iris, model):
    X, y = iris
    selection = SelectFromModel(model, max_features=2, threshold=-np.inf).fit(X, y)
    best = np.sort(np.argsort(-selection.estimator_.feature_importances_)[:2])
    np.testing.assert_array_equal(selection.transform(X), X[:, best])
