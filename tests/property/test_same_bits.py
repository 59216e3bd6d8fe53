"""The same data, parameters and seed give the same model: on any number of threads, in any process."""

import functools
import multiprocessing

import numpy as np
import pandas as pd
import pytest
from components import as_parameters
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits
from waiting import PATIENCE

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.engine.threads import thread_count
from kfhe.engine.trees.growing import Grower


def table(n, n_classes, seed):
    """Numbers, categories and gaps; labels that depend on them; weights, some of them zero."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"number {j}": rng.normal(size=n).round(j % 3) for j in range(6)})
    X["few"] = rng.integers(3, size=n)
    X["city"] = rng.choice(list("abcdefgh"), size=n)
    X["size"] = pd.Categorical(rng.choice(["S", "M", "L"], size=n))
    score = X["number 1"] + X["number 2"] + (X["city"] < "d") + (X["size"] == "M")
    y = np.digitize(score + rng.normal(scale=0.5, size=n), np.linspace(-1, 2, n_classes - 1))
    for name in ("number 1", "few", "city", "size"):
        X.loc[rng.random(n) < 0.1, name] = None
    weights = rng.exponential(size=n) * (rng.random(n) > 0.05)
    return X, y, weights


@pytest.fixture(scope="module")
def large():
    """A table that is large enough for threads."""
    X, y, weights = table(8000, 4, 0)
    assert 0.6 * X.size > 32768  # a bootstrap sample leaves out a third of the rows
    return X, y, weights


@pytest.fixture(scope="module")
def expected(large):
    return model(n_jobs=1).fit(*large).fingerprint()


def model(**settings):
    return KFHEClassifier(random_state=3, **as_parameters({"n_estimators": 8} | settings))


parameters = st.fixed_dictionaries(
    {
        "emphasis": st.sampled_from(["exponential", "linear"]),
        "voting": st.sampled_from(["hard", "soft"]),
        "min_samples_leaf": st.sampled_from([1, 7]),
        "max_features": st.sampled_from([None, 2]),
        "splitter": st.sampled_from(["best", "random"]),
        "max_leaf_nodes": st.sampled_from([None, 6]),
        "cp": st.sampled_from([0.0, 0.01]),
        "max_bins": st.sampled_from([255, 7]),
    }
)


@settings(max_examples=20)
@given(
    n=st.integers(2, 200),
    n_classes=st.integers(2, 5),
    seed=st.integers(0, 2**32),
    weighted=st.booleans(),
    parameters=parameters,
)
def test_fingerprints_are_equal_for_any_number_of_threads(n, n_classes, seed, weighted, parameters):
    X, y, weights = table(n, n_classes, seed)
    weights[0] = 1
    fit = functools.partial(fingerprint, X, y, weights if weighted else None, parameters)
    expected = fit(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kfhe.tree_settings.Grower", functools.partial(Grower, force_parallel=True))
        assert {fit(2), fit(3)} == {expected}


def fingerprint(X, y, weights, parameters, n_jobs):
    return model(n_estimators=4, n_jobs=n_jobs, **parameters).fit(X, y, weights).fingerprint()


@pytest.mark.parametrize("n_jobs", [2, 3, None, -1])
def test_threads_of_a_large_table_change_nothing(large, expected, n_jobs):
    X, y, weights = large
    fitted = model(n_jobs=n_jobs).fit(X, y, weights)
    assert fitted.fingerprint() == expected
    scores = fitted.predict_proba(X)
    np.testing.assert_array_equal(scores, fitted.set_params(n_jobs=1).predict_proba(X))


def test_another_seed_or_another_table_gives_another_fingerprint(large, expected):
    X, y, weights = large
    assert model().set_params(random_state=4).fit(X, y, weights).fingerprint() != expected
    assert model().fit(X[::-1], y[::-1], weights[::-1]).fingerprint() != expected


def test_one_tree_is_the_same_on_any_number_of_threads(large):
    digests = {
        CARTClassifier(n_jobs=n_jobs, max_features=3, random_state=0).fit(*large)._forest.digest()
        for n_jobs in (1, 2, 3)
    }
    assert len(digests) == 1


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_children_of_a_process_that_has_used_threads_give_the_same_model(large, expected, method):
    parent = model(n_jobs=2).fit(*large)
    with multiprocessing.get_context(method).Pool(1) as pool:
        child = pool.apply_async(model(n_jobs=2).fit, large).get(timeout=PATIENCE)
        scores = pool.apply_async(parent.predict_proba, large[:1]).get(timeout=PATIENCE)
    assert child.fingerprint() == parent.fingerprint() == expected
    np.testing.assert_array_equal(scores, parent.predict_proba(large[0]))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_can_go_on_with_its_parents_training(large, expected):
    started = model(n_jobs=2, n_estimators=3, warm_start=True).fit(*large)
    started.set_params(n_estimators=8)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(started.fit(*large).fingerprint()))
    child.start()
    try:
        assert receiver.poll(PATIENCE), "the child hangs"
        assert receiver.recv() == expected
    finally:
        child.kill()
        child.join()


def test_workers_of_joblib_give_the_same_model(large, expected):
    model().fit(*large)
    fitted = Parallel(n_jobs=2, timeout=PATIENCE)(delayed(model(n_jobs=n).fit)(*large) for n in (None, 2))
    assert {worker.fingerprint() for worker in fitted} == {expected}


def test_a_grid_search_finds_the_same_on_any_number_of_jobs(large):
    X, y, _ = large
    grid = {"emphasis": ["exponential", "linear"], "estimator__min_samples_leaf": [3, 30]}
    searches = [
        GridSearchCV(model(estimator=CARTClassifier()), grid, cv=2, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"].tolist() for search in searches]
    assert scores[0] == scores[1]
    assert searches[0].best_estimator_.fingerprint() == searches[1].best_estimator_.fingerprint()


def test_limits_on_threads_are_respected_and_change_nothing(large, expected):
    with threadpool_limits(1):
        assert thread_count() == 1
        assert model().fit(*large).fingerprint() == expected
    with threadpool_limits(2):
        assert thread_count() <= 2
        assert model().fit(*large).fingerprint() == expected


def test_a_clone_and_a_second_fit_give_the_same_model(large, expected):
    first = model().fit(*large)
    assert clone(first).fit(*large).fingerprint() == expected
    assert first.fit(*large).fingerprint() == expected
