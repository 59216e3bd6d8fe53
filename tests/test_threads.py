"""A fitted model can be used by many threads at once."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from kfhe import KFHEClassifier

THREADS = 8


def at_once(task, n=THREADS):
    """Run a task in many threads that start together, and return the results."""
    start = Barrier(n)

    def run(number):
        start.wait()
        return task(number)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(run, range(n)))


@pytest.fixture
def table(rng):
    """Return rows with a category and gaps, enough of them to be shared out among OpenMP's threads."""
    n = 4000
    colour = pd.Categorical(rng.choice(["red", "green", "blue"], size=n))
    size = np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(size=n))
    y = (colour == "red") ^ (rng.uniform(size=n) < 0.2)
    return pd.DataFrame({"colour": colour, "size": size}), y


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_predictions_of_many_threads_are_those_of_one(table, n_jobs, voting):
    X, y = table
    model = KFHEClassifier(n_estimators=20, voting=voting, n_jobs=n_jobs, random_state=0).fit(
        X[:500], y[:500]
    )
    expected = pickle.loads(pickle.dumps(model)).predict_proba(X)

    for found in at_once(lambda _: model.predict_proba(X)):
        np.testing.assert_array_equal(found, expected)
    for number, found in enumerate(at_once(lambda number: model.predict_proba(X[number:][:100]))):
        np.testing.assert_array_equal(found, expected[number:][:100])


def test_a_foreign_ensemble_predicts_from_many_threads(iris):
    X, y = iris
    model = KFHEClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=5, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    for found in at_once(lambda _: model.predict_proba(X)):
        np.testing.assert_array_equal(found, expected)


def test_staged_predictions_of_many_threads_do_not_mix(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=20, random_state=0).fit(X, y)
    expected = list(model.staged_predict_proba(X))
    for found in at_once(lambda _: list(model.staged_predict_proba(X))):
        np.testing.assert_array_equal(found, expected)


def test_a_model_can_be_pickled_while_it_predicts_for_the_first_time(table):
    X, y = table
    for seed in range(20):
        model = KFHEClassifier(n_estimators=5, random_state=seed).fit(X[:200], y[:200])

        def use(number, model=model):
            return pickle.dumps(model) if number % 2 else model.predict_proba(X[:50])

        results = at_once(use)
        expected = results[0]
        for copy in results[1::2]:
            np.testing.assert_array_equal(pickle.loads(copy).predict_proba(X[:50]), expected)
        assert len(set(results[1::2])) == 1


def test_predicting_changes_nothing_in_a_pickle(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=5, random_state=0).fit(X, y)
    before = pickle.dumps(model)
    model.predict(X)
    assert pickle.dumps(model) == before


def test_models_trained_in_many_threads_are_those_of_one(table):
    X, y = table
    expected = KFHEClassifier(n_estimators=5, n_jobs=2, random_state=0).fit(X, y).fingerprint()
    found = at_once(
        lambda _: KFHEClassifier(n_estimators=5, n_jobs=2, random_state=0).fit(X, y).fingerprint(), 4
    )
    assert set(found) == {expected}
