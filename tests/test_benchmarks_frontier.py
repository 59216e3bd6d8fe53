"""The benchmark's frontier and scaling modes: what counts as ahead, how growth is told, and small runs."""

import json
import os
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import datasets, frontier, scaling
from benchmarks.__main__ import app
from benchmarks.algorithms import OURS, ROBUST, is_installed
from benchmarks.contenders import Contender
from benchmarks.datasets import FRONTIER, FULL, USUAL, Match
from benchmarks.frontier import CONTENDERS, FrontierRun, Point, beaten_lines, on_frontier
from benchmarks.frontier_plot import draw
from benchmarks.scaling import AXES, Case, Cost, ScalingRun, cases, growth, powers_of_two


def invoke(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def point(name, seconds, score, components=100):
    return Point("clusters2", name, 2, components, seconds, score)


def made_up_run():
    run = FrontierRun.with_settings(rounds=3, n_threads=[2])
    run.tables["clusters2"] = {"rows": 100, "columns": 5, "classes": 2}
    run.points = [
        point(OURS, [1.0, 1.0, 9.0], 0.8, components=10),
        point(OURS, [3.0, 3.0, 3.0], 0.9, components=100),
        point(ROBUST, [3.5, 3.5, 3.5], 0.89),
        point("LightGBM", [2.0, 2.0, 2.0], 0.85),
        point("XGBoost", [4.0, 4.0, 4.0], 0.95),
        point("XGBoost, depth 10", [5.0, 5.0, 5.0], 0.75),
    ]
    return run


@pytest.fixture
def tiny(monkeypatch):
    """A dataset of the frontier with 400 rows."""
    made = partial(datasets._wide, "clusters2", 400, 2, np.float32, n_clusters=4)
    monkeypatch.setitem(datasets.MADE, "clusters2", made)
    monkeypatch.setitem(datasets.DATASETS, "clusters2", Match(100))


class TestFrontier:
    def test_nobody_on_it_is_beaten_in_both(self):
        points = made_up_run().points
        ahead = [(each.contender, each.components) for each in on_frontier(points)]
        assert ahead == [(OURS, 10), ("LightGBM", 100), (OURS, 100), ("XGBoost", 100)]

    def test_the_median_of_the_rounds_counts(self):
        assert made_up_run().points[0].time == 1.0

    def test_ours_is_compared_with_each_peer_at_its_quality(self):
        assert list(beaten_lines(made_up_run())) == [
            "clusters2, 2 threads, LightGBM (0.850): KFHE-e, 100 components (0.900) takes 1.50 times as long",
            "clusters2, 2 threads, XGBoost (0.950): none of ours is as good",
            "clusters2, 2 threads, XGBoost, depth 10 (0.750): "
            "KFHE-e, 10 components (0.800) takes 0.20 times as long",
        ]

    def test_its_datasets_are_no_part_of_the_other_runs(self):
        assert not set(FRONTIER) & {*USUAL, *FULL}

    def test_a_small_run_has_stages_of_ours_and_one_point_of_a_peer(self, tiny):
        run = FrontierRun.with_settings(rounds=2, n_threads=[1])
        few = Contender("few", OURS, (5, 6), {"max_samples": 0.5})
        forest = Contender("forest", "random forest", (2, 3), {"max_depth": 4})
        messages = []
        frontier.measure(run, "clusters2", [few, forest], report=messages.append)
        assert [(each.contender, each.components) for each in run.points] == [
            ("few", 5),
            ("few", 6),
            ("forest", 2),
            ("forest", 3),
        ]
        for each in run.points:
            assert len(each.seconds) == 2
            assert min(each.seconds) > 0
            assert 0.4 < each.f1_macro <= 1
        assert run.points[0].seconds < run.points[1].seconds
        assert [text for text in messages if "round" in text] == [
            f"clusters2, 1 threads: {name}, round {i}" for i in (1, 2) for name in ("few", "forest")
        ]
        assert frontier.table(run, "clusters2", 1).row_count == 4

    @pytest.mark.parametrize("contender", CONTENDERS, ids=lambda contender: contender.name)
    def test_every_contender_takes_its_settings(self, contender):
        if not is_installed(contender.algorithm):
            pytest.skip(f"{contender.algorithm} is not installed")
        model = contender.new(np.zeros((1, 1)), 1, 1)
        assert contender.settings.items() <= model.get_params().items()

    def test_the_picture_has_a_panel_for_each_dataset_and_a_line_for_each_contender(self):
        run = made_up_run()
        run.settings["threads"] = [2, 2]
        figure = draw(run)
        assert len(figure.axes) == 2
        lines = {line.get_label(): line for line in figure.axes[0].lines}
        assert list(lines) == [ROBUST, OURS, "LightGBM", "XGBoost", "XGBoost, depth 10"]
        assert lines[OURS].get_xdata().tolist() == [1.0, 3.0]
        assert lines[OURS].get_ydata().tolist() == [0.8, 0.9]


class TestScaling:
    def test_only_one_property_changes(self):
        usual = Case(threads=1)
        for axis, values in AXES.items():
            made = cases(axis, usual)
            assert tuple(getattr(case, axis) for case in made) == values
            others = {tuple(value for name, value in vars(case).items() if name != axis) for case in made}
            assert len(others) == 1

    @pytest.mark.parametrize(
        ("most", "expected"), [(1, (1,)), (2, (1, 2)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))]
    )
    def test_threads_are_doubled_up_to_all_there_are(self, most, expected):
        assert powers_of_two(most) == expected

    @pytest.mark.parametrize("case", [Case(rows=300, classes=5), Case(rows=300, columns=7, levels=4)])
    def test_a_table_is_as_the_case_says(self, case):
        X, y = case.table()
        assert X.shape == (300, case.columns)
        assert len(np.unique(y)) == case.classes
        if case.levels:
            assert all(X[column].nunique() == case.levels for column in X)
            assert set(map(str, X.dtypes)) == {"category"}

    def test_growth_is_a_power(self):
        before, after = Cost("rows", 10, OURS, [1.0]), Cost("rows", 1000, OURS, [10.0])
        assert growth(before, after) == pytest.approx(0.5)

    def test_a_small_run(self, monkeypatch):
        monkeypatch.setitem(AXES, "columns", (5, 10))
        run = ScalingRun.with_settings(rounds=1, n_threads=1)
        scaling.measure(run, "columns", Case(threads=1, rows=200), algorithms=[OURS])
        assert [(cost.value, len(cost.seconds)) for cost in run.costs] == [(5, 1), (10, 1)]
        assert scaling.table(run, "columns").row_count == 2


