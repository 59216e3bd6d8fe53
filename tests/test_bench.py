"""The benchmark: its data, its rule for timing, its goals, and a small run."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from kfhe.bench import audit, worker
from kfhe.bench.algorithms import ALGORITHMS, ONE_HOT, OURS, Algorithm
from kfhe.bench.datasets import DATASETS, Source, UnavailableError
from kfhe.bench.goals import GOALS, Goal
from kfhe.bench.report import as_json, closing_lines, table
from kfhe.bench.runner import Result, Run, measure
from kfhe.cli import app
from kfhe.study.tables import Dataset


def made_up_run():
    """A run with figures for everybody everywhere: ours takes 1 second, the others 2."""
    run = Run.with_settings(rounds=3, n_threads=2)
    for dataset, source in DATASETS.items():
        run.tables[dataset] = {"rows": 100, "columns": 5, "classes": 2, "float32_bytes": 2000}
        for name in source.algorithms:
            times = [1.0, 1.0, 9.0] if name == OURS else [2.0, 0.0, 2.0]
            is_ours = name in (OURS, ONE_HOT)
            figures = {"macro_f1": 0.5, "memory_growth": 5000, "model_bytes": 1000, "components": 100}
            trees = {"nodes": 30 if name == OURS else 60, "leaves": 20} if is_ours else {}
            run.results.append(Result(dataset, name, times, times, times, **figures, **trees))
    return run


def goal_for(dataset, figure):
    return next(goal for goal in GOALS if (goal.dataset, goal.figure) == (dataset, figure))


class TestData:
    def test_a_tenth_of_the_training_labels_is_changed(self):
        noisy = DATASETS["iris"].load()
        clean = replace_noise(DATASETS["iris"])
        assert (noisy.y_train != clean.y_train).sum() == round(0.1 * len(clean.y_train))
        assert np.array_equal(noisy.X_train, clean.X_train)
        assert np.array_equal(noisy.y_test, clean.y_test)

    def test_one_hot_gives_each_category_a_column(self):
        native = DATASETS["levels50"].load()
        assert native.X_train.shape == (10_000, 6)
        one_hot = native.one_hot()
        assert one_hot.X_train.shape == (10_000, 55)
        assert one_hot.X_test.shape == (5_000, 55)
        assert np.array_equal(one_hot.y_train, native.y_train)

    def test_a_folder_of_ones_own_is_read(self, tmp_path, monkeypatch):
        lines = ["a,b,class", *["x,1,no", "y,2,yes"] * 20]
        (tmp_path / "car_eval.csv").write_text("\n".join(lines))
        monkeypatch.setenv("KFHE_DATA", str(tmp_path))
        data = DATASETS["car_eval"].load()
        assert data.X_train.shape == (30, 2)
        assert [str(dtype) for dtype in data.X_train.dtypes] == ["category", "category"]

    @pytest.mark.parametrize("folder", ["", "empty"])
    def test_what_is_not_there_is_told(self, folder, tmp_path, monkeypatch):
        monkeypatch.setenv("KFHE_DATA", folder and str(tmp_path))
        with pytest.raises(UnavailableError, match="KFHE_DATA"):
            DATASETS["mushroom"].load()


def replace_noise(source):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kfhe.bench.datasets.NOISE", 0.0)
        return source.load()


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


# LightGBM 4.6 names the features of an array, and then misses the names.
@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_trains_as_many_components_as_asked(name):
    algorithm = ALGORITHMS[name]
    if not algorithm.is_installed():
        pytest.skip(f"{algorithm.package} is not installed")
    data = DATASETS["iris"].load()
    model = algorithm.build(3, 1).fit(data.X_train, data.y_train)
    predicted = model.predict(data.X_test, **algorithm.predict_settings(1))
    assert np.mean(predicted.ravel() == data.y_test) > 0.7
    assert worker._size(model, 3)["components"] == 3


class TestGoals:
    def test_every_goal_is_about_data_and_algorithms_that_exist(self):
        run = made_up_run()
        assert [goal for goal in GOALS if goal.measure(run) is None] == []

    def test_nothing_is_measured_by_an_empty_run(self):
        run = Run.with_settings(rounds=1, n_threads=1)
        assert [goal for goal in GOALS if goal.measure(run) is not None] == []

    def test_figures(self):
        run = made_up_run()
        assert goal_for("iris", "fit, times faster than adaboost").measure(run) == 2
        assert goal_for("wide7", "macro F1 above that of lightgbm").measure(run) == 0
        assert goal_for("million", "memory besides the model / table in float32").measure(run) == 2
        assert goal_for("million", "time per row / that of wide2").measure(run) == 1
        assert goal_for("levels50", "nodes of kfhe-onehot / ours").measure(run) == 2

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
        goal = Goal("iris", "fit, times faster than adaboost", "at least", 40, lambda run: None)
        assert goal.describe(41.23) == (
            "iris, fit, times faster than adaboost: 41.2 (goal: at least 40): reached"
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
        measure(run, "iris", ["adaboost"], report=messages.append)
        assert [result.algorithm for result in run.results] == [OURS, "adaboost"]
        turns = [message for message in messages if "round" in message]
        assert turns == [
            "iris: kfhe, round 1",
            "iris: adaboost, round 1",
            "iris: kfhe, round 2",
            "iris: adaboost, round 2",
        ]
        for result in run.results:
            assert result.error is None
            assert result.components == 5
            assert 0.5 < result.macro_f1 <= 1
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
        mixed = Source(DATASETS["levels50"].read, 14_000, (OURS, "adaboost"))
        monkeypatch.setitem(DATASETS, "levels50", mixed)
        run = Run.with_settings(rounds=1, n_threads=1, n_components=2)
        measure(run, "levels50")
        ours, peer = run.results
        assert ours.error is None
        assert peer.error.startswith("ValueError")
        assert table(run, "levels50").row_count == 2
        assert any(line.startswith("levels50, adaboost: ValueError") for line in closing_lines(run))
        json.loads(as_json(run))

    def test_a_peer_that_is_not_installed_is_left_out(self, monkeypatch):
        monkeypatch.setitem(ALGORITHMS, "xgboost", Algorithm("no_such_package:Classifier", lambda n, t: {}))
        run = Run.with_settings(rounds=1, n_threads=1, n_components=2)
        measure(run, "iris", ["xgboost"])
        assert [result.algorithm for result in run.results] == [OURS]
        assert run.left_out == {"xgboost": "not installed"}


class TestCommand:
    def invoke(self, *arguments):
        return CliRunner().invoke(app, ["bench", *map(str, arguments)], env={"COLUMNS": "200"})

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--data", "irsi"], "known are iris"),
            (["--algorithm", "lightbgm"], "known are kfhe"),
            (["--rounds", "0"], "--rounds"),
            (["--threads", "0"], "--threads"),
            (["--quick", "--full"], "exclude each other"),
            (["--json", "no/such/folder/file.json"], "can't write"),
            (["--json", "."], "is a folder"),
        ],
    )
    def test_mistakes_get_a_short_error(self, arguments, message):
        result = self.invoke(*arguments)
        assert result.exit_code == 2
        assert message in result.output
        assert "Traceback" not in result.output

    def test_data_that_is_not_there_is_an_error(self, monkeypatch):
        monkeypatch.delenv("KFHE_DATA", raising=False)
        result = self.invoke("--data", "mushroom")
        assert result.exit_code == 1
        assert "set KFHE_DATA" in result.output

    def test_a_run_prints_a_table_and_writes_json(self, tmp_path):
        file = tmp_path / "bench.json"
        result = self.invoke("--data", "iris", "--algorithm", "kfhe", "--rounds", 1, "--json", file)
        assert result.exit_code == 0, result.output
        assert "iris: 112 x 4, 3 classes" in result.output
        assert "iris, fit, times faster than adaboost (goal: at least 40): not measured" in result.output
        assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]
        written = json.loads(file.read_text())
        assert written["settings"]["threads"] == 2
        assert written["versions"]["kfhe"]
        assert [each["algorithm"] for each in written["results"]] == ["kfhe"]
        assert len(written["goals"]) == len(GOALS)


class TestAudit:
    """The search for wrong labels, beside cleanlab."""

    @pytest.fixture(autouse=True)
    def without_a_folder(self, monkeypatch):
        monkeypatch.delenv("KFHE_DATA", raising=False)

    @pytest.fixture
    def iris_run(self):
        pytest.importorskip("cleanlab")
        run = audit.AuditRun.with_settings(rounds=1, n_threads=1)
        audit.measure(run, "iris")
        return run

    def test_ours_and_the_peer_meet_at_the_same_labels(self, iris_run):
        shares = {name: [t.share for t in iris_run.trials if t.algorithm == name] for name in audit.AUDITS}
        assert shares == {audit.OURS: list(audit.ESTIMATED), audit.PEER: list(audit.COMPARED)}
        assert all(trial.seconds > 0 for trial in iris_run.trials)
        assert all(trial.auroc > 0.9 for trial in iris_run.trials if trial.share)
        assert len(iris_run.figures("auroc", audit.OURS)) == len(audit.COMPARED)

    def test_goals_are_measured(self, iris_run):
        measured = [goal.measure(iris_run) for goal in audit.GOALS]
        ours, theirs = (np.mean(iris_run.figures("auroc", name)) for name in audit.AUDITS)
        assert measured[0] == pytest.approx(ours - theirs)
        assert measured[1] + measured[2] == pytest.approx(2 * measured[0])
        assert 0 < measured[3] < 1

    def test_without_the_peer_ours_is_there(self, monkeypatch):
        monkeypatch.setattr(audit, "get_label_quality_scores", None)
        run = audit.AuditRun.with_settings(rounds=1, n_threads=1)
        audit.measure(run, "iris")
        assert {trial.algorithm for trial in run.trials} == {audit.OURS}
        lines = list(audit.closing_lines(run))
        assert "cleanlab: not installed" in lines
        assert lines[-1].endswith("not measured")
        assert audit.comparison(run).row_count == 2
        assert audit.estimates(run).row_count == 3

    def test_categories_are_one_hot_for_the_peer(self):
        frame = pd.DataFrame({"n": [1.0, 2.0], "c": pd.Categorical(["x", "y"])})
        data = Dataset("two", frame, np.array([0, 1]), ["a", "b"], "here")
        assert audit._one_hot(data).tolist() == [[1, 0, 1], [0, 1, 2]]

    def test_what_is_not_there_is_named_and_left_out(self, tmp_path):
        result = CliRunner().invoke(
            app, ["bench", "--audit", "--data", "glass"], env={"KFHE_CACHE": str(tmp_path)}
        )
        assert result.exit_code == 1
        assert "glass: is not on this machine" in result.output

    def test_the_command_prints_both_tables_and_writes_json(self, tmp_path):
        file = tmp_path / "audit.json"
        arguments = ["bench", "--audit", "--data", "iris", "--rounds", "1", "--json", str(file)]
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert "Changed labels found" in result.output
        assert "Estimated share of wrong labels, by the true one" in result.output
        written = json.loads(file.read_text())
        assert len(written["goals"]) == len(audit.GOALS)
        assert {trial["dataset"] for trial in written["trials"]} == {"iris"}

    @pytest.mark.parametrize("option", [["--quick"], ["--full"], ["--algorithm", "kfhe"]])
    def test_options_of_the_other_benchmark_are_refused(self, option):
        result = CliRunner().invoke(app, ["bench", "--audit", *option], env={"COLUMNS": "200"})
        assert result.exit_code == 2
        assert "--audit takes none of" in result.output
