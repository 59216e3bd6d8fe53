"""Long work shows itself on a terminal, and nowhere else."""

import gzip
from pathlib import Path

import pandas as pd
import pytest

from kfhe.cli.bars import bar, rows_of
from tests.cli.test_terminal import said_on_a_terminal

pytestmark = pytest.mark.posix
COMMANDS = {
    "audit": ("audit", "t.csv", "-t", "label", "--n-estimators", "40"),
    "evaluate": ("evaluate", "t.csv", "-t", "label", "--n-estimators", "4", "--folds", "3"),
    "evaluate a model": ("evaluate", "t.csv", "-t", "label", "--model", "m.kfhe"),
    "predict": ("predict", "m.kfhe", "t.csv", "-o", "out.csv"),
}
SHOWN = {"audit": ("Audit", "/40"), "evaluate": ("Trees", "/12"), "evaluate a model": ("Rows", "/60")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table and a model of it."""
    folder = tmp_path_factory.mktemp("bars")
    rows = range(60)
    pd.DataFrame({"size": rows, "label": ["a", "b"] * 30}).to_csv(folder / "t.csv", index=False)
    said_on_a_terminal(folder, "fit", "t.csv", "-t", "label", "--n-estimators", "3", "-o", "m.kfhe")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_terminal_shows_how_far_it_is_and_the_time_left(folder, command):
    said = said_on_a_terminal(folder, *COMMANDS[command])
    for part in (*SHOWN.get(command, ("Rows",)), "left"):
        assert part in said


def test_no_bar_is_mixed_with_rows_that_are_printed(folder):
    assert "left" not in said_on_a_terminal(folder, "predict", "m.kfhe", "t.csv")


def test_a_pipe_shows_nothing(capsys):
    with bar("Rows", 10) as advance:
        advance(5)
    assert capsys.readouterr() == ("", "")


def test_rows_are_counted_without_reading_them_all(tmp_path):
    table = pd.DataFrame({"x": range(100_000), "word": "something"})
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    assert rows_of(tmp_path / "t.csv") == pytest.approx(100_000, rel=0.05)
    assert rows_of(tmp_path / "t.parquet") == 100_000
    for unknown in (tmp_path / "t.csv.gz", tmp_path / "none.csv", Path("-")):
        assert rows_of(unknown) is None
