"""Options that commands share: declared once, the same everywhere, and none of them is lost on the way."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import kfhe
from kfhe.cli import app, options
from kfhe.cli.options import LabelledInput, Training

CUSTOMERS = Path(__file__).parents[1] / "examples" / "data" / "customers.csv"
GIVEN = {
    "emphasis": "linear",
    "n_estimators": 3,
    "max_depth": 4,
    "min_samples_leaf": 5,
    "min_samples_split": 12,
    "class_weight": "balanced",
    "random_state": 6,
}


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "200"})


def options_of(command):
    """The names of a command's options, as they are written."""
    (found,) = [each for each in typer.main.get_command(app).commands.values() if each.name == command]
    return {option for parameter in found.params for option in parameter.opts}


def test_training_begins_with_the_defaults_of_the_classifier():
    defaults = kfhe.KFHEClassifier().get_params()
    for field in fields(Training):
        assert field.default == (0 if field.name == "random_state" else defaults[field.name]), field.name


def test_every_option_of_training_reaches_the_model(tmp_path):
    assert {field.name for field in fields(Training)} == {*GIVEN, "n_jobs"}
    given = [part for name, value in GIVEN.items() for part in (f"--{name.replace('_', '-')}", value)]
    table = ("fit", CUSTOMERS, "-t", "outcome", "--jobs", 1, "-o", tmp_path / "model.kfhe")
    result = run(*table, *given)
    assert result.exit_code == 0, result.output
    found = kfhe.load(tmp_path / "model.kfhe").get_params()
    assert {name: found[name] for name in GIVEN} == GIVEN


def test_threads_are_those_of_the_command_line():
    assert Training(n_jobs=3).new_model("from_dtype").n_jobs == 3


def test_fit_and_evaluate_train_alike_and_all_read_tables_alike():
    training = {f"--{name.replace('_', '-')}" for name in GIVEN} | {"--jobs"}
    assert training <= options_of("fit") & options_of("evaluate")
    for command in ("fit", "evaluate", "audit"):
        assert {"--target", "--categorical", "--drop"} <= options_of(command)


@pytest.mark.parametrize(
    "option", [("--categorical", "age"), ("--drop", "age"), ("--jobs", 2), ("--emphasis", "linear")]
)
def test_with_a_model_nothing_is_trained(option):
    result = run("evaluate", CUSTOMERS, "-t", "outcome", "--model", "model.kfhe", *option)
    assert result.exit_code == 2
    assert f"Invalid value for {option[0]}: with --model nothing is trained" in result.output


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
    table = LabelledInput(CUSTOMERS, "outcome", drop=["age", "outcome"])
    with pytest.raises(typer.BadParameter, match="the target can't be left out"):
        table.check()
