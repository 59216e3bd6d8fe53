"""Studies on a Dask cluster: the results of a local run, whatever happens to workers and scheduler."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.metadata import version
from threading import Thread

import dask
import pandas as pd
import pytest
from clusters import local_cluster
from study_runs import cells_in, command, stored, wait_for_cells
from waiting import PATIENCE, wait_until

from kfhe.dask.connection import connected
from kfhe.study.algorithms import versions_for
from kfhe.study.dataset import read_table
from kfhe.study.errors import StudyError
from kfhe.study.plan import Algorithm
from kfhe.study.run import run
from kfhe.study.sources import load
from kfhe.study.workers import IN_FLIGHT, Cluster

KFHE = Algorithm("KFHE-e", "KFHE-e", {"n_estimators": 3})
# Classifiers that workers can import
MODULE = """
import os, signal, time
from pathlib import Path
from sklearn.dummy import DummyClassifier

class Killer(DummyClassifier):
    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)

class Slow(DummyClassifier):
    def fit(self, X, y):
        time.sleep(0.1)
        return super().fit(X, y)

class Noting(DummyClassifier):
    def fit(self, X, y):
        Path(self.constant, str(os.getpid())).touch()
        time.sleep(0.05)
        return super().fit(X, y)
"""


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory):
    """A module of classifiers, where workers that start from now on find it."""
    folder = tmp_path_factory.mktemp("classifiers")
    (folder / "classifiers.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder


@pytest.fixture(scope="module")
def cluster(classifiers):
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def address(cluster):
    cluster.scale(2)
    cluster.wait_for_workers(2)
    return cluster.scheduler_address


def test_a_cluster_gives_what_one_process_gives(plan, address, tmp_path):
    plan = replace(plan, algorithms=(*plan.algorithms, KFHE))
    run(plan, tmp_path / "here.sqlite", n_jobs=1)
    outcome = run(plan, tmp_path / "there.sqlite", scheduler=address)
    assert (outcome.cells, outcome.ran, outcome.failed) == (36, 36, 0)
    pd.testing.assert_frame_equal(cells_in(tmp_path / "there.sqlite"), cells_in(tmp_path / "here.sqlite"))
    assert run(plan, tmp_path / "there.sqlite", scheduler=address).ran == 0


def test_workers_need_no_files(plan, csv, address, tmp_path):
    dataset = read_table(csv)
    csv.unlink()
    with Cluster(address) as workers:
        (results,) = workers.results(plan, [plan.cells()[:4]], {"small": dataset}.get)
    assert [result.error for result in results] == [None] * 4
    assert all(result.fit_seconds > 0 for result in results)


@pytest.mark.posix
def test_a_worker_killed_in_the_middle_costs_nothing(plan, cluster, address, tmp_path):
    plan = replace(plan, repeats=5)
    path = tmp_path / "there.sqlite"

    def kill_a_worker():
        while stored(path) < 12:
            time.sleep(0.01)
        os.kill(cluster.workers[0].pid, signal.SIGKILL)

    killer = Thread(target=kill_a_worker, daemon=True)
    killer.start()
    outcome = run(plan, path, scheduler=address)
    killer.join()
    assert (outcome.cells, outcome.ran, outcome.failed) == (60, 60, 0)
    run(plan, tmp_path / "here.sqlite", n_jobs=1)
    pd.testing.assert_frame_equal(cells_in(path), cells_in(tmp_path / "here.sqlite"))


@pytest.mark.posix
@pytest.mark.filterwarnings("ignore:the cluster at .* has no workers")  # both may be starting again
def test_a_cell_that_kills_its_workers_has_failed_and_those_beside_it_have_not(
    plan, csv, cluster, address, monkeypatch
):
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    plan = replace(plan, algorithms=(*plan.algorithms, Algorithm("killer", "classifiers.Killer")))
    beside, killing = plan.cells()[:2], plan.cells()[3:6]
    with Cluster(address) as workers:
        found = workers.results(plan, [killing, beside], lambda name: read_table(csv))
        error = {result.cell: result.error for results in found for result in results}
    assert len(error) == 5
    assert [cell.algorithm for cell in error if error[cell] is not None] == ["killer"]
    assert error[killing[2]].startswith("KilledWorker: each worker that ran it died")


def test_workers_that_join_later_are_used_and_few_cells_are_on_their_way(plan, cluster, address, tmp_path):
    noting = Algorithm("noting", "classifiers.Noting", {"constant": str(tmp_path)})
    plan = replace(plan, datasets=("iris",), algorithms=(noting,), repeats=1000)
    cluster.scale(1)
    cluster.wait_for_workers(1)
    deadline, most = time.monotonic() + 60, 0
    with Cluster(address) as workers:
        for _ in workers.results(plan, [[cell] for cell in plan.cells()], load):
            cluster.scale(2)
            most = max(most, len(cluster.scheduler.tasks))
            if len([path for path in tmp_path.iterdir() if path.name.isdigit()]) == 2:
                break
            assert time.monotonic() < deadline
    assert 1 < most <= 4 * IN_FLIGHT, "those of two workers, the table, and some that were just stored"


def test_a_cluster_without_workers_is_said(plan):
    with local_cluster(0) as cluster, Cluster(cluster.scheduler_address) as workers:
        results = workers.results(plan, [plan.cells()], load)
        with pytest.raises(UserWarning, match="has no workers: waiting for some"):
            next(results)


def test_workers_with_other_versions_are_refused(plan, address, tmp_path, monkeypatch):
    monkeypatch.setattr("kfhe.study.workers.versions_for", lambda plan: {**versions_for(plan), "kfhe": "0.0"})
    message = rf"worker tcp://\S+ has other versions .*: kfhe {version('kfhe')}, not 0\.0$"
    with pytest.raises(StudyError, match=message):
        run(plan, tmp_path / "results.sqlite", scheduler=address)
    assert stored(tmp_path / "results.sqlite") == 0


def test_workers_that_lack_an_algorithm_are_refused(plan, address, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("from sklearn.dummy import DummyClassifier\n")
    monkeypatch.syspath_prepend(tmp_path)
    plan = replace(plan, algorithms=(Algorithm("mine", "only_here.DummyClassifier"),))
    with pytest.raises(StudyError, match=r"worker tcp://\S+: 'algorithms.mine' needs .*only_here"):
        run(plan, tmp_path / "results.sqlite", scheduler=address)
    assert stored(tmp_path / "results.sqlite") == 0


def test_without_a_scheduler_no_study_begins(plan, tmp_path):
    with dask.config.set({"distributed.comm.timeouts.connect": "100ms"}):
        for address in ("tcp://127.0.0.1:1", "nowhere", "tls://127.0.0.1:1"):
            with pytest.raises(StudyError, match=f"no Dask scheduler can be reached at {address}: "):
                run(plan, tmp_path / "results.sqlite", scheduler=address)
    assert not (tmp_path / "results.sqlite").exists()


def test_what_confuses_the_event_loop_is_not_logged(address, caplog):
    with connected(address, set_as_default=False) as client:
        client.loop.add_callback(lambda: 1 / 0)
        client.ncores()  # after it
    assert "ZeroDivisionError" not in caplog.text


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler and a worker as users start them; yields the process and the address."""
    file = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    shared = ["--scheduler-file", str(file), "--dashboard-address", ":0"]  # ports that are free
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    local = ["--host", "127.0.0.1", "--port", "0"]
    with (
        subprocess.Popen([*dask, "scheduler", *shared, *local], **quiet) as scheduler,
        subprocess.Popen([*dask, "worker", *shared, "--nthreads", "1", "--no-nanny"], **quiet) as worker,
    ):
        try:
            while not file.exists() or not file.read_text():
                assert scheduler.poll() is None
                time.sleep(0.05)
            yield scheduler, json.loads(file.read_text())["address"]
        finally:
            worker.kill()
            scheduler.kill()


