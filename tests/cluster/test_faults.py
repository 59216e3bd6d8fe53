"""Workers that die, and clusters that are gone: the model is the same, or there is one clear error."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest
from cluster_tables import arrays, numbers
from clusters import local_cluster
from distributed import Client

import kfhe
from kfhe.dask import ClusterLostError, KFHEClassifier, RobustKFHEClassifier, label_quality
from kfhe.dask.nodes import WholeGrower
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
    grown = {name: dict(trees) for name, trees in model._grown.items()}
    assert sum(len(trees) for trees in grown.values()) == 3
    with local_cluster(2, processes=False) as cluster, Client(cluster):
        model.fit(*given)
    expected = kfhe.KFHEClassifier(n_estimators=4, random_state=0).fit(X, y)
    assert model.fingerprint() == expected.fingerprint()
    assert not hasattr(model, "_grown")


@pytest.mark.parametrize("asked", ["n_threads", "homes"])
def test_a_cluster_that_is_gone_is_told_by_whatever_is_asked_first(asked):
    with local_cluster(1, processes=False) as cluster, Client(cluster) as client:
        workers = Workers(client, n_parts=2)
        assert getattr(workers, asked)()
        cluster.close()
        client.close()
        with pytest.raises(ClusterLostError, match="the scheduler is gone"):
            getattr(workers, asked)()


def test_a_grower_of_whole_trees_grows_one_at_a_time():
    class Grower:
        n_growing = most = 0

        def grow(self, weights, counts, number):
            Grower.n_growing += 1
            Grower.most = max(Grower.most, Grower.n_growing)
            sleep(0.02)
            Grower.n_growing -= 1
            return number

    grower = WholeGrower(Grower())
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda number: grower.grow(None, True, number), range(8))] == [*range(8)]
    assert Grower.most == 1


def test_without_a_client_it_is_said_how_to_make_one():
    with pytest.raises(ValueError, match=r"no Dask cluster to train on; make a client first, .*Client\(\)"):
        KFHEClassifier().fit(*arrays(2, *numbers()))
    with pytest.raises(ValueError, match="no Dask cluster to train on; make a client first"):
        label_quality(*arrays(2, *numbers()))
