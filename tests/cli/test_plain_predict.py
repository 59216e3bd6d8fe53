"""``kfhe predict MODEL TABLE -o OUTPUT.csv``: what is run without typer, and what is not."""

import subprocess
import sys
from pathlib import Path

import pytest

from kfhe.cli.plain_predict import predicts_plainly

pytestmark = pytest.mark.usefixtures("elsewhere")


def test_neither_typer_nor_pyarrow_is_loaded(model):
    script = "import sys; from kfhe.cli import main\n"
    script += "try: main()\n"
    script += "finally: print({'typer', 'click', 'pydantic', 'rich', 'pyarrow'} & {*sys.modules})"
    command = [sys.executable, "-c", script, "predict", model, "new_customers.csv", "-o", "out.csv"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
    assert result.stderr.endswith("The predictions are in out.csv\n")


@pytest.mark.parametrize("options", [["-o", "out.csv"], ["--output", "out.csv", "--proba"]])
@pytest.mark.parametrize("table", ["new_customers.csv", "absent.csv", "model.kfhe", "customers.csv"])
def test_it_does_and_says_what_typer_would(kfhe, model, monkeypatch, table, options):
    code = 1 if table in ("absent.csv", "model.kfhe") else 0
    found = []
    for typer_looks in (False, True):
        Path("out.csv").unlink(missing_ok=True)
        if typer_looks:
            monkeypatch.setattr("kfhe.cli.predicts_plainly", lambda arguments: False)
        said = kfhe("predict", *options, model, table, code=code)
        found.append((said, Path("out.csv").exists() and Path("out.csv").read_bytes()))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fit", "m", "t.csv", "-o", "out.csv"],
        ["predict", "m", "t.csv"],
        ["predict", "m", "t.csv", "-o"],
        ["predict", "m", "t.csv", "-o", "-"],
        ["predict", "m", "t.csv", "-o", "out.parquet"],
        ["predict", "m", "-o", "out.csv"],
        ["predict", "m", "-", "-o", "out.csv"],
        ["predict", "", "t.csv", "-o", "out.csv"],
        ["predict", "m", "t.csv", "u.csv", "-o", "out.csv"],
        ["predict", "m", "t.csv", "-o", "out.csv", "--keep-all"],
        ["predict", "m", "t.csv", "-o", "out.csv", "--help"],
        ["predict", "m", "*.csv", "-o", "out.csv"],
        ["predict", "m", "customers.csv", "-o", "customers.csv"],
        ["predict", "m", "t.csv", "-o", "customers.csv/out.csv"],
        ["predict", "m", "t.csv", "-o", "folder.csv"],
    ],
)
def test_anything_else_is_left_to_typer(arguments):
    Path("folder.csv").mkdir()
    assert not predicts_plainly(arguments)
