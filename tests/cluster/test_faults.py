"""Workers that die, and clusters that are gone: the model is the same, or there is one clear error."""

import os
import signal

import pytest
from cluster_tables import arrays, numbers
from clusters import local_cluster
from distributed import Client

import kfhe
from kfhe.dask import ClusterLostError, KFHEClassifier, RobustKFHEClassifier, label_quality
from kfhe.dask.workers import Workers


def at(iteration, act):
    """A callback that does something once, after an iteration."""

    def watch(row):
        if row.iteration == iteration:
            act()

    return watch


def test_a_worker_that_is_killed_changes_nothing():
    X, y = numbers()
    settings = {"n_estimators": 3, "random_state": 0}
    with local_cluster(2) as cluster, Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        kill = at(2, lambda: os.kill(pids[0], signal.SIGKILL))
        model = RobustKFHEClassifier(**settings).fit(*arrays(4, X, y), callbacks=[kill])
        assert pids[0] not in client.run(os.getpid).values()
    assert model.fingerprint() == kfhe.RobustKFHEClassifier(**settings).fit(X, y).fingerprint()


def test_a_cluster_that_is_gone_is_told_and_training_goes_on_on_another():
    X, y = numbers()
    given = arrays(4, X, y)
    model = KFHEClassifier(n_estimators=4, random_state=0, warm_start=True)
    with (
        local_cluster(1, processes=False) as cluster,
        Client(cluster),
        pytest.raises(ClusterLostError, match=r"lost: .*\. 3 trees are kept.*warm_start=True"),
    ):
        model.fit(*given, callbacks=[at(2, cluster.close)])
    assert not hasattr(model, "estimators_")
    assert sum(map(len, model._grown[-1].trees)) == 3
    with local_cluster(2, processes=False) as cluster, Client(cluster):
        model.fit(*given)
    expected = kfhe.KFHEClassifier(n_estimators=4, random_state=0).fit(X, y)
    assert model.fingerprint() == expected.fingerprint()
    assert not hasattr(model, "_grown")


@pytest.mark.parametrize("asked", [Workers.threads, lambda workers: workers.result(workers.run(abs, -1))])
def test_a_cluster_that_is_gone_is_told_by_whatever_is_asked_first(asked):
    with local_cluster(1, processes=False) as cluster, Client(cluster) as client:
        workers = Workers(client)
        assert asked(workers)
        cluster.close()
        client.close()
        with pytest.raises(ClusterLostError, match="the scheduler is gone"):
            asked(workers)


def test_without_a_client_it_is_said_how_to_make_one():
    with pytest.raises(ValueError, match=r"no Dask cluster to train on; make a client first, .*Client\(\)"):
        KFHEClassifier().fit(*arrays(2, *numbers()))
    with pytest.raises(ValueError, match="no Dask cluster to train on; make a client first"):
        label_quality(*arrays(2, *numbers()))
