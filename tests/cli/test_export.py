"""The command kfhe export."""

import json

import numpy as np
import onnx
import pytest
from random_tables import random_classes, random_table
from typer.testing import CliRunner

from kfhe import KFHEClassifier
from kfhe.cli.commands import app
from kfhe.export import to_json, to_onnx


def run(*arguments, **options):
    return CliRunner().invoke(app, ["export", *map(str, arguments)], env={"COLUMNS": "120"}, **options)


@pytest.fixture(scope="module")
def model():
    X, scores = random_table(np.random.default_rng(0), 100, [4], 0.1)
    return KFHEClassifier(n_estimators=2, random_state=0).fit(X, random_classes(scores, 2))


@pytest.fixture
def file(model, tmp_path):
    model.save(tmp_path / "model.kfhe")
    return tmp_path / "model.kfhe"


def test_the_ending_tells_what_to_write(model, file):
    result = run(file, "-o", file.with_name("m.onnx"))
    assert result.exit_code == 0
    assert f"The model is in {file.with_name('m.onnx')}" in result.output.replace("\n", " ")
    assert onnx.load(file.with_name("m.onnx")) == to_onnx(model)
    assert run(file, "-o", file.with_name("m.JSON")).exit_code == 0
    assert file.with_name("m.JSON").read_text(encoding="utf-8") == f"{to_json(model)}\n"


def test_an_option_tells_it_too_and_pipes_work(model, file):
    result = run("-", "--format", "json", "-o", "-", input=file.read_bytes())
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json.loads(to_json(model))


def test_without_either_it_is_used_wrongly(file):
    result = run(file, "-o", file.with_name("m.txt"))
    assert result.exit_code == 2
    assert "does not end in .onnx or .json" in result.output
    assert not file.with_name("m.txt").exists()


def test_a_folder_is_no_file_to_write(file):
    result = run(file, "-o", file.parent, "-f", "json")
    assert result.exit_code == 2
    assert "is a folder" in result.output


def test_a_damaged_model_leaves_the_old_export_as_it_was(file):
    file.write_bytes(file.read_bytes()[:-10])
    file.with_name("m.json").write_text("old")
    result = run(file, "-o", file.with_name("m.json"))
    assert result.exit_code == 1
    assert file.with_name("m.json").read_text() == "old"


def test_help_shows_examples():
    assert "kfhe export model.kfhe -o model.onnx" in run("--help").output
