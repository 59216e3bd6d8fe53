"""The code in the documentation runs, and prints what the page says it does."""

import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from itertools import pairwise
from pathlib import Path
from types import FunctionType, ModuleType
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import kfhe
import kfhe.plotting
from kfhe import RobustKFHEClassifier
from kfhe.audit import label_quality
from kfhe.cli import main

ROOT = Path(__file__).parents[1]
CODE = re.compile(r"^```(python|console)$", re.MULTILINE)
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SECONDS = re.compile(r"\d+\.\d+ s\b|\d+ ms\b")
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if CODE.search(page.read_text("utf-8"))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder that has the example tables, with the commands of this environment."""
    for table in (ROOT / "examples" / "data").glob("*.csv"):
        shutil.copy(table, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("PYTHONUTF8", "1")


def run_commands(block):
    """Run the lines of a console: kfhe in this process, which is faster, and all else in a shell."""
    printed = []
    for line in block.splitlines():
        command = line.removeprefix("$ ")
        plain = command.startswith("kfhe ") and not re.search("[|<>]", command)
        code, text = run_here(shlex.split(command)) if plain else run_in_shell(command)
        assert code == 0, text
        printed.append(text)
    return "".join(printed)


def run_here(arguments):
    text = io.StringIO()
    with (
        patch.object(sys, "argv", arguments),
        redirect_stdout(text),
        redirect_stderr(text),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return ended.value.code or 0, text.getvalue()


def run_in_shell(command):
    done = subprocess.run(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    return done.returncode, done.stdout


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_prints_what_it_says(page, capsys):
    variables = {}
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    for (language, code), (next_language, following) in pairwise([*blocks, ("", "")]):
        if language == "python":
            exec(compile(code, page.name, "exec"), variables)
            printed = capsys.readouterr().out
        elif language == "console":
            printed = run_commands(code)
        else:
            continue
        if next_language == "text":
            expected, found = (SECONDS.sub("some s", text) for text in (following, printed))
            matches = OutputChecker().check_output(expected, found, ELLIPSIS | NORMALIZE_WHITESPACE)
            assert matches, f"{code}\nprints\n{printed}\nnot\n{following}"


def test_the_start_page_knows_how_right_it_is():
    customers = runpy.run_path(str(ROOT / "examples" / "data" / "customers.py"))
    _, given, right = (np.array(values) for values in customers["labelled"]())
    table = pd.read_csv(ROOT / "examples" / "data" / "customers.csv").drop(columns="outcome")
    wrong = given != right

    audit = label_quality(table, given, random_state=0)
    page = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert wrong[np.argsort(audit.rank)[:10]].sum() == 9
    assert f"all {audit.suspects.sum()} suspects. Of these, {wrong[audit.suspects].sum()} are wrong" in page
    assert "nine of the ten in the table" in page
    assert f"{wrong.sum()} of the {len(wrong)} labels are wrong" in page

    model = RobustKFHEClassifier(random_state=0)
    predicted = cross_val_predict(model, table, given, cv=StratifiedKFold(5, shuffle=True, random_state=0))
    shares = (f"{100 * (predicted == labels).mean():.0f} %" for labels in (right, given))
    assert "{} of the predictions are right, not {}".format(*shares) in page


def test_the_reference_has_all_public_names():
    reference = (ROOT / "docs" / "api.rst").read_text("utf-8")
    listed = {line.strip() for line in reference.splitlines()}
    for name in [*kfhe.__all__, "plotting", "review"]:
        if isinstance(value := getattr(kfhe, name), ModuleType):
            names = getattr(value, "__all__", None) or public_functions(value)
            assert {f"{name}.{inner}" for inner in names} <= listed
        else:
            assert name in listed


def public_functions(module):
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__ and name[0] != "_"
    ]
