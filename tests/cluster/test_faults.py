"""Workers that die, and clusters that are gone: the model is the same, or there is one clear error."""

import asyncio
import os
import signal
import subprocess
import sys
from threading import Thread, Timer
from types import SimpleNamespace

import dask
import pytest
from cluster_tables import arrays, numbers
from clusters import local_cluster
from distributed import Client

import kfhe
from kfhe.dask import ClusterLostError, KFHEClassifier, RobustKFHEClassifier
from kfhe.dask.peers import PeerLostError, Peers
from kfhe.dask.workers import Workers


def at(iteration, act):
    """A callback that does something once, after an iteration."""

    def watch(row):
        if row.iteration == iteration:
            act()

    return watch


SETTINGS = {"n_estimators": 4, "random_state": 0}


@pytest.fixture(scope="module")
def expected():
    return kfhe.RobustKFHEClassifier(**SETTINGS).fit(*numbers()).fingerprint()


def test_workers_that_are_killed_one_after_the_other_change_nothing(expected):
    with local_cluster(2) as cluster, Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        kills = [at(i + 1, lambda pid=pid: os.kill(pid, signal.SIGKILL)) for i, pid in enumerate(pids)]
        seen = []
        model = RobustKFHEClassifier(**SETTINGS)
        model.fit(*arrays(4, *numbers()), callbacks=[*kills, lambda row: seen.append(row.iteration)])
        assert not set(pids) & set(client.run(os.getpid).values())
    assert model.fingerprint() == expected
    assert seen == [1, 2, 3, 4]  # nobody hears of an iteration twice


@pytest.mark.skipif(sys.platform == "win32", reason="no signals that stop processes")
@pytest.mark.parametrize("wakes", [False, True])
@pytest.mark.parametrize("which", [0, 1])
def test_a_worker_that_hangs_is_left_behind_unless_it_wakes(expected, which, wakes):
    """Left behind it is once Dask gives it up: after `worker-ttl`, five minutes most often."""
    with (
        dask.config.set({"distributed.scheduler.worker-ttl": "1s"}),  # so often Dask looks
        local_cluster(2) as cluster,
        Client(cluster) as client,
    ):
        cluster.scheduler.worker_ttl = patience = 300.0
        pid = list(client.run(os.getpid).values())[which]

        def stop():
            os.kill(pid, signal.SIGSTOP)
            if wakes:
                Timer(1.0, os.kill, (pid, signal.SIGCONT)).start()
            else:
                cluster.scheduler.worker_ttl = 5.0
                Timer(12.0, setattr, (cluster.scheduler, "worker_ttl", patience)).start()

        model = RobustKFHEClassifier(**SETTINGS).fit(*arrays(4, *numbers()), callbacks=[at(2, stop)])
        assert (pid in client.run(os.getpid).values()) == wakes
    assert model.fingerprint() == expected


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


@pytest.mark.parametrize(
    "asked", ["kfhe.dask.KFHEClassifier().fit(X, y)", "kfhe.dask.label_quality(X, y)"], ids=["fit", "audit"]
)
def test_without_a_client_it_is_said_how_to_make_one(asked):
    made = "import dask.array as da, kfhe.dask; X, y = da.zeros((9, 2), chunks=5), da.arange(9, chunks=5) % 2"
    done = subprocess.run([sys.executable, "-c", f"{made}; {asked}"], capture_output=True, text=True)
    told = "ValueError: there is no Dask cluster to train on; create a client first, such as distributed"
    assert told in done.stderr


class LosingConnection:
    """A connection to a peer; the session ends while something is sent."""

    def __init__(self, peers):
        self.peers = peers

    async def write(self, message):
        self.peers.lose("the other one is gone")

    def abort(self):
        pass


def test_an_error_that_ends_waiting_is_not_its_own_cause():
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    peers = Peers(SimpleNamespace(loop=SimpleNamespace(asyncio_loop=loop)), "name", 0, 2)
    peers._others[1] = LosingConnection(peers)
    try:
        for _ in range(2):  # while it waits, and afterwards
            with pytest.raises(PeerLostError, match="the other one is gone") as raised:
                peers.gather(1)
            causes = [raised.value]
            while (cause := causes[-1].__cause__) is not None and cause not in causes:
                causes.append(cause)
            assert cause is None  # Dask follows the causes to the last one, and would never get there
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
