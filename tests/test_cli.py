"""The command kfhe."""

import re
import subprocess
import sys
from importlib import import_module

import pytest
from typer.testing import CliRunner

from kfhe.cli import app

demo = import_module("kfhe.cli.demo")  # kfhe.cli.demo itself is the command
ALGORITHMS = ["KFHE-e", "KFHE-l", "AdaBoost", "Bagging", "single tree"]


def run(*arguments):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})


@pytest.fixture
def quick(monkeypatch):
    """Let the demo train few small ensembles."""
    algorithms = demo._algorithms()
    for model in algorithms.values():
        if "n_estimators" in model.get_params():
            model.set_params(n_estimators=2)
    monkeypatch.setattr(demo, "_algorithms", lambda: algorithms)


def test_without_arguments_there_is_help():
    result = run()
    assert "demo" in result.output
    assert "Usage" in result.output


def test_the_demo_compares_five_algorithms_with_and_without_noise(quick):
    result = run("demo", "--repeats", "1")
    assert result.exit_code == 0, result.output
    heading = next(line for line in result.output.splitlines() if "dataset" in line)
    assert all(name in heading for name in ALGORITHMS)
    for dataset in ("iris", "wine", "breast cancer"):
        rows = re.findall(rf"{dataset}\W+(\d+%)((?:\W+[01]\.\d\d\d){{5}})", result.output)
        assert [noise for noise, _ in rows] == ["0%", "20%"]
        for _, scores in rows:
            assert all(0.3 < float(score) <= 1 for score in re.findall(r"\d\.\d+", scores))


def test_the_demo_writes_its_table_as_a_page(quick, tmp_path):
    page = tmp_path / "deeper" / "index.html"
    result = run("demo", "--repeats", "1", "--output", str(page))
    assert result.exit_code == 0, result.output
    assert "The report is in" in result.output
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert all(name in text for name in ALGORITHMS)


@pytest.mark.parametrize(
    ("output", "problem"), [("folder", "is a directory"), ("file.txt/page.html", "no folder can be made")]
)
def test_an_unusable_output_is_refused_before_anything_is_trained(monkeypatch, tmp_path, output, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").touch()
    monkeypatch.setattr(demo, "_results", lambda repeats: pytest.fail("trained for nothing"))
    result = run("demo", "--output", output)
    assert result.exit_code == 2
    assert "--output" in result.output
    assert problem in result.output


def test_repeats_must_be_positive():
    result = run("demo", "--repeats", "0")
    assert result.exit_code == 2
    assert re.search(r"--repeats.*(x>=1|greater than or equal to 1)", result.output)


def test_an_unknown_command_is_named():
    result = run("dmeo")
    assert result.exit_code == 2
    assert "dmeo" in result.output


def test_the_command_is_installed_and_starts_without_loading_scikit_learn():
    """Help has to be there at once."""
    script = "import sys; from kfhe.cli import main; sys.argv = ['kfhe', '--help']\n"
    script += "try: main()\nfinally: assert 'sklearn' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Usage" in result.stdout
