"""The command kfhe."""

import subprocess
import sys

from typer.testing import CliRunner

import kfhe
from kfhe.cli.commands import app


def run(*arguments):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})


def test_without_arguments_there_is_help():
    result = run()
    assert "study" in result.output
    assert "Usage" in result.output


def test_an_unknown_command_is_named():
    result = run("sutdy")
    assert result.exit_code == 2
    assert "sutdy" in result.output


HEAVY = ["numpy", "scipy", "sklearn", "pandas", "polars", "pyarrow", "dask", "matplotlib", "safetensors"]


def test_help_is_there_at_once_as_nothing_heavy_is_loaded():
    script = "import sys; from kfhe.cli import main; sys.argv = ['kfhe', '--help']\n"
    script += "try: main()\n"
    script += f"finally: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Usage: kfhe" in result.stdout
    assert result.stderr == "[]\n"


def test_the_version_is_told():
    result = run("--version")
    assert (result.exit_code, result.output) == (0, f"kfhe {kfhe.__version__}\n")
