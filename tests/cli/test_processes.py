"""The command as a process: signals, pipes, what it imports, help and completion."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from kfhe.cli import main

DATA = Path(__file__).parents[2] / "examples" / "data"

pytestmark = pytest.mark.usefixtures("elsewhere")


def write(text, name="mine.csv"):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def test_debug_shows_where_an_error_comes_from(monkeypatch):
    monkeypatch.setattr("sys.argv", ["kfhe", "--debug", "fit", "absent.csv", "-t", "a", "-o", "m.kfhe"])
    with pytest.raises(ValueError, match="there is no such file"):
        main()


def process(*arguments, **settings):
    command = [sys.executable, "-c", "from kfhe.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **settings)


def test_prediction_does_without_what_is_slow_to_import(model):
    script = "import sys; from kfhe.cli import main; sys.argv = ['kfhe', 'predict', *sys.argv[1:]]\n"
    script += "try: main()\n"
    script += "finally: print({'sklearn', 'scipy', 'pandas', 'pyarrow'} & {*sys.modules}, file=sys.stderr)"
    header = "age,plan,city,months,support calls,monthly bill,paperless\n"
    write(f"{header}18,plus,Corwen,1,1,1.5,no\n,,Corwen,,1,,\n")
    command = [sys.executable, "-c", script, model, "mine.csv"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[0] == "prediction"
    assert result.stderr == "set()\n"


def test_an_error_is_all_that_happens_though_threads_read_ahead(model):
    write("age,plan,plan\n" + "18,plus,basic\n" * 30_000)
    for _ in range(8):
        with process("predict", model, "mine.csv", "-o", "out.csv") as running:
            said = running.stderr.read().decode()
        assert (running.returncode, said.count("\n")) == (1, 1), said


def test_a_reader_that_leaves_early_ends_it_quietly(model):
    pd.concat([pd.read_csv("new_customers.csv")] * 1500).to_csv("mine.csv", index=False)
    with process("predict", model, "mine.csv") as running:
        running.stdout.read(100)
        running.stdout.close()
        said = running.stderr.read().decode()
    assert "Traceback" not in said
    assert "roken" not in said


@pytest.mark.parametrize("output", [[], ["-o", "-"], ["-o", "suspects.csv"]], ids=" ".join)
def test_files_are_written_whatever_a_reader_of_standard_output_does(output):
    files = ["--page", "page.html", "--plot", "plot.png"]
    with process("audit", "customers.csv", "-t", "outcome", "--n-estimators", 50, *output, *files) as running:
        running.stdout.close()
        said = running.stderr.read().decode()
    for name in (files[1], files[3], *(name for name in output if name.endswith(".csv"))):
        assert Path(name).stat().st_size > 1000
        assert f" in {name}" in said
    assert "Traceback" not in said


FIT = ["fit", "customers.csv", "-t", "outcome", "--n-estimators", "5", "-o", "out"]
PREDICT = ["predict", "model.kfhe", "new_customers.csv", "-o", "out.csv"]
AUDIT = [
    "audit",
    "customers.csv",
    "-t",
    "outcome",
    "--n-estimators",
    "50",
    "--page",
    "out.html",
    "-o",
    "out.csv",
]


def shell(redirected, *arguments, **settings):
    """Run the command as a shell does that redirects its streams."""
    script = 'import sys; from kfhe.cli import main; sys.argv[0] = "kfhe"; main()'
    line = ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, **settings)


@pytest.mark.posix
@pytest.mark.parametrize("command", [PREDICT, [*PREDICT, "--keep-all"]], ids=" ".join)
def test_standard_error_may_be_closed(model, command):
    assert shell("2>&-", *command).returncode == 0
    assert [name for name in os.listdir() if name.startswith("out")]


@pytest.mark.skipif(not hasattr(Console, "on_broken_pipe"), reason="older versions of rich end at it")
@pytest.mark.parametrize("command", [FIT, [*PREDICT, "--keep", "age"], AUDIT], ids=" ".join)
def test_what_is_said_on_standard_error_need_not_be_read(model, command):
    with process(*command) as running:
        running.stderr.close()
        running.stdout.read()
    assert running.returncode == 0
    assert [name for name in os.listdir() if name.startswith("out")]


@pytest.mark.posix
@pytest.mark.parametrize(
    ("redirected", "command", "said"),
    [
        (">&-", ["predict", "model.kfhe", "new_customers.csv"], "standard output is closed"),
        (">&-", ["fit", "customers.csv", "-t", "outcome", "-o", "-"], "standard output is closed"),
        (">&-", ["export", "model.kfhe", "--format", "json", "-o", "-"], "standard output is closed"),
        ("<&-", ["predict", "model.kfhe", "-"], "standard input is closed"),
        ("<&-", ["predict", "-", "new_customers.csv"], "standard input is closed"),
    ],
    ids=str,
)
def test_a_stream_that_is_needed_and_closed_is_told(model, redirected, command, said):
    result = shell(redirected, *command)
    assert (result.returncode, result.stderr.splitlines()[-1]) == (1, f"kfhe: {said}")


def test_labels_that_standard_output_cannot_encode_end_nothing():
    write(Path("customers.csv").read_text().replace("upgrades", "größer 📈"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    files = ["--page", "page.html", "--plot", "plot.svg", "-o", "suspects.csv"]
    audit = ["audit", "mine.csv", "-t", "outcome", "--n-estimators", 50, *files]
    for command in (audit, ["evaluate", "mine.csv", "-t", "outcome", "--holdout", 0.5, "--plots", "plots"]):
        with process(*command, env=environment) as running:
            said = running.stdout.read().decode("ascii")
            assert running.wait() == 0, running.stderr.read().decode("ascii")
        assert "\\U0001f4c8" in said
    assert {"page.html", "plot.svg", "suspects.csv", "plots"} < {*os.listdir()}


@pytest.mark.posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_ctrl_c_and_kill_end_it_with_130_and_leave_nothing_behind(name, model):
    os.mkfifo("mine.csv")
    with process("predict", model, "mine.csv", "-o", "out.csv") as running:
        with open("mine.csv", "wb") as slow:  # opened once the command reads it
            slow.write(Path("new_customers.csv").read_bytes())
            slow.flush()
            running.send_signal(getattr(signal, name))
        said = running.stderr.read().decode()
    assert running.returncode == 130
    assert "Traceback" not in said
    assert not [name for name in os.listdir() if "out.csv" in name]


@pytest.mark.posix
def test_ctrl_c_while_memory_is_cleared_is_not_lost(tmp_path):
    """Python drops what is raised in a callback of its collector."""
    script = (
        "import gc, os, signal, sys\n"
        "from kfhe.cli import main\n"
        "def interrupt(phase, info):\n"
        "    if sys.unraisablehook is sys.__unraisablehook__: return\n"  # the command has not begun
        "    gc.callbacks.remove(interrupt)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    for _ in range(9): pass\n"
        "gc.callbacks.append(interrupt)\n"
        "main()"
    )
    command = [sys.executable, "-c", script, "fit", DATA / "customers.csv", "--n-estimators", "999999"]
    command += ["-t", "outcome", "-o", tmp_path / "out.kfhe"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 130
    assert "Traceback" not in result.stderr


def test_the_shell_completes_commands(monkeypatch, capsys):
    monkeypatch.setenv("_KFHE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "kfhe pre")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setattr("sys.argv", ["kfhe"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.split() == ["predict"]


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate"])
def test_help_has_examples(kfhe, command):
    out, _ = kfhe(command, "--help")
    assert f" kfhe {command} " in out.decode().partition("Examples:")[2]
