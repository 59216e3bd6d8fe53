"""A model that was trained on a cluster is that of one machine, to the bit."""

import numpy as np
import pandas as pd
import pytest
from cluster_tables import arrays, frames, mixed, numbers, weights
from clusters import local_cluster
from components import as_parameters
from distributed import Client

import kfhe
from kfhe import CARTClassifier, StateSpace
from kfhe.dask import KFHEClassifier, RobustKFHEClassifier
from kfhe.trace import COLUMNS

LOCAL = {KFHEClassifier: kfhe.KFHEClassifier, RobustKFHEClassifier: kfhe.RobustKFHEClassifier}


def assert_same(model, local):
    assert model.fingerprint() == local.fingerprint()
    np.testing.assert_array_equal(model.classes_, local.classes_)
    for column in COLUMNS:
        if column != "seconds":
            np.testing.assert_array_equal(model.trace_[column], local.trace_[column], err_msg=column)


def check(kind, settings, distributed, given):
    model = kind(random_state=3, **settings).fit(*distributed)
    local = LOCAL[kind](random_state=3, **settings).fit(*given)
    assert_same(model, local)
    return model, local


E_L_R = [
    (KFHEClassifier, {"n_estimators": 2}),
    (KFHEClassifier, {"n_estimators": 2, "emphasis": "linear"}),
    (RobustKFHEClassifier, {"n_estimators": 6}),
]


@pytest.mark.parametrize(("kind", "settings"), E_L_R)
def test_numbers_with_gaps(client, kind, settings):
    given = numbers()
    check(kind, settings, arrays(4, *given), given)


@pytest.mark.parametrize("n_partitions", [1, 16])
def test_any_number_of_partitions(client, n_partitions):
    given = numbers()
    check(KFHEClassifier, {"n_estimators": 1}, arrays(n_partitions, *given), given)


@pytest.mark.parametrize(("kind", "settings"), E_L_R[1:])
def test_weighted_rows_of_which_some_weigh_nothing(client, kind, settings):
    given = (*numbers(), weights())
    check(kind, settings, arrays(5, *given), given)


def test_a_partition_may_weigh_nothing(client):
    given = (*numbers(), weights())
    given[2][:15_000] = 0
    check(KFHEClassifier, {"n_estimators": 1}, arrays(5, *given), given)


def test_samples_that_lack_a_rare_class_are_drawn_again(client):
    X, y = numbers()
    y[17] = 3
    for seed in range(4, 6):  # of the second the first sample has no row of the class
        model = KFHEClassifier(n_estimators=1, random_state=seed).fit(*arrays(3, X, y))
        assert_same(model, kfhe.KFHEClassifier(n_estimators=1, random_state=seed).fit(X, y))


@pytest.mark.parametrize(("kind", "settings"), E_L_R[::2])
def test_frames_with_categories_dates_and_gaps(client, kind, settings):
    given = mixed()
    model, local = check(kind, settings, frames(6, *given), given)
    assert model.feature_names_in_.tolist() == local.feature_names_in_.tolist()
    assert model.estimators_.schema == local.estimators_.schema


@pytest.mark.parametrize("some", [slice(20), slice(-20, None)], ids=["first", "last"])
def test_a_year_that_some_rows_alone_have_is_known_of_all(client, some):
    X, y = mixed()
    X["when"] = pd.Timestamp("2024-03-05")
    X.iloc[some, X.columns.get_loc("when")] = pd.Timestamp("2025-03-05")
    model, local = check(RobustKFHEClassifier, {"n_estimators": 2}, frames(6, X, y), (X, y))
    assert model.estimators_.schema == local.estimators_.schema


def test_values_of_the_last_rows_that_the_sample_lacks_are_known_of_all(client):
    rows = np.arange(100_000)
    X = np.where(rows < 99_980, 0.0, rows)[:, np.newaxis]
    given = X, rows % 2
    check(KFHEClassifier, {"n_estimators": 1}, arrays(3, *given), given)


@pytest.mark.parametrize(
    "settings",
    [
        {"voting": "soft", "shrinkage": "auto"},
        {"emphasis": "margin", "voting": "soft"},
        {"transition": 0.9, "process_noise": 0.1},
        {"max_features": 2, "min_samples_leaf": 1, "min_samples_split": 2},
        {"max_features": 3, "splitter": "random", "min_samples_leaf": 1, "min_samples_split": 2},
        {"splitter": "random"},
        {"max_leaf_nodes": 12},
        {"estimator": [CARTClassifier(), CARTClassifier(max_depth=2)]},
        {"max_leaf_nodes": 900},
        {"cp": 0.002, "max_leaf_nodes": 30},
        {"max_samples": 0.3},
        {"class_weight": "balanced"},
        {"state_space": StateSpace(measurement="out-of-bag")},
    ],
    ids=str,
)
def test_settings(client, settings):
    given = (*numbers(), weights())
    check(KFHEClassifier, {"n_estimators": 1, **as_parameters(settings)}, arrays(3, *given), given)


def test_few_rows_are_trained_on_by_one_worker(client):
    X, y = (each[:200] for each in numbers())
    check(KFHEClassifier, {"n_estimators": 3}, [each[:200] for each in arrays(4, *numbers())], (X, y))


def test_what_the_robust_classifier_finds_out_is_the_same(client):
    given = numbers()
    model, local = check(RobustKFHEClassifier, {"n_estimators": 21}, arrays(4, *given), given)
    for name in ("lambda_", "noise_rate_", "oob_score_", "oob_log_loss_"):
        assert getattr(model, name) == getattr(local, name), name
    np.testing.assert_array_equal(model.oob_decision_function_.compute(), local.oob_decision_function_)


@pytest.mark.parametrize("n_workers", [1, 4])
def test_worker_processes(n_workers):
    given = numbers()
    with (
        local_cluster(n_workers) as cluster,
        Client(cluster),
    ):
        check(KFHEClassifier, {"n_estimators": 1}, arrays(3, *given), given)
