"""The search for wrong labels, beside cleanlab."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import audit
from benchmarks.__main__ import app


@pytest.fixture(autouse=True)
def without_a_folder(monkeypatch):
    monkeypatch.delenv("KFHE_DATA", raising=False)


@pytest.fixture
def iris_run():
    pytest.importorskip("cleanlab")
    run = audit.AuditRun.with_settings(rounds=1, n_threads=1)
    audit.measure(run, "iris")
    return run


def test_ours_and_the_peer_meet_at_the_same_labels(iris_run):
    shares = {name: [t.share for t in iris_run.trials if t.algorithm == name] for name in audit.AUDITS}
    assert shares == {audit.OURS: list(audit.ESTIMATED), audit.PEER: list(audit.COMPARED)}
    assert all(trial.seconds > 0 for trial in iris_run.trials)
    assert all(trial.auroc > 0.9 for trial in iris_run.trials if trial.share)
    assert len(iris_run.figures("auroc", audit.OURS)) == len(audit.COMPARED)


def test_goals_are_measured(iris_run):
    measured = [goal.measure(iris_run) for goal in audit.GOALS]
    ours, theirs = (np.mean(iris_run.figures("auroc", name)) for name in audit.AUDITS)
    assert measured[0] == pytest.approx(ours - theirs)
    assert measured[1] + measured[2] == pytest.approx(2 * measured[0])
    assert 0 < measured[3] < 1


def test_without_the_peer_ours_is_there(monkeypatch):
    monkeypatch.setattr(audit, "get_label_quality_scores", None)
    run = audit.AuditRun.with_settings(rounds=1, n_threads=1)
    audit.measure(run, "iris")
    assert {trial.algorithm for trial in run.trials} == {audit.OURS}
    lines = list(audit.closing_lines(run))
    assert "cleanlab: not installed" in lines
    assert lines[-1].endswith("not measured")
    assert audit.comparison(run).row_count == 2
    assert audit.estimates(run).row_count == 3


def test_what_is_not_there_is_named_and_left_out(tmp_path):
    result = CliRunner().invoke(app, ["--audit", "--data", "glass"], env={"KFHE_CACHE": str(tmp_path)})
    assert result.exit_code == 1
    assert "glass: is not on this machine" in result.output


def test_the_command_prints_both_tables_and_writes_json(tmp_path):
    file = tmp_path / "audit.json"
    arguments = ["--audit", "--data", "iris", "--rounds", "1", "--json", str(file)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "Changed labels found" in result.output
    assert "Estimated share of wrong labels, by the true one" in result.output
    written = json.loads(file.read_text())
    assert len(written["goals"]) == len(audit.GOALS)
    assert {trial["dataset"] for trial in written["trials"]} == {"iris"}


@pytest.mark.parametrize("option", [["--quick"], ["--full"], ["--algorithm", "kfhe"]])
def test_options_of_the_other_benchmark_are_refused(option):
    result = CliRunner().invoke(app, ["--audit", *option], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "--audit takes none of" in result.output
