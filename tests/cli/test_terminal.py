"""What commands print: nothing in a table or a model steers the terminal or a spreadsheet."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import kfhe
from kfhe.cli.console import Console, table
from kfhe.tables.output import write_table

CLI = Path(kfhe.__file__).parent / "cli"
CLEAR = "\x1b[2J\x9b1m\x07"  # clears the screen, makes all bold, rings the bell


@pytest.fixture
def hostile(tmp_path, rng):
    """Return a table whose names, cells and labels are escape sequences."""
    words = rng.choice([f"{CLEAR}red", "green", "blue"], 60)
    columns = {
        f"{CLEAR}colour": words,
        "size": rng.normal(size=60).round(2),
        "label": [f"{CLEAR}a", "b"] * 30,
    }
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


def said_on_a_terminal(folder, *arguments, code=0):
    """Run a command on a terminal of its own and return what came out there."""
    import pty

    ours, theirs = pty.openpty()
    script = "from kfhe.cli import main; main()"
    command = [sys.executable, "-W", "ignore", "-c", script, *arguments]
    environment = {**os.environ, "COLUMNS": "150", "TERM": "xterm"}
    process = subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 4096):
            said += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == code, said.decode()
    return said.decode()


@pytest.mark.posix
def test_escapes_in_a_table_do_not_reach_the_terminal(hostile):
    fit = ("fit", "t.csv", "-t", "label", "--n-estimators", "3", "-o", "m.kfhe")
    commands = [
        fit,
        ("predict", "m.kfhe", "t.csv", "--proba"),
        ("evaluate", "t.csv", "-t", "label", "--n-estimators", "3"),
        ("evaluate", "t.csv", "-t", "label", "--model", "m.kfhe"),
        ("audit", "t.csv", "-t", "label", "--n-estimators", "20", "-o", "-"),
        ("data", "show", "t.csv", "--target", "label"),
    ]
    for command in commands:
        said = said_on_a_terminal(hostile, *command)
        assert "[2J" in said, command  # its harmless rest
        for part in ("\x1b[2J", "\x9b", "\x07"):
            assert part not in said, command


@pytest.mark.posix
def test_escapes_in_what_is_wrong_do_not_reach_the_terminal(hostile):
    (hostile / f"{CLEAR}.csv").write_text("size\n1\n")
    said = said_on_a_terminal(hostile, "fit", f"{CLEAR}.csv", "-t", "label", "-o", "m.kfhe", code=1)
    assert "[2J1m.csv: " in said
    assert "\x1b[2J" not in said


def test_a_file_gets_cells_as_they_are(hostile):
    write_table(hostile / "out.csv", pl.DataFrame({"a": [f"{CLEAR}red"]}))
    assert (hostile / "out.csv").read_text() == f"a\n{CLEAR}red\n"


def test_styles_are_printed_still(capsys):
    Console(force_terminal=True, color_system="standard").print("a", style="red")
    assert "\x1b[31ma" in capsys.readouterr().out


def test_brackets_are_no_markup(capsys):
    Console().print("t[1].csv: [red]a[/]")
    Console().print(table(["[b]"], [["[i]"]]))
    said = capsys.readouterr().out
    assert "t[1].csv: [red]a[/]" in said
    assert "[b]" in said
    assert "[i]" in said


def test_all_commands_print_through_one_door():
    for path in CLI.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if path.name not in ("echo.py", "console.py"):
            for way in ("typer.echo", "typer.secho", "rich.console"):
                assert way not in text, f"{path.name} has {way}"


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", "plain", "a=b", None]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
def test_formulas_get_an_apostrophe_if_asked_for(tmp_path, dtype):
    table = pl.DataFrame({"=x": pl.Series(FORMULAS, dtype=dtype), "-n": [-1.5] * len(FORMULAS)})
    write_table(tmp_path / "out.csv", table, escape_formulas=True)
    read = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert list(read) == ["'=x", "'-n"]
    assert read["'=x"].tolist() == ["'" + text for text in FORMULAS[:5]] + ["plain", "a=b", ""]
    assert read["'-n"].tolist() == [-1.5] * len(FORMULAS)


def test_cells_are_not_touched_unless_asked_for(tmp_path):
    write_table(tmp_path / "out.csv", pl.DataFrame({"x": FORMULAS[:7]}))
    assert pd.read_csv(tmp_path / "out.csv")["x"].tolist() == FORMULAS[:7]


@pytest.mark.parametrize("command", ["predict", "audit"])
def test_commands_that_write_tables_have_the_option(tmp_path, monkeypatch, command):
    from typer.testing import CliRunner

    from kfhe.cli.commands import app

    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": range(40), "y": ["=a", "b"] * 20}).to_csv("t.csv", index=False)
    run = CliRunner().invoke
    small = ["t.csv", "-t", "y", "--n-estimators", "5"]
    assert run(app, ["fit", *small, "-o", "m.kfhe"]).exit_code == 0
    arguments = ["m.kfhe", "t.csv"] if command == "predict" else [*small, "--all"]
    done = run(app, [command, *arguments, "--escape-formulas", "-o", "out.csv"])
    assert done.exit_code == 0, done.output
    assert "'=a" in Path("out.csv").read_text()


def test_warnings_are_one_line_without_a_place_in_the_code(tmp_path):
    pd.DataFrame({"x": range(15), "y": ["a", "b", "b"] * 5}).to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", "t.csv", "-t", "y", "--model", "kfhe-e", "-o", "m.kfhe"]
    command = [sys.executable, "-c", "from kfhe.cli import main; main()", *fit]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "\nkfhe: 15 rows are too few for any tree to split" in done.stderr
    assert "Warning" not in done.stderr
