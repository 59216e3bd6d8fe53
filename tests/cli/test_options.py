"""Options that commands share: declared once, the same everywhere, and none of them is lost on the way."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import kfhe
from kfhe.cli import options
from kfhe.cli.commands import app
from kfhe.cli.options import LabelledInput, Model, Training

CUSTOMERS = Path(__file__).parents[2] / "examples" / "data" / "customers.csv"
SHARED = {"n_estimators": 3, "max_samples": 40, "class_weight": "balanced", "random_state": 6}
OF_TREES = {"min_samples_leaf": 5, "max_leaf_nodes": 9}


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def options_of(command):
    """The names of a command's options, as they are written."""
    (found,) = [each for each in typer.main.get_command(app).commands.values() if each.name == command]
    return {option for parameter in found.params for option in parameter.opts}


def written(settings):
    return [part for name, value in settings.items() for part in (f"--{name.replace('_', '-')}", value)]


@pytest.mark.parametrize("model", Model)
def test_training_begins_with_the_defaults_of_the_classifier(model):
    made = Training().new_model(model, "from_dtype").get_params()
    expected = {"random_state": 0, "emphasis": "linear"} if model == "kfhe-l" else {"random_state": 0}
    default = kfhe.RobustKFHEClassifier() if model == "robust" else kfhe.KFHEClassifier(kfhe.CARTClassifier())
    made.pop("estimator", None)  # its own parameters are compared
    assert (
        made
        == {name: value for name, value in default.get_params().items() if name != "estimator"} | expected
    )


def test_the_defaults_that_help_names_are_the_classifiers():
    helped = " ".join(run("fit", "--help").output.split())
    robust, tree = kfhe.RobustKFHEClassifier().min_samples_leaf, kfhe.CARTClassifier().min_samples_leaf
    assert f"Minimum rows in a leaf; default: {robust}, and {tree} for kfhe-e and kfhe-l." in helped


def test_help_is_short():
    for command in typer.main.get_command(app).commands:
        text = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80"}).output
        assert len(text.splitlines()) <= 60, command
        assert max(map(len, text.splitlines())) <= 80, command


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        ("robust", {**SHARED, **OF_TREES, "decision": "likeliest"}, {}),
        ("robust", {"decision": 0.25}, {}),
        ("kfhe-e", {**SHARED, **OF_TREES}, {"emphasis": "exponential"}),
        ("kfhe-l", {**SHARED, **OF_TREES}, {"emphasis": "linear"}),
    ],
)
def test_every_option_of_training_reaches_the_model(model, given, expected, tmp_path):
    assert {field.name for field in fields(Training)} == {*SHARED, *OF_TREES, "decision", "n_jobs", "device"}
    table = ("fit", CUSTOMERS, "-t", "outcome", "--jobs", 1, "-o", tmp_path / "model.kfhe")
    result = run(*table, "--model", model, *written(given))
    assert result.exit_code == 0, result.output
    found = kfhe.load(tmp_path / "model.kfhe")
    assert isinstance(found, kfhe.RobustKFHEClassifier) == (model == "robust")
    parameters = found.get_params()
    expected = {**given, **expected}
    for name, value in expected.items():
        of_tree = name in OF_TREES and model != "robust"
        assert parameters[f"estimator__{name}" if of_tree else name] == value


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_the_papers_variants_always_predict_the_likeliest_class(command, tmp_path):
    output = ["-o", tmp_path / "model.kfhe"] if command == "fit" else []
    result = run(command, CUSTOMERS, "-t", "outcome", "--model", "kfhe-l", "--decision", "likeliest", *output)
    assert result.exit_code == 2
    assert "Invalid value for --decision: it is for --model robust; kfhe-l always" in result.output


