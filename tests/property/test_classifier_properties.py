"""What must hold for any data and settings."""

import numpy as np
import pytest
from components import Log, Scripted, assert_equal_models, numbered
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.kalman import component_weights

quickly = settings(max_examples=40)


@st.composite
def problems(draw):
    """A small table with labels, perhaps weights, and a classifier for it."""
    n = draw(st.integers(1, 40))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    X = rng.integers(draw(st.integers(1, 5)), size=(n, draw(st.integers(1, 3)))).astype(float)
    y = rng.integers(draw(st.integers(1, 4)), size=n)
    weights = None
    if draw(st.booleans()):
        exponents = rng.normal(scale=draw(st.sampled_from([0, 1, 20, 200])), size=n)
        weights = np.exp(exponents.clip(max=700))  # more would be infinite
        weights[rng.uniform(size=n) < 0.2] = 0
        weights[rng.integers(n)] = 1.0
    model = KFHEClassifier(
        draw(
            st.sampled_from(
                [CARTClassifier(min_samples_leaf=1, min_samples_split=2), DecisionTreeClassifier(max_depth=2)]
            )
        ),
        emphasis=draw(st.sampled_from(["exponential", "linear"])),
        voting=draw(st.sampled_from(["hard", "soft"])),
        class_weight=draw(st.sampled_from([None, "balanced"])),
        n_estimators=draw(st.integers(1, 6)),
        random_state=seed,
    )
    return X, y, weights, model


@quickly
@given(problems())
def test_scores_are_probabilities_and_predictions_their_argmax(problem):
    X, y, weights, model = problem
    model.fit(X, y, sample_weight=weights)
    new = np.r_[X, X + 0.5, X - 100]
    proba = model.predict_proba(new)
    assert proba.shape == (len(new), len(model.classes_))
    assert proba.min() >= 0
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(new), model.classes_[proba.argmax(axis=1)])


@quickly
@given(problems())
def test_stages_end_in_the_final_scores(problem):
    X, y, weights, model = problem
    model.fit(X, y, sample_weight=weights)
    stages = list(model.staged_predict_proba(X))
    assert len(stages) == model.n_iter_ + 1
    np.testing.assert_allclose(stages[-1], model.predict_proba(X), rtol=0, atol=1e-15)
    for stage, predicted in zip(stages, model.staged_predict(X), strict=True):
        np.testing.assert_allclose(stage.sum(axis=1), 1, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(predicted, model.classes_[stage.argmax(axis=1)])


@quickly
@given(problems())
def test_the_filter_only_ever_gets_more_certain(problem):
    X, y, weights, model = problem
    model.fit(X, y, sample_weight=weights)
    assert ((model.trace_["gain"] > 0) & (model.trace_["gain"] <= 1)).all()
    assert ((model.trace_["measurement_error"] >= 0) & (model.trace_["measurement_error"] <= 1)).all()
    variances = np.append(1.0, model.trace_["posterior_variance"])
    assert (np.diff(variances) <= 0).all()
    assert (variances[:-1] > 0).all()  # once it is certain, training is over
    assert model.component_weights_.sum() == pytest.approx(1, abs=1e-12)
    assert model.component_weights_.min() >= 0
    present = len(y) if weights is None else np.count_nonzero(weights)
    sizes = model.trace_["effective_sample_size"]
    assert ((sizes >= 1 - 1e-9) & (sizes <= present + 1e-6)).all()


@quickly
@given(problems(), st.integers(1, 5))
def test_training_can_be_cut_anywhere(problem, first):
    X, y, weights, model = problem
    model.set_params(n_estimators=first + 2).fit(X, y, sample_weight=weights)
    in_steps = KFHEClassifier(**{**model.get_params(deep=False), "warm_start": True, "n_estimators": first})
    in_steps.fit(X, y, sample_weight=weights)
    in_steps.set_params(n_estimators=first + 2).fit(X, y, sample_weight=weights)
    assert_equal_models(in_steps, model, X)


@given(st.lists(st.floats(0, 1), max_size=40), st.integers(0, 1000))
def test_the_closed_form_is_the_recursion(gains, seed):
    votes = np.random.default_rng(seed).dirichlet(np.ones(3), size=(len(gains) + 1, 5))
    scores = votes[0]
    for gain, vote in zip(gains, votes[1:], strict=True):
        scores = scores + gain * ((scores + vote) / 2 - scores)
    weights = component_weights(np.array(gains) / 2)
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(np.tensordot(weights, votes, 1), scores, rtol=0, atol=1e-12)


@quickly
@given(st.data())
def test_any_votes_give_the_scores_of_the_recursion(data):
    n, n_classes, n_iter = data.draw(st.integers(2, 12)), data.draw(st.integers(2, 4)), 6
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    y = np.arange(n) % n_classes
    n_classes = y.max() + 1
    votes = np.where(
        rng.uniform(size=(3 * n_iter, n)) < 0.6, y, rng.integers(n_classes, size=(3 * n_iter, n))
    )
    estimator = Scripted(lambda t, rows: votes[t, rows], None, Log())
    model = KFHEClassifier(estimator, n_estimators=n_iter).fit(numbered(n), y)
    scores = np.eye(n_classes)[votes[0]]
    for gain, fit in zip(model.trace_["gain"], np.cumsum(model.trace_["resets"] + 1), strict=True):
        scores = scores + gain * ((scores + np.eye(n_classes)[votes[fit]]) / 2 - scores)
    np.testing.assert_allclose(model.predict_proba(numbered(n)), scores, rtol=0, atol=1e-12)
