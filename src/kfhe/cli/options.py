"""Options that several commands share, each declared once: as fields of a class that a command takes whole.

A command's parameter of the type `Training` or `LabelledInput` stands for all of its fields: `spread` shows
them to typer as options of their own, and hands them over as one object. So a new option of training is one
field of `Training`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, dataclass, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from kfhe import KFHEClassifier
    from kfhe.table_files.labelled import LabelledTable

_PANEL = "Training"


class Emphasis(StrEnum):
    """How a miss raises a row's weight."""

    exponential = "exponential"
    linear = "linear"


class ClassWeight(StrEnum):
    """Weights of the classes."""

    balanced = "balanced"


@dataclass(frozen=True)
class LabelledInput:
    """A table with a target, and which of its columns are learnt from."""

    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="A .csv, .csv.gz or .parquet file; - for standard input.",
            show_default=False,
        ),
    ]
    target: Annotated[str, typer.Option("--target", "-t", help="The column to learn.", show_default=False)]
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            help="A column of numbers that are categories; repeatable. Text always is.", metavar="COLUMN"
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(help="A column to leave out, such as an identifier; repeatable.", metavar="COLUMN"),
    ] = None

    def check(self) -> None:
        """Raise if the options contradict each other."""
        if self.target in (self.drop or ()):
            raise typer.BadParameter("the target can't be left out", param_hint="--drop")

    def read(self) -> LabelledTable:
        """Read the table."""
        from kfhe.table_files.labelled import LabelledTable

        return LabelledTable.read(
            self.table, self.target, categorical=self.categorical or (), drop=self.drop or ()
        )

    def categorical_features(self, data: LabelledTable) -> Any:
        """Return the parameter of that name for the table that was read."""
        return data.categorical if self.categorical else "from_dtype"


@dataclass(frozen=True)
class Training:
    """How to train: the fields are parameters of KFHEClassifier."""

    emphasis: Annotated[
        Emphasis,
        typer.Option(
            help="exponential: more accurate on clean labels; linear: more robust to wrong ones.",
            rich_help_panel=_PANEL,
        ),
    ] = Emphasis.exponential
    n_estimators: Annotated[
        int, typer.Option(min=1, help="Components after the first.", rich_help_panel=_PANEL)
    ] = 100
    max_depth: Annotated[
        int, typer.Option(min=1, help="Most splits above a leaf.", rich_help_panel=_PANEL)
    ] = 30
    min_samples_leaf: Annotated[
        int, typer.Option(min=1, help="Fewest rows of a leaf.", rich_help_panel=_PANEL)
    ] = 7
    min_samples_split: Annotated[
        int, typer.Option(min=2, help="Fewest rows of a node that is split.", rich_help_panel=_PANEL)
    ] = 20
    class_weight: Annotated[
        ClassWeight | None,
        typer.Option(help="balanced: rare classes count as much.", rich_help_panel=_PANEL),
    ] = None
    random_state: Annotated[
        int,
        typer.Option(
            min=0, max=2**32 - 1, help="Seed: the same one gives the same model.", rich_help_panel=_PANEL
        ),
    ] = 0
    n_jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            min=1,
            help="Threads; default: one per processor.",
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None

    def new_model(self, categorical_features: Any) -> KFHEClassifier:
        """Return a model with these settings."""
        from kfhe import KFHEClassifier

        given: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in given.items():
            if isinstance(value, StrEnum):
                given[name] = str(value)
        return KFHEClassifier(categorical_features=categorical_features, **given)


GROUPS = (LabelledInput, Training)


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Let each field of a command's `GROUPS` be an option of its own.

    Parameters
    ----------
    command : callable
        Some of its parameters may have one of the `GROUPS` as their type.

    Returns
    -------
    callable
        The command as typer takes it.

    Examples
    --------
    >>> from kfhe.cli.options import Training, spread
    >>> @spread
    ... def show(training: Training) -> None:
    ...     print(training.n_estimators, training.max_depth)
    >>> show(n_estimators=7)
    7 30
    """
    signature = inspect.signature(command, eval_str=True)
    groups = {name: p.annotation for name, p in signature.parameters.items() if p.annotation in GROUPS}
    parameters = []
    for name, parameter in signature.parameters.items():
        if name in groups:
            hints = get_type_hints(groups[name], include_extras=True)
            parameters += [_parameter(field, hints[field.name]) for field in fields(groups[name])]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def spread_command(**given: Any) -> None:
        for name, group in groups.items():
            own = {field.name for field in fields(group)} & given.keys()
            given[name] = group(**{key: given.pop(key) for key in own})
        command(**given)

    spread_command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return spread_command


def _parameter(field: Field[Any], hint: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def refuse(context: typer.Context, names: Collection[str], reason: str) -> None:
    """Raise if the user has given one of some options."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            raise typer.BadParameter(reason, param_hint=parameter.opts[0])


def refuse_input(output: Path, *inputs: Path) -> None:
    """Raise if an output would overwrite an input."""
    if any(output.is_file() and path.is_file() and output.samefile(path) for path in inputs):
        raise typer.BadParameter(f"{output} is the input; choose another file", param_hint="--output")
