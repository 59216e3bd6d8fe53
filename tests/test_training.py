"""A run may be stopped, interrupted, resumed and validated: it stays the plain run of its length."""

import numpy as np
import pytest
from components import assert_equal_models
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from kfhe import CARTClassifier, EarlyStopping, KFHEClassifier, RobustKFHEClassifier, StateSpace

MODELS = {
    "robust": RobustKFHEClassifier(),
    "robust, smaller samples": RobustKFHEClassifier(max_samples=0.5),
    "kfhe-e": KFHEClassifier(),
    "kfhe-l, soft": KFHEClassifier(CARTClassifier(shrinkage="auto"), emphasis="linear", voting="soft"),
    "out of bag": KFHEClassifier(
        state_space=StateSpace(measurement="out-of-bag"), emphasis="linear", voting="soft"
    ),
    "margin": KFHEClassifier(emphasis="margin"),
    "wandering state": KFHEClassifier(
        state_space=StateSpace(process_noise=[0.5, 0.1], transition=0.9), voting="soft"
    ),
    "two at a time": KFHEClassifier(state_space=StateSpace(n_measurements=2), emphasis="linear"),
    "others' trees": KFHEClassifier(RandomForestClassifier(3, max_depth=2)),
    "two kinds": KFHEClassifier([GaussianNB(), RandomForestClassifier(2, max_depth=3)]),
}


@pytest.fixture(params=MODELS)
def make(request):
    """Return what makes an untrained classifier with some more settings."""
    kind = MODELS[request.param]
    return lambda **settings: type(kind)(**{**kind.get_params(deep=False), "random_state": 0, **settings})


@pytest.fixture(scope="module")
def parts():
    return train_test_split(*load_breast_cancer(return_X_y=True), test_size=0.5, random_state=0)


def assert_is_plain(model, make, X, y, X_val, y_val):
    """Assert that a model is that of training once, without a stop, up to its length."""
    plain = make(n_estimators=max(model.n_iter_, 1)).fit(X, y, X_val=X_val, y_val=y_val)
    assert plain.n_iter_ == model.n_iter_
    assert_equal_models(model, plain, X_val)
    assert [*model.trace_["shrinkage"]] == [*plain.trace_["shrinkage"]]
    assert getattr(model, "lambda_", None) == getattr(plain, "lambda_", None)
    if getattr(model, "estimator", None) is None:
        assert model.fingerprint() == plain.fingerprint()
    if hasattr(model, "validation_scores_"):
        length = model.n_iter_ + 1
        assert [*model.validation_scores_[:length]] == [*plain.validation_scores_]


def interrupt(row):
    """Break training off in the thirteenth iteration, as Ctrl-C does."""
    if row.iteration == 13:
        raise KeyboardInterrupt


def test_stopped_early(make, parts):
    X, X_val, y, y_val = parts
    model = make(n_estimators=60, early_stopping=EarlyStopping(5))
    model.fit(X, y, X_val=X_val, y_val=y_val)
    assert len(model.validation_scores_) > model.n_iter_ + 1  # components were dropped
    assert_is_plain(model, make, X, y, X_val, y_val)


def test_stopped_early_and_resumed(make, parts):
    X, X_val, y, y_val = parts
    model = make(n_estimators=30, early_stopping=EarlyStopping(2, "accuracy"), warm_start=True)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    assert len(model.validation_scores_) > model.n_iter_ + 1
    model.set_params(early_stopping=None).fit(X, y, X_val=X_val, y_val=y_val)
    assert_is_plain(model, make, X, y, X_val, y_val)


def test_interrupted_and_resumed(make, parts):
    X, X_val, y, y_val = parts
    model = make(n_estimators=8, warm_start=True).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_estimators=26).fit(X, y, callbacks=[interrupt])
    assert_is_plain(model, make, X, y, X_val, y_val)
    model.fit(X, y, X_val=X_val, y_val=y_val)
    assert_is_plain(model, make, X, y, X_val, y_val)


def test_interrupted_while_the_model_is_stored(make, parts, monkeypatch):
    X, X_val, y, y_val = parts
    model = make(n_estimators=8, warm_start=True).fit(X, y)

    def interrupted(*arguments, **settings):
        raise KeyboardInterrupt

    model.set_params(n_estimators=16)
    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_attributes", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert_is_plain(model, make, X, y, X_val, y_val)
    assert model.fit(X, y).n_iter_ == 16
    assert_is_plain(model, make, X, y, X_val, y_val)


def test_what_a_run_goes_back_to_holds_no_copy_of_the_rows(parts):
    X, _, y, _ = parts
    model = RobustKFHEClassifier(n_estimators=3, warm_start=True, random_state=0).fit(X, y)
    assert np.shares_memory(model._run.checkpoint().model._rows.X, model._run.rows.X)
