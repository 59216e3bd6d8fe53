"""The classifiers on Dask, as their users see them."""

import dask.array as da
import joblib
import numpy as np
import pytest
from cluster_tables import arrays, frames, mixed, numbers
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

import kfhe
from kfhe import EarlyStopping
from kfhe.dask import KFHEClassifier, RobustKFHEClassifier


@pytest.fixture(scope="module")
def model(client):
    return KFHEClassifier(n_estimators=2, random_state=0).fit(*arrays(3, *numbers()))


METHODS = ("predict", "predict_proba", "predict_log_proba", "predict_uncertainty")


@pytest.mark.parametrize("method", METHODS)
def test_predictions_for_dasks_arrays_are_lazy(model, method):
    X, y = numbers()
    local = kfhe.KFHEClassifier(n_estimators=2, random_state=0).fit(X, y)
    given, _ = arrays(5, X, y)
    lazy = getattr(model, method)(given)
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), getattr(local, method)(X))
    np.testing.assert_array_equal(getattr(model, method)(X[:20]), getattr(local, method)(X[:20]))


def test_predictions_for_dasks_frames(client):
    X, y = mixed()
    given = frames(4, X, y)
    model = KFHEClassifier(n_estimators=2, random_state=0).fit(*given)
    local = model.to_local()
    assert type(local) is kfhe.KFHEClassifier
    for method in METHODS:
        np.testing.assert_array_equal(getattr(model, method)(given[0]).compute(), getattr(local, method)(X))


def test_columns_of_arrays_are_called_as_on_one_machine(model):
    local = kfhe.KFHEClassifier(n_estimators=2, random_state=0).fit(*numbers())
    assert model.estimators_.schema == local.estimators_.schema


def test_the_model_is_the_ordinary_one(model, tmp_path):
    model.save(tmp_path / "m.kfhe")
    loaded = kfhe.load(tmp_path / "m.kfhe")
    assert type(loaded) is kfhe.KFHEClassifier
    assert loaded.fingerprint() == model.fingerprint()
    joblib.dump(model, tmp_path / "m.joblib")
    assert joblib.load(tmp_path / "m.joblib").fingerprint() == model.fingerprint()
    assert repr(model) == "KFHEClassifier(n_estimators=2, random_state=0)"


def test_a_validation_set_of_this_machine_ends_training(client):
    X, y = numbers()
    settings = {"n_estimators": 4, "random_state": 0, "early_stopping": 1}
    model = RobustKFHEClassifier(**settings).fit(*arrays(3, X, y), X_val=X[:500], y_val=y[:500])
    local = kfhe.RobustKFHEClassifier(**settings).fit(X, y, X_val=X[:500], y_val=y[:500])
    np.testing.assert_array_equal(model.validation_scores_, local.validation_scores_)
    assert model.fingerprint() == local.fingerprint()


def test_training_goes_on_with_warm_start(client):
    X, y = numbers()
    given = arrays(3, X, y)
    model = KFHEClassifier(n_estimators=1, random_state=0, warm_start=True).fit(*given)
    model.set_params(n_estimators=3).fit(*given)
    assert model.fingerprint() == kfhe.KFHEClassifier(n_estimators=3, random_state=0).fit(X, y).fingerprint()
    with pytest.raises(ValueError, match="warm_start=True needs the data of the first fit, got other data"):
        model.set_params(n_estimators=4).fit(*arrays(3, X + 1, y))


def interrupt(row):
    if row.iteration == 9:
        raise KeyboardInterrupt


def test_training_that_was_interrupted_goes_on_to_the_same_model(client):
    X, y = load_breast_cancer(return_X_y=True)
    given = [da.from_array(each, chunks=200) for each in (X, y)]
    model = RobustKFHEClassifier(n_estimators=4, random_state=0, warm_start=True).fit(*given)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_estimators=12).fit(*given, callbacks=[interrupt])
    model.fit(*given)
    local = kfhe.RobustKFHEClassifier(n_estimators=12, random_state=0).fit(X, y)
    assert model.fingerprint() == local.fingerprint()


def test_training_that_was_stopped_is_that_of_fewer_trees(client):
    X, y = load_breast_cancer(return_X_y=True)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.5, random_state=0)
    model = RobustKFHEClassifier(n_estimators=60, early_stopping=5, random_state=0).fit(
        *[da.from_array(each, chunks=100) for each in (X, y)], X_val=X_val, y_val=y_val
    )
    assert model.n_iter_ < len(model.validation_scores_) - 1  # trees were dropped
    local = kfhe.RobustKFHEClassifier(n_estimators=model.n_iter_, random_state=0).fit(X, y)
    assert model.fingerprint() == local.fingerprint()


def nothing(weights, missed):
    return weights


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": GaussianNB()}, "on a cluster, estimator must be None or a CARTClassifier"),
        ({"device": "cuda"}, "device='cuda' is for rows on one machine"),
        ({"emphasis": nothing}, "on a cluster, emphasis must be 'exponential'"),
        ({"early_stopping": True}, "early_stopping=True holds out rows on one machine"),
        (
            {"early_stopping": EarlyStopping(3, validation_fraction=0.1)},
            "validation_fraction holds out rows",
        ),
    ],
)
def test_what_needs_one_machine_is_refused(client, settings, message):
    with pytest.raises(ValueError, match=message):
        KFHEClassifier(**settings).fit(*arrays(2, *numbers()))


def test_local_tables_are_refused(client):
    X, y = numbers()
    with pytest.raises(TypeError, match="X is a ndarray; accepted are Dask's data frames, series and arrays"):
        KFHEClassifier().fit(X, y)


def test_partitions_have_to_match(client):
    X, y = numbers()
    with pytest.raises(ValueError, match="y has 2 partitions and X has 3; they must be partitioned alike"):
        KFHEClassifier().fit(arrays(3, X)[0], arrays(2, y)[0])
    with pytest.raises(ValueError, match=r"y has (20|30) rows in a partition where X has (30|20)"):
        KFHEClassifier().fit(
            da.from_array(X[:50], chunks=((20, 30), 6)), da.from_array(y[:50], chunks=((30, 20),))
        )


def test_infinite_values_are_told(client):
    X, y = numbers()
    X[20_000, 2] = np.inf
    with pytest.raises(ValueError, match="contains infinity in column '2'"):
        KFHEClassifier().fit(*arrays(3, X, y))


def test_missing_labels_are_told(client):
    X, y = numbers()
    y = np.where(np.arange(len(y)) == 7, np.nan, y)
    with pytest.raises(ValueError, match="y has missing labels"):
        KFHEClassifier().fit(*arrays(3, X, y))
