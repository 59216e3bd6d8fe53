"""Datasets: the catalogue, the order of sources, and messages about unavailable ones."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kfhe.study import sources
from kfhe.study.errors import StudyError
from kfhe.study.paper.catalogue import catalogue, paper_names
from kfhe.study.sources import differences, load, locate
from kfhe.study.synthetic import GENERATORS

# The folder of the paper's data files, where there is one; taken before tests hide it
PAPER_DATA = os.environ.get("KFHE_DATA")


def test_the_catalogue_has_the_papers_thirty_datasets():
    assert len(paper_names()) == 30
    assert [name for name in paper_names() if not catalogue()[name].comparable] == [
        "physio",
        "flags",
        "newthyroid",
    ]
    assert all(facts.citation for facts in catalogue().values())


@pytest.mark.parametrize(
    "name",
    [*GENERATORS, "iris", "wine", "breast_cancer", "digits"],
)
def test_what_needs_no_file_is_as_the_catalogue_says(name):
    dataset = load(name)
    assert dataset.source in ("generated", "scikit-learn")
    assert differences(dataset, catalogue()[name]) == []
    assert dataset.categorical == list(catalogue()[name].categorical)


def test_the_rules_of_the_monks():
    for name, rule in {
        "monks1": lambda r: r["a1"] == r["a2"] or r["a5"] == "1",
        "monks2": lambda r: sum(value == "1" for value in r) == 2,
        "monks3": lambda r: (r["a5"] == "3" and r["a4"] == "1") or (r["a5"] != "4" and r["a2"] != "3"),
    }.items():
        dataset = load(name)
        expected = [int(rule(row)) for _, row in dataset.X.astype(str).iterrows()]
        assert dataset.y.tolist() == expected


def test_made_sets_have_the_classes_that_their_rule_says():
    inside = load("hastie").X.pow(2).sum(axis=1) <= 9.34
    assert (load("hastie").y == np.where(inside, 0, 1)).all()
    x = load("exclusive_or").X
    assert (load("exclusive_or").y == ((x["x1"] > 0) ^ (x["x2"] > 0))).all()
    peaks = load("waveform").X.groupby(load("waveform").y).mean().to_numpy().argsort(axis=1)[:, -4:]
    between = [(6, 10), (10, 14), (6, 14)]  # of the bumps that each class is a mixture of
    for columns, (low, high) in zip(peaks, between, strict=True):
        assert low - 2 <= columns.min() <= columns.max() <= high + 2


def test_a_balance_scale_tips_to_the_heavier_side():
    dataset = load("balance_scale")
    moment = dataset.X["left_weight"] * dataset.X["left_distance"]
    moment -= dataset.X["right_weight"] * dataset.X["right_distance"]
    labels = np.array(dataset.classes)[dataset.y]
    assert (labels == np.select([moment > 0, moment < 0], ["L", "R"], "B")).all()


def test_a_folder_comes_before_everything_else(rows, tmp_path, monkeypatch):
    rows.to_csv(tmp_path / "iris.csv", index=False)
    assert load("iris", tmp_path).classes == ["a", "b", "c"]
    assert load("iris").source == "scikit-learn"
    monkeypatch.setenv("KFHE_DATA", str(tmp_path))
    assert load("iris").source == str(tmp_path / "iris.csv")


def test_codes_of_the_catalogue_are_categories_in_a_folder_as_well(tmp_path):
    frame = load("monks1").X.astype(int)
    frame["class"] = load("monks1").y
    frame.to_csv(tmp_path / "monks1.csv", index=False)
    assert load("monks1", tmp_path).fingerprint() == load("monks1").fingerprint()
    # The paper's monks is monks-1, by whichever name the file goes
    assert load("monks", tmp_path).fingerprint() == load("monks1").fingerprint()


@pytest.mark.skipif(PAPER_DATA is None, reason="KFHE_DATA doesn't name the paper's data files")
def test_the_papers_files_are_those_of_the_catalogue():
    for name, facts in catalogue().items():
        source = locate(name, PAPER_DATA)
        if source is None or source.kind != "folder":
            continue
        assert hashlib.sha256(source.path.read_bytes()).hexdigest() == facts.sha256, name
        dataset = load(name, PAPER_DATA)
        assert differences(dataset, facts) == [], name
        assert dataset.categorical == list(facts.categorical), name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("irsi", r"dataset 'irsi' is unknown; did you mean iris\?"),
        ("zzz", "'zzz' is unknown; 'kfhe data list' shows all names"),
        ("physio", "'physio' is unavailable. Its origin is not known"),
        (
            "glass",
            r"'glass' is not on this machine; put glass\.csv into a folder .* or try 'kfhe data fetch glass'",
        ),
        (
            "skulls",
            r"'skulls' is not on this machine; put skulls\.csv into a folder and name it by .* KFHE_DATA$",
        ),
        ("absent.csv", r"absent\.csv: there is no such file"),
    ],
)
def test_what_is_not_here_is_said_by_name(name, message):
    with pytest.raises(StudyError, match=message):
        load(name)


def test_a_data_folder_must_be_one_with_data(tmp_path):
    with pytest.raises(StudyError, match=r"it has no files that end in \.csv"):
        load("iris", tmp_path)
    with pytest.raises(StudyError, match="absent: there is no such folder"):
        load("iris", tmp_path / "absent")


# Downloads: OpenML is played by a stand-in


class Bunch:
    def __init__(self, frame):
        self.data = frame.drop(columns="class")
        self.target = frame["class"]


@pytest.fixture
def openml(monkeypatch):
    """What OpenML would send for haberman; each call is counted."""
    facts = catalogue()["haberman"]
    frame = pd.DataFrame(np.arange(facts.rows * 3.0).reshape(-1, 3), columns=["age", "year", "nodes"])
    frame["class"] = np.repeat(["1", "2"], sorted(facts.classes.values(), reverse=True))
    calls = []

    def fetch_openml(*, data_id, **options):
        calls.append(data_id)
        return Bunch(frame)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    fetch_openml.frame, fetch_openml.calls = frame, calls
    return fetch_openml


def test_a_download_is_checked_and_kept(openml):
    path = sources.fetch("haberman")
    assert path.parent == sources.cache_folder()
    assert differences(load("haberman"), catalogue()["haberman"]) == []
    assert sources.fetch("haberman") == path
    assert openml.calls == [catalogue()["haberman"].openml], "what is in the cache is not fetched again"


def test_a_download_of_something_else_is_refused(openml):
    openml.frame.loc[0, "class"] = "2"
    with pytest.raises(StudyError, match=r"another one \(rows per class: \[82, 224\].*nothing was stored"):
        sources.fetch("haberman")
    assert not list(sources.cache_folder().glob("*"))


def test_a_download_that_breaks_off_leaves_nothing(openml, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match=r"haberman\.parquet: can't be written: No space left on device"):
        sources.fetch("haberman")
    assert list(Path(sources.cache_folder()).iterdir()) == []


def test_no_network_is_said(monkeypatch):
    def fetch_openml(**options):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    with pytest.raises(StudyError, match="'haberman' could not be downloaded from OpenML: no route to host"):
        sources.fetch("haberman")


@pytest.mark.parametrize(
    ("name", "message"), [("physio", "can't be downloaded"), ("nothing", "not in the catalogue")]
)
def test_what_cannot_be_downloaded_is_said(name, message):
    with pytest.raises(StudyError, match=message):
        sources.fetch(name)
