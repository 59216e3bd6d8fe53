"""Small studies that take no time, and the paper's own scores as a study."""

import numpy as np
import pandas as pd
import pytest

from kfhe.study.cells import Result
from kfhe.study.dataset import Dataset
from kfhe.study.paper import published
from kfhe.study.paper.catalogue import catalogue, paper_names
from kfhe.study.plan import Algorithm, Plan
from kfhe.study.store import Store

TREE = Algorithm("tree", "sklearn.tree.DecisionTreeClassifier", {"max_depth": 3})
BAYES = Algorithm("Bayes", "sklearn.naive_bayes.GaussianNB")


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch, tmp_path):
    """Keep tests apart from the user's own data and cache."""
    monkeypatch.delenv("KFHE_DATA", raising=False)
    monkeypatch.setenv("KFHE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def rows():
    """Ninety rows of three classes that can be told apart, mostly."""
    random = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 30)
    centres = {"a": 0.0, "b": 2.0, "c": 4.0}
    frame = pd.DataFrame({"width": [centres[label] + random.normal() for label in labels]})
    frame["height"] = random.normal(size=90)
    frame["class"] = labels
    return frame


@pytest.fixture
def csv(rows, tmp_path):
    """A csv file of those rows."""
    path = tmp_path / "small.csv"
    rows.to_csv(path, index=False)
    return path


@pytest.fixture
def reviewed(rows, tmp_path):
    """A csv file of those rows with given labels, a fifth of them wrong, and with the true ones."""
    frame = rows.rename(columns={"class": "true"})
    frame["given"] = frame["true"]
    frame.loc[::5, "given"] = frame.loc[::5, "true"].map({"a": "b", "b": "c", "c": "a"})
    frame["given_twice"] = frame["true"]
    path = tmp_path / "reviewed.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def plan(csv):
    """A study of 24 cells: two algorithms, two noise levels, two repeats, three folds."""
    return Plan((str(csv),), (TREE, BAYES), noise_levels=(0.0, 0.2), repeats=2, folds=3, seed=1)


@pytest.fixture(scope="session")
def paper_study(tmp_path_factory):
    """Result file of a study that found exactly what the paper prints."""
    path = tmp_path_factory.mktemp("paper") / "paper.sqlite"
    plan = Plan.preset("paper")
    datasets = [
        Dataset(name, pd.DataFrame({"x": [0.0, 1.0]}), np.array([0, 1]), ["a", "b"], "made up")
        for name in paper_names()
    ]
    scores = {noise: published.scores(noise) for noise in plan.noise_levels}
    curve = [1 / (step + 1) for step in range(5)]
    trace = dict.fromkeys(("measurement_error", "posterior_variance", "gain", "training_error"), curve)
    with Store.write(path, plan, {"kfhe": "0"}) as store:
        store.note_datasets(datasets, {})
        store.add(
            Result(
                cell,
                f1_macro=float(scores[cell.noise].at[cell.dataset, cell.algorithm]),
                fit_seconds=0.1,
                predict_seconds=0.01,
                components=100,
                trace=trace if cell.algorithm == "KFHE-e" and cell.repeat == cell.fold == 0 else None,
            )
            for cell in plan.cells()
            if cell.repeat == 0 and cell.fold < 2
        )
    assert set(catalogue()) >= set(paper_names())
    return path
