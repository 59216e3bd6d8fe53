"""Pickle, joblib and skops keep models whole. Model files are smaller and faster than a random forest's."""

import io
import pickle
from time import perf_counter

import joblib
import numpy as np
import pytest
import skops.io
from components import as_parameters, assert_equal_models
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import kfhe
from kfhe import CARTClassifier, KFHEClassifier

# What skops asks to be trusted: plain Python classes with arrays in them.
TRUSTED = [
    "kfhe.classifier.KFHEClassifier",
    "kfhe.forest.Forest",
    "kfhe.tables.schema.Schema",
    "kfhe.trace.Trace",
]
TRUSTED_COMPONENTS = ["kfhe.estimator_ensemble.EstimatorEnsemble", "sklearn.tree._tree.Tree"]
TRUSTED_RUN = [
    "kfhe.exchange.Exchange",
    "kfhe.engine.draws.Draws",
    "kfhe.engine.arrays.Measurer",
    "kfhe.kalman.KalmanFilter",
]
TRUSTED_RUN += ["kfhe.measurement.OnTrainingRows", "kfhe.rows.TrainingRows", "kfhe.tables.binned.BinnedTable"]
TRUSTED_RUN += [
    "kfhe.kalman.RowFilter",
    "kfhe.measurement.OnUnseenRows",
    "kfhe.tree.CARTClassifier",
    "kfhe.state_space.StateSpace",
]
TRUSTED_RUN += ["kfhe.sensors.EstimatorSensor", "kfhe.sensors.TreeSensor", "kfhe.training.TrainingRun"]


def through_pickle(model, trusted):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model, trusted):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def through_skops(model, trusted):
    return skops.io.loads(skops.io.dumps(model), trusted=trusted)


by_any = pytest.mark.parametrize("through", [through_pickle, through_joblib, through_skops])


@by_any
def test_native_trees_are_kept(iris, through):
    X, y = iris
    model = KFHEClassifier(n_estimators=4, random_state=0).fit(X, y)
    same = through(model, TRUSTED)
    assert_equal_models(model, same, X)
    assert same.fingerprint() == model.fingerprint()
    assert same.trace_ == model.trace_


@by_any
def test_a_single_tree_is_kept(iris, through):
    X, y = iris
    tree = CARTClassifier().fit(X, y)
    same = through(tree, [*TRUSTED, "kfhe.tree.CARTClassifier", "kfhe.state_space.StateSpace"])
    assert same.tree_.export_text() == tree.tree_.export_text()
    np.testing.assert_array_equal(same.predict_proba(X), tree.predict_proba(X))


@by_any
def test_components_of_another_kind_are_kept(iris, through):
    X, y = iris
    model = KFHEClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=0).fit(X, y)
    assert_equal_models(model, through(model, TRUSTED + TRUSTED_COMPONENTS), X)


@by_any
@pytest.mark.parametrize(
    "estimator", [CARTClassifier(max_depth=2), DecisionTreeClassifier(max_depth=2)], ids=["native", "sklearn"]
)
def test_a_run_goes_on_where_it_was(iris, through, estimator):
    X, y = iris
    model = KFHEClassifier(estimator, n_estimators=3, warm_start=True, random_state=0).fit(X, y)
    same = through(model, TRUSTED + TRUSTED_COMPONENTS + TRUSTED_RUN)
    for one in (model, same):
        one.set_params(n_estimators=6).fit(X, y)
    assert_equal_models(model, same, X)


@by_any
@pytest.mark.parametrize(
    "options",
    [
        {"measurement": "out-of-bag", "transition": 0.9, "process_noise": [0.1, 0.01]},
        {
            "estimator": [CARTClassifier(shrinkage=3), CARTClassifier(max_depth=2, shrinkage=3)],
            "voting": "soft",
        },
        {"estimator": [DecisionTreeClassifier(max_depth=2), CARTClassifier()], "measurement": "out-of-bag"},
    ],
    ids=["out of bag", "two kinds of trees", "two kinds"],
)
def test_a_run_of_another_kind_goes_on_as_well(iris, through, options):
    X, y = iris
    model = KFHEClassifier(n_estimators=3, warm_start=True, random_state=0, **as_parameters(options)).fit(
        X, y
    )
    trusted = [*TRUSTED, *TRUSTED_COMPONENTS, *TRUSTED_RUN, "kfhe.estimator_ensemble.ClassShares"]
    same = through(model, trusted)
    at_once = KFHEClassifier(n_estimators=6, random_state=0, **as_parameters(options)).fit(X, y)
    assert_equal_models(same.set_params(n_estimators=6).fit(X, y), at_once, X)


def test_a_loaded_model_can_be_pickled(iris):
    X, y = iris
    file = io.BytesIO()
    model = KFHEClassifier(n_estimators=4, random_state=0, emphasis=lambda weights, missed: weights).fit(X, y)
    model.save(file)
    file.seek(0)
    same = through_pickle(kfhe.load(file), None)
    assert_equal_models(model, same, X)
    assert "not in the model file" in repr(same.emphasis)


def test_a_model_file_is_ten_times_smaller_than_a_random_forest_and_loads_faster(tmp_path):
    X, y = load_digits(return_X_y=True)
    KFHEClassifier(n_estimators=100, random_state=0).fit(X, y).save(tmp_path / "ours")
    joblib.dump(RandomForestClassifier(100, random_state=0).fit(X, y), tmp_path / "peer")
    seconds = {"ours": [], "peer": []}
    for _ in range(5):
        for name, load in (("ours", kfhe.load), ("peer", joblib.load)):
            started = perf_counter()
            assert len(load(tmp_path / name).estimators_) >= 100
            seconds[name].append(perf_counter() - started)
    smaller = (tmp_path / "peer").stat().st_size / (tmp_path / "ours").stat().st_size
    faster = min(seconds["peer"]) / min(seconds["ours"])
    print(f"the file is {smaller:.1f} times smaller and loads {faster:.1f} times faster")
    assert smaller > 10
    assert faster > 1