@pytest.mark.filterwarnings("ignore:the cluster at .* has no workers")  # its worker is just starting
def test_a_scheduler_that_is_killed_is_said_and_the_study_goes_on(plan, scheduler, tmp_path):
    process, address = scheduler
    plan = replace(plan, repeats=8)
    path = tmp_path / "results.sqlite"

    def kill_the_scheduler():
        while stored(path) < 2:
            time.sleep(0.01)
        process.kill()

    killer = Thread(target=kill_the_scheduler, daemon=True)
    killer.start()
    with pytest.raises(StudyError, match=f"the Dask scheduler at {address} is gone"):
        run(plan, path, scheduler=address)
    killer.join()
    reached = stored(path)
    assert 2 <= reached < 96
    assert run(plan, path, n_jobs=1).ran == 96 - reached


@pytest.mark.posix
def test_a_signal_ends_the_command_and_takes_back_its_cells(csv, classifiers, cluster, address, tmp_path):
    path = tmp_path / "results.sqlite"
    arguments = ["--dataset", csv, "--algorithm", "classifiers.Slow", "--repeats", 1000, "--results", path]
    environment = {**os.environ, "PYTHONPATH": str(classifiers)}
    with command(*arguments, "--scheduler", address, env=environment) as process:
        wait_for_cells(path, process, 5)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Stopped." in errors
    assert "Traceback" not in errors
    wait_until(lambda: not cluster.scheduler.tasks)
