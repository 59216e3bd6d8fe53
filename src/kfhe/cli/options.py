"""Arguments and options that several commands share, and the model that they ask for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kfhe import KFHEClassifier
    from kfhe.cli.labelled import LabelledTable

_TRAINING = "Training"
# The names of the options below that say how to train
TRAINING: tuple[str, ...] = (
    "emphasis",
    "n_estimators",
    "max_depth",
    "min_samples_leaf",
    "min_samples_split",
    "class_weight",
)
TRAINING += ("random_state", "jobs")


def refuse_input(output: Path, *inputs: Path) -> None:
    """Raise if an output would overwrite an input."""
    if any(output.is_file() and path.is_file() and output.samefile(path) for path in inputs):
        raise typer.BadParameter(f"{output} is the input; choose another file", param_hint="--output")


class Emphasis(StrEnum):
    """How a miss raises a row's weight."""

    exponential = "exponential"
    linear = "linear"


class ClassWeight(StrEnum):
    """Weights of the classes."""

    balanced = "balanced"


Target = Annotated[str, typer.Option("--target", "-t", help="The column to learn.", show_default=False)]
LabelledFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="A .csv, .csv.gz or .parquet file; - for standard input.", show_default=False
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        help="A column of numbers that are categories; repeatable. Text always is.", metavar="COLUMN"
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="A column to leave out, such as an identifier; repeatable.", metavar="COLUMN"),
]
EmphasisOption = Annotated[
    Emphasis,
    typer.Option(
        help="exponential: more accurate on clean labels; linear: more robust to wrong ones.",
        rich_help_panel=_TRAINING,
    ),
]
Estimators = Annotated[
    int, typer.Option("--n-estimators", min=1, help="Components after the first.", rich_help_panel=_TRAINING)
]
MaxDepth = Annotated[int, typer.Option(min=1, help="Most splits above a leaf.", rich_help_panel=_TRAINING)]
MinLeaf = Annotated[
    int, typer.Option("--min-samples-leaf", min=1, help="Fewest rows of a leaf.", rich_help_panel=_TRAINING)
]
MinSplit = Annotated[
    int,
    typer.Option(
        "--min-samples-split", min=2, help="Fewest rows of a node that is split.", rich_help_panel=_TRAINING
    ),
]
Weights = Annotated[
    ClassWeight | None,
    typer.Option("--class-weight", help="balanced: rare classes count as much.", rich_help_panel=_TRAINING),
]
RandomState = Annotated[
    int,
    typer.Option(
        min=0, max=2**32 - 1, help="Seed: the same one gives the same model.", rich_help_panel=_TRAINING
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, help="Threads; default: one per processor.", rich_help_panel=_TRAINING, show_default=False
    ),
]


def new_model(context: typer.Context, data: LabelledTable) -> KFHEClassifier:
    """Return a model with the settings of a command, to be trained on a table."""
    from kfhe import KFHEClassifier

    given = context.params
    return KFHEClassifier(
        emphasis=str(given["emphasis"]),
        n_estimators=given["n_estimators"],
        max_depth=given["max_depth"],
        min_samples_leaf=given["min_samples_leaf"],
        min_samples_split=given["min_samples_split"],
        class_weight=given["class_weight"],
        random_state=given["random_state"],
        categorical_features=data.categorical if given["categorical"] else "from_dtype",
        n_jobs=given["jobs"],
    )
