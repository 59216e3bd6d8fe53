"""Runs: the same results whatever happens on the way, and nothing run twice."""

import io
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import joblib
import pandas as pd
import pytest
from rich.console import Console
from study_runs import cells_in, command, stored, wait_for_cells
from waiting import PATIENCE, wait_until

from kfhe.study.algorithms import versions_for
from kfhe.study.errors import StudyError
from kfhe.study.plan import Algorithm, Plan
from kfhe.study.run import describe, run
from kfhe.study.store import Store

KFHE = Algorithm("KFHE-e", "KFHE-e", {"n_estimators": 3})
BAD = Algorithm("bad", "sklearn.tree.DecisionTreeClassifier", {"max_depth": -1})


@pytest.fixture
def long_plan(plan):
    """A study of 800 cells, a few milliseconds each."""
    return replace(plan, datasets=(*plan.datasets, "iris"), repeats=25, folds=4)


def test_a_run_fills_the_file_and_a_second_one_finds_nothing_to_do(plan, tmp_path):
    path = tmp_path / "new folder" / "in a new folder" / "results.sqlite"
    first = run(plan, path, n_jobs=1)
    assert (first.cells, first.ran, first.failed) == (24, 24, 0)
    before = cells_in(path)
    second = run(plan, path, n_jobs=1)
    assert (second.cells, second.ran) == (24, 0)
    assert "already" in describe(second, path)
    pd.testing.assert_frame_equal(cells_in(path), before)


def test_one_and_two_processes_give_the_same(plan, tmp_path):
    plan = replace(plan, algorithms=(*plan.algorithms, KFHE))
    run(plan, tmp_path / "one.sqlite", n_jobs=1)
    run(plan, tmp_path / "two.sqlite", n_jobs=2)
    one, two = cells_in(tmp_path / "one.sqlite"), cells_in(tmp_path / "two.sqlite")
    assert len(one) == 36
    assert one["error"].isna().all()
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize(("n_jobs", "n_processes"), [(1, 1), (2, 2), (None, 3), (50, 12)])
def test_there_are_as_many_processes_as_asked_for(n_jobs, n_processes, plan, tmp_path, monkeypatch):
    """By default one for each processor, and never more than there are batches."""
    asked, config = [], joblib.parallel_config

    def in_this_process(backend, *, n_jobs, **settings):
        asked.append(n_jobs)
        return config("sequential")

    monkeypatch.setattr("joblib.parallel_config", in_this_process)
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    assert run(plan, tmp_path / "results.sqlite", n_jobs=n_jobs).ran == 24
    assert asked == ([n_processes] if n_processes > 1 else [])


def test_a_failed_cell_stops_nothing_and_can_be_run_again(plan, tmp_path):
    path = tmp_path / "results.sqlite"
    plan = replace(plan, algorithms=(*plan.algorithms, BAD))
    outcome = run(plan, path, n_jobs=1)
    assert (outcome.ran, outcome.failed) == (36, 12)
    said = describe(outcome, path)
    assert (
        "12 of them ended in an error ('kfhe study report' lists them), first: InvalidParameterError" in said
    )
    failed = cells_in(path).query("algorithm == 'bad'")
    assert failed["error"].str.startswith("InvalidParameterError").all()
    assert run(plan, path, n_jobs=1).ran == 0
    assert run(plan, path, n_jobs=1, retry_failed=True).ran == 12


def test_datasets_that_cannot_be_used_are_left_out_by_name(plan, tmp_path):
    (tmp_path / "alike.csv").write_text("x,class\n1,a\n2,a\n3,a\n")
    names = (*plan.datasets, "physio", str(tmp_path / "alike.csv"))
    outcome = run(replace(plan, datasets=names), tmp_path / "results.sqlite", n_jobs=1)
    assert outcome.ran == 24
    assert list(outcome.left_out) == ["physio", "alike"]
    assert "has one class only" in outcome.left_out["alike"]
    with Store.read(tmp_path / "results.sqlite") as store:
        assert store.datasets()["problem"].notna().tolist() == [False, True, True]


def test_a_study_without_any_data_does_not_begin(plan, tmp_path):
    with pytest.raises(StudyError, match=r"none of the datasets can be used: .*physio"):
        run(replace(plan, datasets=("physio",)), tmp_path / "results.sqlite")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StudyError, match="it has no files"):
        run(plan, tmp_path / "results.sqlite", data_dir=tmp_path / "empty")
    assert not (tmp_path / "results.sqlite").exists()


def test_more_repeats_of_the_same_study_begin_with_the_same_cells(plan, tmp_path):
    run(plan, tmp_path / "short.sqlite", n_jobs=1)
    run(replace(plan, repeats=3), tmp_path / "long.sqlite", n_jobs=1)
    beginning = cells_in(tmp_path / "long.sqlite").query("repeat < 2").reset_index(drop=True)
    pd.testing.assert_frame_equal(beginning, cells_in(tmp_path / "short.sqlite"))


def test_a_log_gets_a_line_for_each_tenth(plan, tmp_path):
    log = io.StringIO()
    run(plan, tmp_path / "results.sqlite", n_jobs=1, console=Console(file=log))
    lines = log.getvalue().splitlines()
    assert lines[0].endswith("target 'class'; classes: 'a', 'b', 'c'")
    assert lines[1] == "4 of 24 cells are done"
    assert lines[-1] == "24 of 24 cells are done"
    assert len(lines) == 11


def test_a_terminal_gets_a_table_of_averages(plan, tmp_path):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    run(plan, tmp_path / "results.sqlite", n_jobs=1, console=terminal)
    assert "Mean macro F1 so far" in screen.getvalue()
    assert "24/24" in screen.getvalue()


