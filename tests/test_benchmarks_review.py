"""What looks at wrong labels are worth, beside cleanlab's order."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from typer import Typer
from typer.testing import CliRunner

from benchmarks import review
from kfhe.noise import flip_labels


@pytest.fixture
def folder(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    table = X.assign(given=flip_labels(names, 0.2, random_state=0), true=names, given_other="?")
    pd.concat([table, table]).to_csv(tmp_path / "iris.csv", index=False)
    return tmp_path


def test_equal_rows_are_on_one_side_and_labels_are_no_features(folder):
    (task,) = review.tasks(folder)
    assert not {"given", "true", "given_other"} & set(task.X)
    assert len(task.X) + len(task.X_test) == 300
    assert task.X.merge(task.X_test).empty


def test_whoever_knows_the_truth_decides_by_it(folder):
    (task,) = review.tasks(folder)
    decisions = review.judged(task, np.arange(50))
    wrong = task.given[:50] != task.true[:50]
    assert [each.decision == "change" for each in decisions] == wrong.tolist()
    assert [each.decided for each in decisions] == task.true[:50].tolist()


def test_every_order_gets_as_many_looks(folder, monkeypatch):
    pytest.importorskip("cleanlab")
    monkeypatch.setattr(review, "LOOKS", 30)
    (task,) = review.tasks(folder)
    outcome = review.trial(task, 1)
    assert outcome.left[review.GIVEN] == task.n_wrong
    assert all(
        task.n_wrong - 30 <= left < task.n_wrong - 10 for way, left in outcome.left.items() if way != "given"
    )
    assert outcome.f1[review.OURS] >= outcome.f1[review.GIVEN] - 0.05
    assert outcome.low <= outcome.estimate <= outcome.high


def test_the_command_prints_both_tables(folder, monkeypatch):
    pytest.importorskip("cleanlab")
    monkeypatch.setattr(review, "LOOKS", 20)
    app = Typer()
    app.command()(review.main)
    result = CliRunner().invoke(app, [str(folder), "--threads", "1"])
    assert result.exit_code == 0, result.output
    assert "wrong labels corrected on average" in result.output
    assert "The range covers the true share on" in result.output
    assert CliRunner().invoke(app, [str(folder), "--data", "none"]).exit_code == 2
