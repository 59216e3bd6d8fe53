"""What workers do before it is known whether it is right is done again if it was not."""

import numpy as np
import pytest
from cluster_tables import arrays
from clusters import local_cluster
from distributed import Client

import kfhe
import kfhe.dask.rows
import kfhe.dask.sums
from kfhe.dask import RobustKFHEClassifier


@pytest.mark.parametrize("units_tried", [3, 0])
def test_samples_without_a_class_and_sums_in_other_units_change_nothing(units_tried, monkeypatch):
    monkeypatch.setattr(kfhe.dask.sums, "UNITS_TRIED", units_tried)  # 0: no part has tried the right one
    X = np.random.default_rng(0).normal(size=(30_000, 3))
    y = (X[:, 0] > 0).astype(int)
    y[0] = 2  # a single row, which many samples lack
    tries, drawn = [], kfhe.dask.rows.SpreadDraws._drawn
    monkeypatch.setattr(kfhe.dask.rows.SpreadDraws, "_drawn", lambda *given: tries.append(1) or drawn(*given))
    settings = {"n_estimators": 6, "random_state": 4}
    with local_cluster(2, processes=False) as cluster, Client(cluster):
        model = RobustKFHEClassifier(**settings).fit(*arrays(4, X, y))
    assert len(tries) > 6
    assert model.fingerprint() == kfhe.RobustKFHEClassifier(**settings).fit(X, y).fingerprint()