def test_versions_name_what_results_depend_on(plan):
    found = versions_for(replace(plan, algorithms=(*plan.algorithms, Algorithm("GBM", "GBM"))))
    assert {"kfhe", "lightgbm", "numpy", "pandas", "python", "scikit-learn", "scipy"} == set(found)


def run_without_data_folder(plan, path):
    """Run in a child of the fork server, which may have the environment of an earlier test."""
    os.environ.pop("KFHE_DATA", None)
    run(plan, path, n_jobs=1)


@pytest.mark.posix
def test_a_study_killed_again_and_again_ends_as_an_undisturbed_one(long_plan, tmp_path):
    # A server that has imported everything forks the runs, so that each begins at once
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["kfhe.study.run", "kfhe.study.cells", "sklearn.tree", "sklearn.naive_bayes"]
    )
    undisturbed, disturbed = tmp_path / "undisturbed.sqlite", tmp_path / "disturbed.sqlite"
    moments = random.Random(4)
    total, progress = len(long_plan.cells()), [0]
    for kill in range(25):
        child = context.Process(target=run_without_data_folder, args=(long_plan, disturbed))
        child.start()
        # Every third kill comes at any moment, even while the file is made; others after some progress
        while kill % 3 and stored(disturbed) < progress[-1] + moments.randrange(1, 20) and child.is_alive():
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.1))
        child.kill()
        child.join()
        assert child.exitcode == -signal.SIGKILL, "the study was over before it could be killed"
        progress.append(stored(disturbed))
    assert progress == sorted(progress), "a kill loses nothing"
    assert 16 < progress[-1] < total
    assert run(long_plan, disturbed, n_jobs=1).ran == total - progress[-1]
    run(long_plan, undisturbed, n_jobs=2)
    assert len(cells_in(disturbed)) == total
    pd.testing.assert_frame_equal(cells_in(disturbed), cells_in(undisturbed))


@pytest.mark.posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_the_command_with_two_processes_can_be_stopped_and_goes_on(name, csv, tmp_path):
    path = tmp_path / "results.sqlite"
    arguments = [
        "--dataset",
        csv,
        "--dataset",
        "wine",
        "--algorithm",
        "random forest",
        "--algorithm",
        "sklearn.svm.SVC",
    ]
    arguments += ["--noise", 0, "--repeats", 4, "--results", path, "--jobs", 2]
    with command(*arguments) as process:
        wait_for_cells(path, process, 5)
        os.killpg(process.pid, getattr(signal, name))
        _, errors = process.communicate(timeout=PATIENCE)
    reached = stored(path)
    with Store.read(path) as store:
        plan = store.plan
    assert 5 <= reached < len(plan.cells())
    if name == "SIGINT":
        assert process.returncode == 130
        assert "Stopped." in errors
        assert "Traceback" not in errors
    assert run(plan, path, n_jobs=2).ran == len(plan.cells()) - reached
    run(plan, tmp_path / "undisturbed.sqlite", n_jobs=2)
    pd.testing.assert_frame_equal(cells_in(path), cells_in(tmp_path / "undisturbed.sqlite"))


def processes_of(session):
    """Return the numbers of a session's processes that compute, be their parent alive or not."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,sess=,stat="], capture_output=True, text=True, check=True
    )
    rows = [line.split() for line in listed.stdout.splitlines()]
    return [int(pid) for pid, of, state in rows if int(of) == session and not state.startswith("Z")]


@pytest.mark.posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_no_worker_outlives_the_command_by_much(name, tmp_path):
    """The signal goes to the command alone; a cell would take its worker ten minutes."""
    (tmp_path / "slow.py").write_text(
        "import time\nfrom sklearn.dummy import DummyClassifier\n"
        "class Slow(DummyClassifier):\n"
        f"    def fit(self, X, y):\n        open({str(tmp_path / 'began')!r}, 'w').close()\n"
        "        time.sleep(600)\n"
    )
    path = tmp_path / "results.sqlite"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    arguments = ["--dataset", "iris", "--dataset", "wine", "--algorithm", "slow.Slow", "--results", path]
    with command(*arguments, "--jobs", 2, env=environment) as process:
        wait_until((tmp_path / "began").exists)
        assert len(processes_of(process.pid)) >= 3
        process.send_signal(getattr(signal, name))
        process.wait(timeout=PATIENCE)
        try:
            wait_until(lambda: not processes_of(process.pid))
        finally:
            for pid in processes_of(process.pid):
                os.kill(pid, signal.SIGKILL)
        errors = process.stderr.read()
    if name == "SIGTERM":
        assert process.returncode == 130
        assert "Stopped." in errors
        assert "Traceback" not in errors
    plan = Plan(("iris", "wine"), (Algorithm("slow.Slow", "slow.Slow"),))
    with Store.read(path) as store:
        assert store.plan.datasets == plan.datasets
        assert not store.done()


@pytest.mark.posix
def test_a_worker_that_is_killed_is_said(csv, tmp_path):
    suicide = tmp_path / "suicide.py"
    suicide.write_text(
        "import os, signal\nfrom sklearn.dummy import DummyClassifier\n"
        "class Suicide(DummyClassifier):\n"
        "    def fit(self, X, y):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    plan = Plan((str(csv),), (Algorithm("suicide", "suicide.Suicide"),))
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from kfhe.study.errors import StudyError\nfrom kfhe.study.plan import Plan\n"
        "from kfhe.study.run import run\n"
        f"try:\n    run(Plan.from_json({plan.to_json()!r}), {str(tmp_path / 'r.sqlite')!r}, n_jobs=2)\n"
        "except StudyError as error:\n    print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert "a process of the study was killed, possibly because memory ran out" in done.stdout