@pytest.mark.parametrize("given", ["fair", "2", "-0.1", "nan", ""])
def test_decisions_that_there_are_not_are_refused(given):
    result = run("evaluate", CUSTOMERS, "-t", "outcome", "--decision", given)
    assert result.exit_code == 2
    assert (
        "Invalid value for --decision: must be balanced, likeliest or a number from 0 to 1" in result.output
    )


@pytest.mark.parametrize(("given", "meant"), [("auto", "auto"), ("0.25", 0.25), ("1.0", 1.0), ("500", 500)])
def test_samples_are_a_number_a_share_or_auto(given, meant):
    made = Training(max_samples=given).new_model(Model.kfhe_e, "from_dtype").max_samples
    assert (made, type(made)) == (meant, type(meant))


@pytest.mark.parametrize("given", ["0", "-3", "0.0", "1.5", "nan", "all", "1e3", ""])
def test_samples_of_no_size_are_refused(given):
    result = run("fit", CUSTOMERS, "-t", "outcome", "-o", "model.kfhe", "--max-samples", given)
    assert result.exit_code == 2
    assert "Invalid value for --max-samples: must be a number of rows, a share" in result.output


def test_threads_are_those_of_the_command_line():
    assert Training(n_jobs=3).new_model(Model.robust, "from_dtype").n_jobs == 3


def test_fit_and_evaluate_train_alike_and_all_read_tables_alike():
    training = {*written({**SHARED, **OF_TREES})[::2], "--decision", "--jobs", "--model"}
    assert training <= options_of("fit") & options_of("evaluate")
    for command in ("fit", "evaluate", "audit"):
        assert {"--target", "--as", "--drop"} <= options_of(command)


@pytest.mark.parametrize(
    "option",
    [
        ("--as", "age=category"),
        ("--drop", "age"),
        ("--jobs", 2),
        ("--max-leaf-nodes", 3),
        ("--folds", 3),
    ],
)
def test_with_a_model_file_nothing_is_trained(option):
    result = run("evaluate", CUSTOMERS, "-t", "outcome", "--model", "model.kfhe", *option)
    assert result.exit_code == 2
    assert f"Invalid value for {option[0]}: with a model file nothing is trained" in result.output


def test_a_name_that_is_neither_model_nor_file_is_told_what_there_is():
    result = run("evaluate", CUSTOMERS, "-t", "outcome", "--model", "robst")
    assert result.exit_code == 2
    assert "there is no model file robst" in result.output
    assert "train one of robust, kfhe-e, kfhe-l" in result.output


def test_a_new_field_is_a_new_option(monkeypatch):
    @dataclass(frozen=True)
    class Colours:
        paint: Annotated[str, typer.Option("--paint", "-p")]
        coats: int = 2

    monkeypatch.setattr(options, "GROUPS", (Colours,))
    painted = []

    def paint(where: str, colours: Colours, quickly: bool = False) -> None:
        painted.append((where, colours, quickly))

    command = typer.Typer()
    command.command()(options.spread(paint))
    assert CliRunner().invoke(command, ["door", "-p", "red", "--coats", "3"]).exit_code == 0
    assert painted == [("door", Colours("red", 3), False)]


def test_a_target_that_is_left_out_is_refused():
    for drop in (["age", "outcome"], ["age,outcome"]):
        table = LabelledInput(table=CUSTOMERS, target="outcome", drop=drop)
        with pytest.raises(typer.BadParameter, match="the target can't be left out"):
            table.check()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"read_as": ["age=category", "age=number"]}, "'age' can't be read as category and as number"),
        ({"read_as": ["outcome=number"]}, "'outcome' is the target, and can't be read as number"),
    ],
)
def test_a_column_is_read_in_one_way_only(given, message):
    with pytest.raises(typer.BadParameter, match=message):
        LabelledInput(table=CUSTOMERS, target="outcome", **given).check()


def test_the_same_may_be_said_twice():
    said = ["age=category", "age=category", "outcome=category"]
    LabelledInput(table=CUSTOMERS, target="outcome", read_as=said).check()
