"""What tests of the command line share."""

import io
import sys
from pathlib import Path

import pytest

from kfhe.cli import main

ROOT = Path(__file__).parents[2]
DATA = ROOT / "examples" / "data"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Run in a folder that holds the example's files alone."""
    for name in ("customers.csv", "new_customers.csv"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def kfhe(monkeypatch, capfdbinary):
    """Run the command in this process; return what it said on standard output and error.

    What is piped is bytes, or the path of a file that standard input is read from.
    """

    def command(*arguments, code=0, piped=b""):
        monkeypatch.setattr("sys.argv", ["kfhe", *map(str, arguments)])
        source = piped.open("rb") if isinstance(piped, Path) else io.BufferedReader(io.BytesIO(piped))
        with io.TextIOWrapper(source) as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            with pytest.raises(SystemExit) as ended:
                main()
        sys.stdout.flush()
        said = capfdbinary.readouterr()
        errors = said.err.decode()
        assert ended.value.code == code, errors
        assert "Traceback" not in errors
        return said.out, errors

    return command


@pytest.fixture
def model(kfhe):
    kfhe("fit", "customers.csv", "--target", "outcome", "-o", "model.kfhe")
    return "model.kfhe"
