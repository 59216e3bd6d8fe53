"""How near estimated shares of wrong labels are to the true ones."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer import Typer
from typer.testing import CliRunner

from benchmarks import estimates
from kfhe.noise import flip_labels


@pytest.fixture
def folder(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    X.assign(given=flip_labels(names, 0.2, random_state=0), true=names).to_csv(
        tmp_path / "iris.csv", index=False
    )
    return tmp_path


def test_looks_make_estimates_better(folder):
    (task,) = estimates.real_tables(folder)
    found = list(estimates.estimates(task, by_chance=False, n_threads=1))
    assert {(each.way, each.looks) for each in found} == {
        *((estimates.PAGE, looks) for looks in (0, 10, 25, 50)),
        *((estimates.AGAIN, looks) for looks in (10, 25, 50)),
    }
    assert {each.true for each in found} == {0.2}
    assert all(abs(each.share - 0.2) < 0.03 for each in found if each.looks == 50)


def test_labels_of_datasets_are_changed_by_chance():
    tasks = list(estimates.chance_tables(["iris", "no such table"]))
    assert [(task.given != task.true).mean().round(2) for task in tasks] == [0.05, 0.1, 0.2]


def test_the_command_prints_both_tables(folder):
    app = Typer()
    app.command()(estimates.main)
    result = CliRunner().invoke(app, [str(folder), "--data", "iris", "--threads", "1"])
    assert result.exit_code == 0, result.output
    assert "iris, 20%" in result.output
    assert result.output.count("next audit") == 6
