"""``kfhe predict``: predict the classes of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kfhe.cli.options import CsvInput, Decision, EscapeFormulas, check_table_output, decision_of, spread

EXAMPLES = """\b
Examples:
  kfhe predict model.kfhe new.csv -o out.csv
  kfhe predict model.kfhe new.parquet --proba -o out.parquet
  kfhe predict model.kfhe new.csv --decision likeliest -o out.csv
  kfhe predict model.kfhe new.csv --keep 'id,name,address_*' -o out.csv
  kfhe predict model.kfhe new.csv --keep-all -o out.csv
"""


@spread
def predict(
    model: Annotated[
        Path,
        typer.Argument(help="A model that kfhe fit has written; - for standard input.", show_default=False),
    ],
    table: Annotated[
        Path,
        typer.Argument(
            help="A .csv, .csv.gz, .parquet or .xlsx file; - for standard input.", show_default=False
        ),
    ],
    csv: CsvInput,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The .csv, .csv.gz or .parquet file to write; - for standard output.",
            metavar="FILE",
        ),
    ] = Path("-"),
    proba: Annotated[bool, typer.Option("--proba", help="Also write the probability of each class.")] = False,
    decision: Decision = None,
    escape_formulas: EscapeFormulas = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Also write these columns of the table, such as id,x_*; repeatable.",
            metavar="COLUMNS",
            show_default=False,
        ),
    ] = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Also write all columns of the table.")
    ] = False,
) -> None:
    """Predict the class of each row of a table.

    The output has one row per row of the table, in the same order. The class
    is in the column prediction, after the columns of --keep. Columns are
    matched by name; columns that the model does not know are ignored.

    A robust model favours rare classes, unless it was trained otherwise.
    --decision likeliest predicts the most probable class.
    """
    if keep and keep_all:
        raise typer.BadParameter("choose one of --keep and --keep-all")
    if str(model) == str(table) == "-":
        raise typer.BadParameter("the model and the table can't both come from standard input")
    from kfhe.cli.predicting import predict_table

    check_table_output(output, model, table)
    predict_table(
        model,
        table,
        output,
        dialect=csv.dialect,
        proba=proba,
        decision=decision_of(decision),
        escape_formulas=escape_formulas,
        keep=None if keep_all else keep or (),
    )
