"""Metadata routing: weights, validation sets and callbacks reach fit through pipelines and searches."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kfhe import KFHEClassifier
from kfhe.classifier import KFHEClassifier as Classifier

SMALL = {"n_estimators": 4, "random_state": 0}


@pytest.fixture(autouse=True)
def _routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def weights(iris):
    return np.where(iris[1] == 1, 5.0, 1.0)


def test_sample_weights_reach_the_folds_of_cross_validation(iris, weights):
    X, y = iris
    model = KFHEClassifier(**SMALL).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    folds = StratifiedKFold(3)
    found = cross_validate(model, X, y, params={"sample_weight": weights}, cv=folds, return_estimator=True)
    for (train, test), fitted, score in zip(
        folds.split(X, y), found["estimator"], found["test_score"], strict=True
    ):
        by_hand = Classifier(**SMALL).fit(X[train], y[train], sample_weight=weights[train])
        assert fitted.fingerprint() == by_hand.fingerprint()
        assert score == by_hand.score(X[test], y[test], sample_weight=weights[test])


def test_sample_weights_reach_the_best_model_of_a_search(iris, weights):
    X, y = iris
    model = KFHEClassifier(**SMALL).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"emphasis": ["linear", "exponential"]}, cv=3).fit(
        X, y, sample_weight=weights
    )
    by_hand = KFHEClassifier(**SMALL, **search.best_params_).fit(X, y, sample_weight=weights)
    assert search.best_estimator_.fingerprint() == by_hand.fingerprint()
    assert by_hand.fingerprint() != KFHEClassifier(**SMALL, **search.best_params_).fit(X, y).fingerprint()


def test_a_pipeline_prepares_the_validation_set_as_well(iris):
    X, y = iris
    rows = []
    model = KFHEClassifier(early_stopping=3, **SMALL)
    model.set_fit_request(X_val=True, y_val=True, callbacks=True)
    pipeline = Pipeline([("scale", StandardScaler()), ("kfhe", model)], transform_input=["X_val"])
    pipeline.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2], callbacks=[rows.append])

    scaler = StandardScaler().fit(X[::2])
    by_hand = KFHEClassifier(early_stopping=3, **SMALL)
    by_hand.fit(scaler.transform(X[::2]), y[::2], X_val=scaler.transform(X[1::2]), y_val=y[1::2])
    assert pipeline[-1].fingerprint() == by_hand.fingerprint()
    np.testing.assert_array_equal(pipeline[-1].validation_scores_, by_hand.validation_scores_)
    assert [row.validation_score for row in rows] == by_hand.validation_scores_[1:].tolist()


def test_a_search_gives_all_candidates_the_same_validation_set(iris):
    X, y = iris
    model = KFHEClassifier(early_stopping=3, **SMALL).set_fit_request(X_val=True, y_val=True)
    search = GridSearchCV(model, {"emphasis": ["linear", "exponential"]}, cv=3)
    search.fit(X[20:], y[20:], X_val=X[:20], y_val=y[:20])
    by_hand = KFHEClassifier(early_stopping=3, **SMALL, **search.best_params_)
    by_hand.fit(X[20:], y[20:], X_val=X[:20], y_val=y[:20])
    assert search.best_estimator_.fingerprint() == by_hand.fingerprint()


def test_nothing_is_routed_unasked(iris, weights):
    X, y = iris
    pipeline = Pipeline([("scale", StandardScaler()), ("kfhe", KFHEClassifier(**SMALL))])
    with pytest.raises(ValueError, match=r"\[sample_weight\] are passed but are not explicitly set"):
        pipeline.fit(X, y, sample_weight=weights)
