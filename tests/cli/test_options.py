"""Options that commands share: declared once, the same everywhere, and none of them is lost on the way."""

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import kfhe
from kfhe.cli import app, options
from kfhe.cli.options import LabelledInput, Model, Training

CUSTOMERS = Path(__file__).parents[2] / "examples" / "data" / "customers.csv"
SHARED = {"n_estimators": 3, "max_samples": 40, "class_weight": "balanced", "random_state": 6}
OF_THE_PAPERS_TREES = {"max_depth": 4, "min_samples_leaf": 5, "min_samples_split": 12}


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
    defaults = kfhe.CARTClassifier().get_params()
    helped = " ".join(run("fit", "--help").output.replace("│", " ").split())
    for name in OF_THE_PAPERS_TREES:
        assert re.search(rf"--{name.replace('_', '-')} [^-]*; default: {defaults[name]}\.", helped), name


@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        ("robust", SHARED, {}),
        ("kfhe-e", {**SHARED, **OF_THE_PAPERS_TREES}, {"emphasis": "exponential"}),
        ("kfhe-l", {**SHARED, **OF_THE_PAPERS_TREES}, {"emphasis": "linear"}),
    ],
)
def test_every_option_of_training_reaches_the_model(model, given, expected, tmp_path):
    assert {field.name for field in fields(Training)} == {*SHARED, *OF_THE_PAPERS_TREES, "n_jobs"}
    table = ("fit", CUSTOMERS, "-t", "outcome", "--jobs", 1, "-o", tmp_path / "model.kfhe")
    result = run(*table, "--model", model, *written(given))
    assert result.exit_code == 0, result.output
    found = kfhe.load(tmp_path / "model.kfhe")
    assert isinstance(found, kfhe.RobustKFHEClassifier) == (model == "robust")
    parameters = found.get_params()
    expected = {**given, **expected}
    for name, value in expected.items():
        assert parameters[f"estimator__{name}" if name in OF_THE_PAPERS_TREES else name] == value


@pytest.mark.parametrize("command", ["fit", "evaluate"])
@pytest.mark.parametrize("option", written(OF_THE_PAPERS_TREES)[::2])
def test_options_of_the_papers_variants_are_refused_for_the_robust_one(command, option):
    output = ["-o", "model.kfhe"] if command == "fit" else []
    result = run(command, CUSTOMERS, "-t", "outcome", option, 9, *output)
    assert result.exit_code == 2
    assert f"Invalid value for {option}: it is for --model kfhe-e and kfhe-l" in result.output


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
    training = {*written({**SHARED, **OF_THE_PAPERS_TREES})[::2], "--jobs", "--model"}
    assert training <= options_of("fit") & options_of("evaluate")
    for command in ("fit", "evaluate", "audit"):
        assert {"--target", "--categorical", "--drop"} <= options_of(command)


@pytest.mark.parametrize(
    "option",
    [
        ("--categorical", "age"),
        ("--as", "age=category"),
        ("--drop", "age"),
        ("--jobs", 2),
        ("--max-depth", 3),
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
    table = LabelledInput(table=CUSTOMERS, target="outcome", drop=["age", "outcome"])
    with pytest.raises(typer.BadParameter, match="the target can't be left out"):
        table.check()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"read_as": ["age=category", "age=number"]}, "'age' can't be read as category and as number"),
        ({"read_as": ["age=number"], "categorical": ["age"]}, "'age' is --categorical, and can't be read as"),
        ({"read_as": ["outcome=number"]}, "'outcome' is the target, and can't be read as number"),
    ],
)
def test_a_column_is_read_in_one_way_only(given, message):
    with pytest.raises(typer.BadParameter, match=message):
        LabelledInput(table=CUSTOMERS, target="outcome", **given).check()


def test_the_same_may_be_said_twice():
    said = {"read_as": ["age=category", "age=category", "outcome=category"], "categorical": ["age"]}
    LabelledInput(table=CUSTOMERS, target="outcome", **said).check()
