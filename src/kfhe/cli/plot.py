"""``kfhe plot``: plots of a model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfhe.cli.echo import echo
from kfhe.cli.options import CsvInput, check_picture, spread

if TYPE_CHECKING:
    from kfhe import KFHEClassifier
    from kfhe.plotting import Display
    from kfhe.tables.files import Dialect

EXAMPLES = """\b
Examples:
  kfhe plot model.kfhe
  kfhe plot model.kfhe --kind importance -o importance.svg
  kfhe plot model.kfhe --kind scores --data train.csv --data test.csv -t label
"""


class Kind(StrEnum):
    """Kinds of plots."""

    trace = "trace"
    weights = "weights"
    importance = "importance"
    scores = "scores"
    regions = "regions"


OF_DATA = (Kind.scores, Kind.regions)


@spread
def plot(
    model: Annotated[Path, typer.Argument(help="A model file, as kfhe fit writes it.", show_default=False)],
    csv: CsvInput,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The .png, .svg or .pdf file to write; default: a png named after the model, beside it.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[Kind, typer.Option("--kind", "-k", help="What to draw.")] = Kind.trace,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="A csv or parquet file of rows for scores or regions; repeatable for scores.",
            metavar="TABLE",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The column of --data that holds the labels.")
    ] = None,
) -> None:
    """Plot a model.

    trace: measurement error, variance, gain and training error by iteration

    weights: effective sample size of the sampling weights

    importance: feature importances

    scores: accuracy after each component, on the rows of --data

    regions: decision regions of a model with two features
    """
    output = output or model.with_name(f"{model.stem}_{kind}.png")
    check_picture(output, model, *(data or []))
    from kfhe.cli.models import read_model
    from kfhe.files import write_whole
    from kfhe.plotting.base import entitle, rendered

    _check_data(kind, data or [], target)
    display = _display(kind, read_model(model), data or [], str(target), csv.dialect)
    entitle(display.figure_, model.name)
    write_whole(output, rendered(display.figure_, output.suffix.lower().removeprefix(".")))
    echo(f"The plot is in {output}")


def _check_data(kind: Kind, data: list[Path], target: str | None) -> None:
    if kind in OF_DATA and (not data or target is None):
        raise typer.BadParameter(f"--kind {kind} needs --data and --target")
    if kind not in OF_DATA and (data or target is not None):
        raise typer.BadParameter(f"--data and --target are for {' and '.join(OF_DATA)}, not for {kind}")
    if kind is Kind.regions and len(data) > 1:
        raise typer.BadParameter("regions are drawn for one table only", param_hint="--data")


def _display(kind: Kind, model: KFHEClassifier, data: list[Path], target: str, dialect: Dialect) -> Display:
    from kfhe import plotting

    if kind is Kind.regions:
        _check_numeric(model)
        return plotting.DecisionRegionsDisplay.from_estimator(model, *_rows(model, data[0], target, dialect))
    if kind is Kind.scores:
        ax = None
        for path in data:
            X, y = _rows(model, path, target, dialect)
            display = plotting.StagedScoreDisplay.from_estimator(model, X, y, name=path.stem, ax=ax)
            ax = display.ax_
        return display
    if kind is Kind.importance:
        return plotting.FeatureImportanceDisplay.from_estimator(model)
    if kind is Kind.weights:
        return plotting.SamplingWeightsDisplay.from_estimator(model)
    return plotting.TraceDisplay.from_estimator(model)


def _check_numeric(model: KFHEClassifier) -> None:
    """Raise if a feature is categorical: there is nothing between two categories."""
    schema = model.estimators_.schema
    for name, categories in zip(schema.names, schema.categories, strict=True):
        if categories is not None:
            raise typer.BadParameter(
                f"decision regions need two numeric features; the model's column {name!r} holds categories",
                param_hint="--kind",
            )


def _rows(model: KFHEClassifier, path: Path, target: str, dialect: Dialect) -> tuple[Any, Any]:
    """Read the columns of the model, with the types of training, and the labels."""
    from kfhe.cli.scoring import ModelReader
    from kfhe.tables.files import open_table

    named = hasattr(model, "feature_names_in_")
    reader = ModelReader(model.estimators_, named=named)
    with open_table(path, dialect) as table:
        X, y = reader.read(table, target)
    for note in reader.notes(table):
        echo(f"kfhe: {note}", err=True)
    return X if named else X.to_numpy(), y
