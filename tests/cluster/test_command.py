"""kfhe fit on parquet files that are read part by part: the model of one file, and what can't be had."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest
from cluster_tables import mixed
from distributed import LocalCluster
from pyarrow import parquet
from waiting import PATIENCE, wait_until

import kfhe
from kfhe.cli import fit as command
from kfhe.cli import main
from kfhe.dask import connection
from kfhe.dask.memory import in_words

N = 10_000  # rows: two blocks


@pytest.fixture(scope="module")
def table():
    """A table with categories, dates, gaps, and rows without a label."""
    X, y = mixed()
    table = X.assign(code=np.arange(len(X)) % 7, hot=y).iloc[:N].copy()
    table.loc[[5, 9_000], "hot"] = None
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    """The table in a folder of parquet files, of which one is empty, and in one file beside it."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "parts").mkdir()
    bounds = [0, 3_000, 3_000, 4_001, N]
    for i, (first, last) in enumerate(pairwise(bounds)):
        table.iloc[first:last].to_parquet(folder / "parts" / f"{i}.parquet", row_group_size=1_500)
    nothing = {name: pa.nulls(0) for name in table.columns}  # as pandas wrote empty columns of objects
    parquet.write_table(pa.table(nothing), folder / "parts" / "1.parquet")
    (folder / "parts" / "_SUCCESS").touch()
    table.to_parquet(folder / "whole.parquet")
    return folder


@pytest.fixture(autouse=True)
def elsewhere(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    # Workers of one process start at once
    monkeypatch.setattr(connection, "LocalCluster", partial(LocalCluster, processes=False))


@pytest.fixture(scope="module")
def address(client):
    return client.scheduler.address


@pytest.fixture
def fit(monkeypatch, capfd):
    """Run the command in this process; return what it said."""

    def run(*arguments, code=0):
        arguments = ("fit", *arguments, "-t", "hot", "-o", "model.kfhe")
        monkeypatch.setattr("sys.argv", ["kfhe", *map(str, arguments)])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfd.readouterr().err
        assert ended.value.code == code, said
        assert "Traceback" not in said
        return " ".join(said.replace("│", " ").split())

    return run


def assert_same(model, local):
    assert model.fingerprint() == local.fingerprint()
    assert type(model) is type(local)
    assert repr(model) == repr(local)
    assert model.estimators_.schema == local.estimators_.schema
    assert model.feature_names_in_.tolist() == local.feature_names_in_.tolist()
    assert (model.classes_.dtype, *model.classes_) == (local.classes_.dtype, *local.classes_)


def test_a_folder_of_files_gives_the_model_of_one_file(fit):
    options = ("--drop-unlabelled", "--as", "code=category", "--n-estimators", 6)
    said = fit("parts", "--jobs", 1, *options)
    model = kfhe.load("model.kfhe")
    assert "parts: 10,000 rows in 4 files, read part by part; 3 columns of categories, 3 of numbers" in said
    assert re.search(r"Target 'hot': maybe \(\d+\), no .*; 2 rows without a label are left out", said)
    assert re.search(r"Training will take about \d+ MB of memory on the worker; it has [\d.]+ GB\.", said)
    assert "Trained 7 trees" in said
    local = fit("whole.parquet", *options)
    assert said.partition("On rows")[2] == local.partition("On rows")[2]
    assert_same(model, kfhe.load("model.kfhe"))


def test_classes_that_differ_by_capitals_or_blanks_only_are_named(fit, table):
    Path("alike").mkdir()
    shouted = table["hot"].where(table.index % 3 > 0, table["hot"].str.upper())
    table.assign(hot=shouted).to_parquet("alike/0.parquet")
    said = fit("alike", "--jobs", 1, "--drop-unlabelled", "--n-estimators", 1)
    assert re.search(r"only differ in capitals or blanks, 'NO' \([\d,]+\), 'no' \([\d,]+\); each is", said)


@pytest.mark.parametrize("model", ["kfhe-e", "kfhe-l"])
def test_all_options_of_training_work_on_a_given_cluster(fit, folder, address, model):
    options = ["--model", model, "--n-estimators", 2, "--max-leaf-nodes", 6, "--min-samples-leaf", 3]
    options += ["--class-weight", "balanced", "--max-samples", 0.6]
    options += ["--random-state", 3, "--drop", "si*e", "--as", "when=category", "--drop-unlabelled"]
    fit(*sorted(folder.glob("parts/*.parquet")), "--scheduler", address, *options)
    model = kfhe.load("model.kfhe")
    fit("whole.parquet", *options)
    assert_same(model, kfhe.load("model.kfhe"))


def test_a_cluster_is_used_for_several_files_a_folder_or_a_large_one(folder, monkeypatch):
    whole, part = Path("whole.parquet"), Path("parts/0.parquet")
    assert not command.is_large([whole])
    assert not command.is_large([Path("absent.parquet")])
    assert not command.is_large([Path("-")])
    assert command.is_large([whole, part])
    assert command.is_large([Path("parts")])
    held = parquet.read_table(whole).nbytes
    monkeypatch.setattr(command, "SMALL", 0)
    for free, large in ((1.5 * held, True), (3 * held, False)):
        monkeypatch.setattr(connection, "free_memory", lambda free=free: free)
        assert command.is_large([whole]) is large


@pytest.fixture
def odd(tmp_path, table):
    """Files that don't go with the others."""
    some = table.iloc[:100]
    some.drop(columns="town").to_parquet(tmp_path / "fewer.parquet")
    some.assign(size="large").to_parquet(tmp_path / "other.parquet")
    some.assign(hot=some["size"].fillna(0.5)).to_parquet(tmp_path / "fractions.parquet")
    some.to_csv(tmp_path / "rows.csv")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "nothing").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["parts/0.parquet", "{odd}/rows.csv"],
            "rows.csv: a table that is read part by part must be parquet files",
        ),
        (["{odd}/nothing"], "nothing: there are no .parquet files in this folder"),
        (["parts", "absent.parquet"], "absent.parquet: there is no such file"),
        (["parts", "{odd}/broken.parquet"], "broken.parquet: is damaged, or no parquet file"),
        (["parts", "{odd}/fewer.parquet"], "fewer.parquet: there is no column 'town', which is in "),
        (["parts", "{odd}/other.parquet"], "other.parquet: column 'size' has type .*string, but float in "),
        (["parts", "parts/1.parquet"], r"parts/1\.parquet: is given twice; its rows would count twice"),
        (["parts", "--drop", "sise"], "there is no column 'sise'; did you mean 'size'"),
        (["parts", "--as", "town=date"], "column 'town' is text, which can't be read as date"),
        (["parts", "--as", "size=date"], "column 'size' has type Float32; it can't be read as date"),
        (["parts", "--scheduler", "nowhere"], "no Dask scheduler can be reached at nowhere: "),
        (["{odd}/fractions.parquet", "--scheduler", "{address}"], "target 'hot' has .* fractions"),
        (
            ["parts", "--scheduler", "{address}"],
            r"/0\.parquet: target 'hot' has 1 gap, in row 6; fill it in, or .* --drop-unlabelled",
        ),
    ],
)
def test_what_cant_be_trained_on_is_told(fit, odd, address, arguments, message):
    arguments = [each.format(odd=odd, address=address) for each in arguments]
    assert re.search(message, fit(*arguments, code=1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["parts", "--sep", ";"], "--sep: only for csv and Excel files"),
        (["parts", "--na", "-"], "--na: only for csv and Excel files"),
        (
            ["parts", "--scheduler", "tcp://a:1", "--jobs", "2"],
            "--jobs: local processes can't be combined",
        ),
    ],
)
def test_options_that_have_no_meaning_there_are_refused(fit, arguments, message):
    assert message in fit(*arguments, code=2)


