"""``kfhe export``: export a saved model."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from kfhe.cli.echo import echo
from kfhe.cli.options import check_writable

EXAMPLES = """\b
Examples:
  kfhe export model.kfhe -o model.onnx
  kfhe export model.kfhe -o model.json
  kfhe export model.kfhe --format json -o - | jq '.trees[0]'
"""


class Format(StrEnum):
    """The formats of exported models."""

    onnx = "onnx"
    json = "json"


def export(
    model: Annotated[
        Path,
        typer.Argument(help="A model that kfhe fit has written; - for standard input.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The file to write; - for standard output.", show_default=False),
    ],
    format: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Format; default: by the ending of the output."),
    ] = None,
) -> None:
    """Write a model as an ONNX graph or as JSON, for use without kfhe.

    The ONNX graph takes raw columns, including strings and missing values, and returns labels and
    probabilities. The JSON text lists the trees node by node. The documentation describes both.
    """
    if format is None:
        endings = [f".{known}" for known in Format]
        if output.suffix.lower() not in endings:
            raise typer.BadParameter(
                f"{output.name} does not end in {' or '.join(endings)}; rename it or give --format",
                param_hint="--output",
            )
        format = Format(output.suffix.lower()[1:])
    check_writable(output, model)

    from kfhe.cli.models import read_model
    from kfhe.export import to_json, to_onnx
    from kfhe.files import standard_output, write_whole

    fitted = read_model(model)
    if format is Format.onnx:
        content = to_onnx(fitted).SerializeToString()
    else:
        content = f"{to_json(fitted)}\n".encode()
    if str(output) == "-":
        standard_output().write(content)
        standard_output().flush()
    else:
        write_whole(output, content)
        echo(f"The model is in {output}", err=True)