class TestCommand:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--frontier", "--scaling"], "--frontier and --scaling exclude each other"),
            (["--frontier", "--quick"], "--frontier takes none of"),
            (["--scaling", "--algorithm", "XGBoost"], "--scaling takes none of"),
            (["--scaling", "--data", "iris"], "known are threads, rows, classes, columns, levels"),
            (["--frontier", "--data", "no"], "known are iris"),
            (["--picture", "a.svg"], "it is for --frontier"),
            (["--frontier", "--picture", "a.txt"], "must end in .png, .svg, .pdf"),
        ],
    )
    def test_mistakes_get_a_short_error(self, arguments, message):
        result = invoke(*arguments)
        assert result.exit_code == 2
        assert message in result.output

    def test_the_frontier_is_printed_drawn_and_written(self, tiny, monkeypatch, tmp_path):
        monkeypatch.setattr(os, "cpu_count", lambda: 1)
        monkeypatch.setattr(frontier, "CONTENDERS", (Contender(OURS, OURS, (6,)),))
        file, picture = tmp_path / "frontier.json", tmp_path / "frontier.svg"
        options = ["--threads", 1, "--rounds", 1, "--json", file, "--picture", picture]
        result = invoke("--frontier", "--data", "clusters2", *options)
        assert result.exit_code == 0, result.output
        assert "clusters2: 300 x 30, 2 classes, 1 threads" in result.output
        assert {each["contender"] for each in json.loads(file.read_text())["points"]} == {OURS}
        assert "seconds to fit" in picture.read_text()

    def test_growth_is_printed_and_written(self, monkeypatch, tmp_path):
        monkeypatch.setitem(AXES, "rows", (200, 400))
        result = invoke(
            "--scaling", "--data", "rows", "--rounds", 1, "--threads", 1, "--json", tmp_path / "s.json"
        )
        assert result.exit_code == 0, result.output
        assert "By rows" in result.output
        written = json.loads((tmp_path / "s.json").read_text())
        assert {cost["value"] for cost in written["costs"]} == {200, 400}
