"""``--device cuda``: the same files come out."""

import sys
from pathlib import Path

import pytest

from kfhe.cli import main

DATA = Path(__file__).parents[2] / "examples" / "data"


@pytest.fixture
def command(monkeypatch, device):  # which is the one that `--device cuda` gets
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["kfhe", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0

    return run


@pytest.mark.parametrize("kind", ["robust", "kfhe-l"])
def test_a_model_that_was_fitted_there_has_the_same_file(command, tmp_path, kind):
    table = DATA / "customers.csv"
    options = ["--target", "outcome", "--model", kind, "--n-estimators", 10]
    command("fit", table, *options, "-o", tmp_path / "one.kfhe")
    command("fit", table, *options, "--device", "cuda", "-o", tmp_path / "two.kfhe")
    assert (tmp_path / "one.kfhe").read_bytes() == (tmp_path / "two.kfhe").read_bytes()


def test_an_audit_there_finds_the_same_suspects(command, tmp_path):
    options = ["--target", "outcome", "--n-estimators", 20, "-o"]
    command("audit", DATA / "customers.csv", *options, tmp_path / "one.csv")
    command("audit", DATA / "customers.csv", "--device", "cuda", *options, tmp_path / "two.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_an_evaluation_there_says_the_same(command, tmp_path, capsys):
    options = ["--target", "outcome", "--n-estimators", 5, "--folds", 2, "--repeats", 1]
    command("evaluate", DATA / "customers.csv", *options)
    expected = capsys.readouterr().out
    command("evaluate", DATA / "customers.csv", *options, "--device", "cuda")
    assert capsys.readouterr().out == expected
