"""The benchmark: its data, its rule for timing, its goals, and a small run."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from benchmarks import datasets, machine, worker
from benchmarks.__main__ import app
from benchmarks.algorithms import NAMES, ONE_HOT, OURS, PEERS, build, encode, is_installed, predict_settings
from benchmarks.datasets import DATASETS, split
from benchmarks.goals import GOALS, Goal
from benchmarks.report import as_json, closing_lines, table
from benchmarks.runner import Figures, Run, measure
from kfhe.study.algorithms import SHORT_NAMES
from kfhe.study.dataset import Dataset
from kfhe.study.encoding import Categorical
from kfhe.study.errors import StudyError


def made_up_run():
    """A run with figures for everybody everywhere: ours takes 1 second, the others 2."""
    run = Run.with_settings(rounds=3, n_threads=2)
    for dataset, match in DATASETS.items():
        run.tables[dataset] = {"rows": 100, "columns": 5, "classes": 2, "float32_bytes": 2000}
        for name in {*match.algorithms, *PEERS}:
            times = [1.0, 1.0, 9.0] if name == OURS else [2.0, 0.0, 2.0]
            is_ours = name in (OURS, ONE_HOT)
            figures = {"f1_macro": 0.5, "memory_growth": 5000, "model_bytes": 1000, "components": 100}
            trees = {"nodes": 30 if name == OURS else 60, "leaves": 20} if is_ours else {}
            run.results.append(Figures(dataset, name, times, times, times, **figures, **trees))
    return run


def goal_for(dataset, figure):
    return next(goal for goal in GOALS if (goal.dataset, goal.figure) == (dataset, figure))


class TestData:
    def test_a_tenth_of_the_training_labels_is_changed(self, monkeypatch):
        noisy = split("iris")
        monkeypatch.setattr(datasets, "NOISE", 0.0)
        clean = split("iris")
        assert (noisy.y_train != clean.y_train).sum() == round(0.1 * len(clean.y_train))
        assert np.array_equal(noisy.X_train, clean.X_train)
        assert np.array_equal(noisy.y_test, clean.y_test)

    def test_numbers_alone_are_an_array_and_categories_a_frame(self):
        assert isinstance(split("iris").X_train, np.ndarray)
        made = split("levels50")
        assert made.X_train.shape == (10_000, 6)
        assert Categorical.of(made.X_train) == (["level"], [5])

    def test_a_folder_of_ones_own_is_read(self, tmp_path, monkeypatch):
        lines = ["a,b,class", *["x,1,no", "y,2,yes"] * 20]
        (tmp_path / "car_eval.csv").write_text("\n".join(lines))
        monkeypatch.setenv("KFHE_DATA", str(tmp_path))
        assert split("car_eval").X_train.shape == (30, 2)

    def test_what_is_not_there_is_told(self, tmp_path, monkeypatch):
        monkeypatch.delenv("KFHE_DATA", raising=False)
        monkeypatch.setenv("KFHE_CACHE", str(tmp_path))
        with pytest.raises(StudyError, match=r"'mushroom' is not on this machine; .* KFHE_DATA"):
            split("mushroom")


class TestAlgorithms:
    def test_names_are_those_of_a_study(self):
        assert {OURS, *PEERS} <= set(SHORT_NAMES)
        assert set(NAMES) - set(SHORT_NAMES) == {ONE_HOT}

    # LightGBM 4.6 names the features of an array, and then misses the names.
    @pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
    @pytest.mark.parametrize("name", NAMES)
    def test_everybody_trains_as_many_components_as_asked(self, name):
        if not is_installed(name):
            pytest.skip(f"{name} is not installed")
        data = split("iris")
        model = build(name, Categorical.of(data.X_train), 3, 1).fit(data.X_train, data.y_train)
        predicted = model.predict(data.X_test, **predict_settings(name, 1))
        assert np.mean(predicted.ravel() == data.y_test) > 0.7
        initial = "KFHE" in name  # has an initial component besides
        assert worker.size_of(model, 3)["components"] == 3 + initial

    @pytest.mark.parametrize(
        ("name", "parameter"), [("random forest", "n_jobs"), ("CatBoost", "thread_count"), (OURS, "n_jobs")]
    )
    def test_threads_are_as_many_as_asked(self, name, parameter):
        if not is_installed(name):
            pytest.skip(f"{name} is not installed")
        model = build(name, Categorical([], []), 3, 2)
        assert model.get_params()[parameter] == 2

    def test_nobody_is_slowed_down_by_what_a_study_fixes(self):
        booster = build("LightGBM", Categorical([], []), 3, 1).get_params()
        assert not booster["deterministic"]
        assert not booster["force_row_wise"]
        assert build("HistGradientBoosting", Categorical([], []), 3, 1).early_stopping is False

    def test_one_hot_gives_each_category_a_column(self):
        frame = pd.DataFrame({"n": [1.0, 2.0], "c": pd.Categorical(["x", "y"])})
        train, test = encode(ONE_HOT, frame, frame.iloc[:1])
        assert train.tolist() == [[1, 0, 1], [0, 1, 2]]
        assert test.tolist() == [[1, 0, 1]]
        assert encode(OURS, frame, frame)[0] is frame
        numbers = frame[["n"]].to_numpy()
        assert encode(ONE_HOT, numbers, numbers)[0] is numbers


class TestTiming:
    @pytest.fixture
    def clock(self, monkeypatch):
        """A clock that moves only when it is told to."""
        now = [0.0]
        monkeypatch.setattr(worker, "perf_counter", lambda: now[0])
        return now

    def calls_lasting(self, clock, durations):
        left = list(durations)

        def call():
            clock[0] += left.pop(0)

        return call, left

    def test_a_long_call_is_made_once(self, clock):
        call, left = self.calls_lasting(clock, [0.5, 1.0])
        assert worker.seconds_per_call(call) == pytest.approx(0.5)
        assert left == [1.0]

    def test_a_short_call_is_warmed_up_and_repeated(self, clock):
        call, left = self.calls_lasting(clock, [0.1, 0.02, 0.04, 0.15, 7.0])
        assert worker.seconds_per_call(call) == pytest.approx(0.04)
        assert left == [7.0]


class TestGoals:
    def test_every_goal_is_about_data_and_algorithms_that_exist(self):
        run = made_up_run()
        assert [goal for goal in GOALS if goal.measure(run) is None] == []

    def test_nothing_is_measured_by_an_empty_run(self):
        run = Run.with_settings(rounds=1, n_threads=1)
        assert [goal for goal in GOALS if goal.measure(run) is not None] == []

    def test_figures(self):
        run = made_up_run()
        assert goal_for("iris", "fit, times faster than scikit-learn AdaBoost").measure(run) == 2
        assert goal_for("wide7", "macro F1 above that of LightGBM").measure(run) == 0
        assert goal_for("million", "memory besides the model / table in float32").measure(run) == 2
        assert goal_for("million", "time per row / that of wide2").measure(run) == 1
        assert goal_for("levels50", "nodes of KFHE-e one-hot / ours").measure(run) == 2

    @pytest.mark.parametrize(
        ("relation", "reached"),
        [
            ("at least", [False, True, True]),
            ("more than", [False, False, True]),
            ("at most", [True, True, False]),
            ("less than", [True, False, False]),
        ],
    )
    def test_relations(self, relation, reached):
        goal = Goal("iris", "fit", relation, 2, lambda run: None)
        assert [goal.is_reached(measured) for measured in (1, 2, 3)] == reached

    def test_lines(self):
        goal = Goal("iris", "fit, times faster than scikit-learn AdaBoost", "at least", 40, lambda run: None)
        assert goal.describe(41.23) == (
            "iris, fit, times faster than scikit-learn AdaBoost: 41.2 (goal: at least 40): reached"
        )
        assert goal.describe(39).endswith(": 39 (goal: at least 40): not reached")
        assert goal.describe(None).endswith("(goal: at least 40): not measured")


@pytest.mark.parametrize(("load", "warned"), [(0.5, False), (3.0, True)])
def test_a_busy_machine_is_mentioned(load, warned):
    run = made_up_run()
    run.settings |= {"load": load, "cpus": 4}
    assert any("busy" in line for line in closing_lines(run)) == warned


class TestRun:
    def test_ours_and_a_peer(self):
        run = Run.with_settings(rounds=2, n_threads=1, n_components=5)
        messages = []
        measure(run, "iris", ["random forest"], report=messages.append)
        assert [result.algorithm for result in run.results] == [OURS, "random forest"]
        turns = [message for message in messages if "round" in message]
        assert turns == [
            "iris: KFHE-e, round 1",
            "iris: random forest, round 1",
            "iris: KFHE-e, round 2",
            "iris: random forest, round 2",
        ]
        for result in run.results:
            assert result.error is None
            assert result.components == (6 if result.algorithm == OURS else 5)
            assert 0.5 < result.f1_macro <= 1
            assert result.memory_growth >= 0
            assert result.model_bytes > 0
            for seconds in ("fit_seconds", "batch_seconds", "row_seconds"):
                assert len(getattr(result, seconds)) == 2
                assert result.median(seconds) > 0
        ours, peer = run.results
        assert ours.nodes == 2 * ours.leaves - 6
        assert peer.nodes is None
        assert run.tables["iris"] == {"rows": 112, "columns": 4, "classes": 3, "float32_bytes": 1792}
        assert run.versions["scikit-learn"]

    def test_a_peer_that_fails_does_not_end_it(self, monkeypatch):
        """HistGradientBoosting takes up to 255 categories."""
        levels = pd.DataFrame({"level": pd.Categorical([f"level {row % 300}" for row in range(1200)])})
        many = Dataset("levels50", levels, np.arange(1200) % 2, ["0", "1"], "made")
        monkeypatch.setitem(datasets.MADE, "levels50", lambda: many)
        monkeypatch.setitem(datasets.DATASETS, "levels50", datasets.Match(0.5))
        run = Run.with_settings(rounds=1, n_threads=1, n_components=2)
        measure(run, "levels50", ["HistGradientBoosting"])
        ours, peer = run.results
        assert ours.error is None
        assert peer.error.startswith("ValueError")
        assert table(run, "levels50").row_count == 2
        assert any(
            line.startswith("levels50, HistGradientBoosting: ValueError") for line in closing_lines(run)
        )
        json.loads(as_json(run))

    def test_a_peer_that_is_not_installed_is_left_out(self, monkeypatch):
        absent = replace(SHORT_NAMES["XGBoost"], package="no_such_package")
        monkeypatch.setitem(SHORT_NAMES, "XGBoost", absent)
        run = Run.with_settings(rounds=1, n_threads=1, n_components=2)
        measure(run, "iris", ["XGBoost"])
        assert [result.algorithm for result in run.results] == [OURS]
        assert run.left_out == {"XGBoost": "not installed"}

    def test_where_nobody_tells_load_and_memory_the_rest_is_there(self, monkeypatch):
        """As on Windows."""
        monkeypatch.delattr("os.getloadavg", raising=False)
        monkeypatch.setattr(machine, "Path", lambda name: Path("no", "such", "file"))
        monkeypatch.setitem(sys.modules, "resource", None)
        assert machine.memory() is None
        run = made_up_run()
        assert run.settings["load"] is None
        run.results[0].memory_growth = None
        assert table(run, "iris").row_count == 1 + len(PEERS)
        assert not any("busy" in line for line in closing_lines(run))


class TestCommand:
    def invoke(self, *arguments):
        return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--data", "irsi"], "known are iris"),
            (["--algorithm", "lightgbm"], "known are KFHE-e"),
            (["--rounds", "0"], "--rounds"),
            (["--threads", "0"], "--threads"),
            (["--quick", "--full"], "exclude each other"),
            (["--json", "."], "is a folder"),
        ],
    )
    def test_mistakes_get_a_short_error(self, arguments, message):
        result = self.invoke(*arguments)
        assert result.exit_code == 2
        assert message in result.output
        assert "Traceback" not in result.output

    def test_data_that_is_not_there_is_an_error(self, monkeypatch, tmp_path):
        monkeypatch.delenv("KFHE_DATA", raising=False)
        monkeypatch.setenv("KFHE_CACHE", str(tmp_path))
        result = self.invoke("--data", "mushroom")
        assert result.exit_code == 1
        assert "KFHE_DATA" in result.output

    def test_a_run_prints_a_table_and_writes_json(self, tmp_path):
        file = tmp_path / "new" / "folder" / "bench.json"
        result = self.invoke("--data", "iris", "--algorithm", OURS, "--rounds", 1, "--json", file)
        assert result.exit_code == 0, result.output
        assert "iris: 112 x 4, 3 classes" in result.output
        assert (
            "iris, fit, times faster than scikit-learn AdaBoost (goal: at least 40): not measured"
            in result.output
        )
        assert [path.name for path in file.parent.iterdir()] == ["bench.json"]
        written = json.loads(file.read_text())
        assert written["settings"]["threads"] == 2
        assert written["versions"]["kfhe"]
        assert [each["algorithm"] for each in written["results"]] == [OURS]
        assert len(written["goals"]) == len(GOALS)