def test_too_little_memory_is_told_before_training(fit, monkeypatch):
    monkeypatch.setattr(connection, "free_memory", lambda: 300_000_000)
    said = fit("parts", "--drop-unlabelled", "--jobs", 2, code=1)
    assert re.search(
        r"Training will take about \d{3} MB .*each of 2 workers; each has 9\d MB: too little", said
    )
    assert "Leave columns out (--drop)" in said
    assert "Trained" not in said


def test_sizes_are_written_as_people_do():
    assert [in_words(n) for n in (4.2e8, 1.23e9, 4.5e12)] == ["420 MB", "1.2 GB", "4,500.0 GB"]


def is_alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def started(tmp_path, until):
    """Start a training that takes long, as a process of its own; return it once it has said a line."""
    script = "from kfhe.cli import main\nif __name__ == '__main__':\n    main()\n"
    (tmp_path / "command.py").write_text(script)
    (tmp_path / "temporary").mkdir()
    arguments = ["fit", "parts", "-t", "hot", "--drop-unlabelled", "--jobs", "1", "--n-estimators", "9999"]
    running = subprocess.Popen(
        [sys.executable, tmp_path / "command.py", *arguments, "-o", tmp_path / "out.kfhe"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        start_new_session=True,
    )
    for line in running.stderr:
        if line.startswith(until):
            break
    return running


@pytest.mark.posix
def test_ctrl_c_while_workers_start_ends_it_quietly(tmp_path):
    running = started(tmp_path, until="parts:")
    command = psutil.Process(running.pid)
    wait_until(lambda: any("spawn_main" in " ".join(child.cmdline()) for child in command.children()))
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE)
    assert (running.returncode, said) == (130, "")
    assert not os.listdir(tmp_path / "temporary")


@pytest.mark.posix
def test_ctrl_c_leaves_nothing_behind(tmp_path):
    temporary = tmp_path / "temporary"
    running = started(tmp_path, until="Training will take")
    time.sleep(0.5)
    workers = psutil.Process(running.pid).children(recursive=True)
    assert workers
    assert os.listdir(temporary)
    os.killpg(running.pid, signal.SIGINT)  # a terminal tells all processes
    _, said = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert "Traceback" not in said
    # The helper that watches over them ends when it notices
    wait_until(lambda: not any(is_alive(each) for each in workers))
    assert not os.listdir(temporary)
    assert not (tmp_path / "out.kfhe").exists()
