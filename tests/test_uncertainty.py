"""What predict_uncertainty promises: the components' disagreement, exactly, for any kind of component."""

import io
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import kfhe
from kfhe import CARTClassifier, KFHEClassifier, RobustKFHEClassifier, StateSpace
from kfhe.ensemble import ROUNDING, variance
from kfhe.filter_bank import SHRINKAGES
from kfhe.noise import flip_labels
from tests.components import Log, Scripted, numbered
from tests.random_tables import models

MODELS = {
    "hard": KFHEClassifier(n_estimators=8, random_state=0),
    "soft": KFHEClassifier(CARTClassifier(shrinkage=3), n_estimators=8, voting="soft", random_state=0),
    "transition": KFHEClassifier(
        state_space=StateSpace(transition=0.9, process_noise=0.01), n_estimators=8, random_state=0
    ),
    "foreign": KFHEClassifier(
        [LogisticRegression(max_iter=500), CARTClassifier()], n_estimators=8, voting="soft", random_state=0
    ),
    "robust": RobustKFHEClassifier(n_estimators=25, random_state=0),
}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, flip_labels(y, 0.2, random_state=0)


def votes_of(ensemble, X):
    """Return what each component votes for each row, one by one."""
    n_components = len(ensemble)
    return np.array(
        [
            ensemble.add(ensemble.encoded(X), t, t + 1, np.ones(n_components), None, 1)
            for t in range(n_components)
        ]
    )


def assert_impurity_splits(ensemble, X):
    """Assert that the impurity of the scores is what components call mixed, and their disagreement."""
    votes, weights = votes_of(ensemble, X), ensemble.weights
    scores = np.tensordot(weights, votes, 1)
    disagreement = np.tensordot(weights, (votes - scores) ** 2, 1).sum(axis=1)
    mixed = weights @ (1 - (votes**2).sum(axis=2))
    spread = ensemble.spread(X, 1)
    np.testing.assert_allclose(spread, disagreement, atol=ROUNDING, rtol=0)
    impurity = 1 - (ensemble.scores(X, 1) ** 2).sum(axis=1)
    np.testing.assert_allclose(impurity, mixed + spread, atol=2 * ROUNDING, rtol=0)


# The formula


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_the_impurity_is_mixedness_and_disagreement(iris, model):
    assert_impurity_splits(clone(model).fit(*iris).estimators_, iris[0])


@given(models())
@settings(max_examples=25, deadline=None)
def test_the_impurity_splits_on_any_table(model_and_rows):
    model, rows = model_and_rows
    assert_impurity_splits(model.estimators_, rows)
    uncertainty = model.predict_uncertainty(rows)
    assert uncertainty.shape == (len(rows),)
    assert np.isfinite(uncertainty).all()
    assert 0 <= uncertainty.min() <= uncertainty.max() < 1


@pytest.mark.parametrize("noise", [0, 0.2, 0.4])
def test_the_robust_classifier_adds_the_variance_over_neighbouring_shrinkages(noise):
    X, y = load_iris(return_X_y=True)
    model = RobustKFHEClassifier(random_state=0).fit(X, flip_labels(y, noise, random_state=0))
    forest = model.estimators_
    at = SHRINKAGES.tolist().index(model.lambda_)
    near = SHRINKAGES[max(at - 1, 0) : at + 2].tolist()
    scores = [replace(forest, shrinkage=shrinkage).scores(X, 1) for shrinkage in near]
    bank = np.var(scores, axis=0).sum(axis=1)
    assert len(near) == (2 if at in (0, len(SHRINKAGES) - 1) else 3)
    assert bank.max() > 1e-6
    np.testing.assert_allclose(model.predict_uncertainty(X), forest.spread(X, 1) + bank, atol=3 * ROUNDING)


def test_the_variance_of_votes_by_hand():
    votes = [np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.5, 0.5]])]
    np.testing.assert_allclose(variance(votes, [0.25, 0.75]), [2 * 0.25 * 0.75, 0])


# What it says


def test_where_all_components_agree_nothing_is_unknown():
    y = np.array([0, 1, 2] * 10)

    def votes(t, rows):
        return np.where((rows < 3) & (t % 2 == 1), (y[rows] + 1) % 3, y[rows])

    component = Scripted(votes, log=Log())
    model = KFHEClassifier(component, n_estimators=4, random_state=0).fit(numbered(30), y)
    uncertainty = model.predict_uncertainty(numbered(30))
    assert (uncertainty[:3] > 0.01).all()
    assert (uncertainty[3:] == 0).all()


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_one_class_leaves_nothing_open(model):
    if isinstance(getattr(model, "estimator", None), list):
        model = KFHEClassifier(LogisticRegression(), n_estimators=3, voting="soft", random_state=0)
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert (clone(model).fit(X, np.zeros(30, dtype=int)).predict_uncertainty(X) == 0).all()


def test_more_rows_leave_less_unknown_and_as_much_mixed():
    X, y = make_moons(5000, noise=0.35, random_state=0)
    rows, _ = make_moons(500, noise=0.35, random_state=1)
    few, many = (RobustKFHEClassifier(random_state=0).fit(X[:n], y[:n]) for n in (200, 5000))
    assert many.predict_uncertainty(rows).mean() < few.predict_uncertainty(rows).mean() / 2
    few, many = (1 - (model.predict_proba(rows) ** 2).sum(axis=1).mean() for model in (few, many))
    assert many == pytest.approx(few, rel=0.25)


# What it shares with predict_proba


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_it_refuses_what_predict_proba_refuses(iris, model):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        clone(model).predict_uncertainty(iris[0])
    model = clone(model).fit(*iris)
    for method in (model.predict_proba, model.predict_uncertainty):
        with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 4 features as input"):
            method(iris[0][:, :2])


@pytest.mark.parametrize("model", [MODELS["hard"], MODELS["soft"], MODELS["robust"]])
def test_threads_don_t_matter(model):
    X, y = make_classification(6000, n_informative=6, n_classes=3, flip_y=0.2, random_state=0)
    model = clone(model).fit(X, y)
    expected = model.predict_uncertainty(X)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).predict_uncertainty(X), expected)
    np.testing.assert_array_equal(model.predict_uncertainty(X[1000:1003]), expected[1000:1003])


@pytest.mark.parametrize("model", [MODELS["hard"], MODELS["soft"], MODELS["robust"]])
def test_a_file_keeps_it(iris, model):
    model, file = clone(model).fit(*iris), io.BytesIO()
    model.save(file)
    file.seek(0)
    np.testing.assert_array_equal(
        kfhe.load(file).predict_uncertainty(iris[0]), model.predict_uncertainty(iris[0])
    )


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_a_warm_start_ends_where_one_fit_does(iris, model):
    whole = clone(model).fit(*iris)
    warm = clone(model).set_params(n_estimators=4, warm_start=True).fit(*iris)
    warm.predict_uncertainty(iris[0])
    warm.set_params(n_estimators=model.n_estimators).fit(*iris)
    np.testing.assert_array_equal(warm.predict_uncertainty(iris[0]), whole.predict_uncertainty(iris[0]))


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_memory_grows_with_the_rows_and_not_with_the_components(iris, model):
    model, rows = clone(model).fit(*iris), np.repeat(iris[0], 200, axis=0)
    model.predict_uncertainty(iris[0])  # what is kept of the leaves is there then
    tracemalloc.start()
    model.predict_uncertainty(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * rows[:, :3].nbytes  # scores for three classes, some times; all components' are more
