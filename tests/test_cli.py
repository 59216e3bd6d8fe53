"""The command kfhe."""

import subprocess
import sys

from typer.testing import CliRunner

from kfhe.cli import app


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


def test_the_command_is_installed_and_starts_without_loading_scikit_learn():
    """Help has to be there at once."""
    script = "import sys; from kfhe.cli import main; sys.argv = ['kfhe', '--help']\n"
    script += "try: main()\nfinally: assert 'sklearn' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "Usage" in result.stdout
