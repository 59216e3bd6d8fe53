"""warm_start: training that goes on gives the model of training at once."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from components import assert_equal_models
from scipy.sparse import csr_array
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from kfhe import CARTClassifier, KFHEClassifier, StateSpace


@pytest.mark.parametrize("emphasis", ["exponential", "linear"])
@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize(
    "estimator", [None, DecisionTreeClassifier(max_depth=3, max_features=2)], ids=["native", "foreign"]
)
def test_fifty_components_warm_started_to_a_hundred_are_a_hundred_at_once(iris, emphasis, voting, estimator):
    X, y = iris
    settings = {"emphasis": emphasis, "voting": voting, "random_state": 0}
    at_once = KFHEClassifier(estimator, n_estimators=100, **settings).fit(X, y)
    in_steps = KFHEClassifier(estimator, n_estimators=50, warm_start=True, **settings).fit(X, y)
    first = in_steps.estimators_[0]
    half = in_steps.predict_proba(X)
    in_steps.set_params(n_estimators=100).fit(X, y)
    assert_equal_models(in_steps, at_once, X)
    assert in_steps.n_iter_ == 100
    assert not np.array_equal(half, in_steps.predict_proba(X))
    if estimator is not None:
        assert in_steps.estimators_[0] is first  # not trained anew


def test_a_model_that_is_complete_stays_as_it_is(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    proba = model.predict_proba(X)
    model.fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), proba)


def test_a_certain_model_trains_nothing_more(rng):
    X = rng.normal(size=(60, 1))
    y = X[:, 0] > 0  # one split is always right
    model = KFHEClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    assert model.n_iter_ < 5
    n_iter = model.n_iter_
    assert model.set_params(n_estimators=50).fit(X, y).n_iter_ == n_iter


def test_a_pickled_model_can_go_on(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=3, warm_start=True, random_state=0).fit(X, y)
    restored = pickle.loads(pickle.dumps(model)).set_params(n_estimators=6).fit(X, y)
    assert_equal_models(restored, KFHEClassifier(n_estimators=6, random_state=0).fit(X, y), X)


@pytest.mark.parametrize("random_state", [np.random.default_rng, np.random.RandomState, lambda seed: None])
def test_any_random_state_can_go_on(iris, random_state):
    X, y = iris
    model = KFHEClassifier(n_estimators=3, warm_start=True, random_state=random_state(0)).fit(X, y)
    gains = model.trace_["gain"]
    model.set_params(n_estimators=6).fit(X, y)
    assert model.n_iter_ == 6
    np.testing.assert_array_equal(model.trace_["gain"][:3], gains)


@pytest.mark.parametrize("frame", [np.array, pd.DataFrame, pl.DataFrame], ids=["array", "pandas", "polars"])
def test_copies_of_the_data_are_the_same_data(iris, frame):
    X, y = iris
    X = X.copy()
    if frame is np.array:
        X[0, 0] = np.nan
    model = KFHEClassifier(n_estimators=2, warm_start=True, random_state=0).fit(frame(X), y)
    assert model.set_params(n_estimators=4).fit(frame(X), y.copy()).n_iter_ == 4


@pytest.mark.parametrize("frame", [np.array, pd.DataFrame, csr_array], ids=["array", "pandas", "sparse"])
def test_data_that_was_changed_in_place_is_refused(iris, frame):
    X, y = frame(iris[0]), iris[1]
    model = KFHEClassifier(n_estimators=2, warm_start=True, random_state=0).fit(X, y)
    X *= 2
    with pytest.raises(ValueError, match="needs the data of the first fit, got other values in X"):
        model.set_params(n_estimators=4).fit(X, y)


def test_fewer_components_than_there_are_is_an_error(iris):
    model = KFHEClassifier(n_estimators=5, warm_start=True).fit(*iris)
    with pytest.raises(ValueError, match=r"n_estimators=4 is less than the 5 components there are"):
        model.set_params(n_estimators=4).fit(*iris)
    assert model.n_iter_ == 5


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda X, y: (X, y == 0, None), "classes"),
        (lambda X, y: (X, np.array(["a", "b", "c"])[y], None), "classes"),
        (lambda X, y: (X, (y + 1) % 3, None), "labels"),
        (lambda X, y: (X + 1, y, None), "values in X"),
        (lambda X, y: (X[:, :2], y, None), "values in X"),
        (lambda X, y: (X[:-1], y[:-1], None), "labels"),
        (lambda X, y: (X, y, np.arange(len(y)) + 1), "weights"),
    ],
)
def test_other_data_is_refused(iris, change, named):
    X, y = iris
    model = KFHEClassifier(n_estimators=2, warm_start=True, random_state=0).fit(X, y)
    proba = model.predict_proba(X)
    new_X, new_y, weights = change(X, y)
    with pytest.raises(
        ValueError, match=f"warm_start=True needs the data of the first fit, got other .*{named}"
    ):
        model.set_params(n_estimators=4).fit(new_X, new_y, sample_weight=weights)
    np.testing.assert_array_equal(model.predict_proba(X), proba)


@pytest.mark.parametrize(
    "change",
    [
        {"voting": "soft"},
        {"estimator__max_depth": 2},
        {"state_space": StateSpace(fusion=0.3)},
        {"estimator": GaussianNB()},
        {"random_state": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_settings_of_the_components_are_refused(iris, change):
    model = KFHEClassifier(CARTClassifier(), n_estimators=2, warm_start=True, random_state=0).fit(*iris)
    (name,) = change
    with pytest.raises(ValueError, match=f"warm_start=True can't change {name}"):
        model.set_params(n_estimators=4, **change).fit(*iris)


def test_a_step_that_fails_can_be_repeated(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    proba, trace = model.predict_proba(X), model.trace_["gain"]

    def fails_at_eight(weights, missed):
        if len(model.trace_) == 8:
            raise OSError("no")
        return weights

    with pytest.raises(OSError, match="no"):
        model.set_params(n_estimators=10, emphasis=fails_at_eight).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    np.testing.assert_array_equal(model.trace_["gain"], trace)
    assert len(model.estimators_) == 6
    model.set_params(emphasis="exponential").fit(X, y)
    assert_equal_models(model, KFHEClassifier(n_estimators=10, random_state=0).fit(X, y), X)


def test_without_warm_start_the_training_data_is_not_kept(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=2, warm_start=True, random_state=0).fit(X, y)
    kept = len(pickle.dumps(model))
    model.set_params(warm_start=False).fit(X, y)
    assert len(pickle.dumps(model)) < kept - X.nbytes / 2
