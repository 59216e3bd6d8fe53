"""The benchmark's prediction mode: which ratio counts, and small runs."""

import json
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import datasets, prediction
from benchmarks.__main__ import app
from benchmarks.algorithms import OURS, is_installed
from benchmarks.contenders import Contender
from benchmarks.datasets import Match
from benchmarks.prediction import CONTENDERS, METHODS, PredictionRun, Timing, least_ratio


def invoke(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture
def tiny(monkeypatch):
    """A dataset with 400 rows, and few rows to predict."""
    made = partial(datasets._wide, "clusters2", 400, 2, np.float32, n_clusters=4)
    monkeypatch.setitem(datasets.MADE, "clusters2", made)
    monkeypatch.setitem(datasets.DATASETS, "clusters2", Match(100))


def made_up_run():
    run = PredictionRun.with_settings(rounds=3, n_threads=2)
    run.tables["clusters2"] = {"rows": 100, "columns": 5, "classes": 2}
    for name, seconds in (
        (OURS, {1: 9.0, 100: 1.0, 1000: 5.0}),
        ("XGBoost, depth 17", {1: 1.0, 100: 3.0, 1000: 20.0}),
    ):
        for n, each in seconds.items():
            run.timings.append(Timing("clusters2", name, "predict", n, [each, each, 99.0]))
            run.timings.append(Timing("clusters2", name, "predict_proba", n, [50.0]))
    return run


class TestRatio:
    def test_the_smallest_counts_and_one_row_does_not(self):
        assert least_ratio(made_up_run(), "clusters2", OURS, "XGBoost, depth 17") == 3.0

    def test_there_is_none_without_a_rival(self):
        assert least_ratio(made_up_run(), "clusters2", OURS, "LightGBM") is None

    def test_goals_are_told(self):
        lines = list(prediction.closing_lines(made_up_run()))
        assert (
            "clusters2, KFHE-e, times faster than XGBoost, depth 17: 3 (goal: at least 2): reached" in lines
        )
        assert not any("clusters7" in line for line in lines)


@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda contender: contender.name)
def test_every_contender_takes_its_settings(contender):
    if not is_installed(contender.algorithm):
        pytest.skip(f"{contender.algorithm} is not installed")
    model = contender.new(np.zeros((1, 1)), 1, 1)
    assert contender.settings.items() <= model.get_params().items()


def test_a_small_run_times_each_method_with_each_number_of_rows(tiny):
    run = PredictionRun.with_settings(rounds=2, n_threads=1)
    few = Contender("few", OURS, (5,), {"estimator__max_leaf_nodes": 4})
    messages = []
    prediction.measure(run, "clusters2", [few], report=messages.append)
    assert [(each.method, each.rows) for each in run.timings] == [
        (method, n) for method in METHODS for n in prediction.ROWS
    ]
    assert all(len(each.seconds) == 2 and min(each.seconds) > 0 for each in run.timings)
    assert run.of("clusters2", "few", "predict")[1] < run.of("clusters2", "few", "predict")[100_000]
    assert [text for text in messages if "round" in text] == [f"clusters2: few, round {i}" for i in (1, 2)]


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--prediction", "--scaling"], "--scaling and --prediction exclude each other"),
            (["--prediction", "--quick"], "--prediction takes none of"),
            (["--prediction", "--data", "iris"], "known are clusters2, clusters7"),
        ],
    )
    def test_mistakes_get_a_short_error(self, arguments, message):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert message in result.output

    def test_times_are_printed_and_written(self, tiny, monkeypatch, tmp_path):
        monkeypatch.setattr(prediction, "CONTENDERS", (Contender(OURS, OURS, (5,)),))
        file = tmp_path / "prediction.json"
        options = ["--threads", 1, "--rounds", 1, "--json", file]
        result = invoke("--prediction", "--data", "clusters2", *options)
        assert result.exit_code == 0, result.output
        assert "predict_proba, clusters2: 300 x 30, 2 classes" in result.output
        assert {each["contender"] for each in json.loads(file.read_text())["timings"]} == {OURS}
