"""``kfhe predict``: the classes of new rows, by a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kfhe.cli.scoring import Scorer

EXAMPLES = """
Examples:

  kfhe predict model.kfhe new.csv -o out.csv

  kfhe predict model.kfhe new.parquet --proba -o out.parquet

  kfhe predict model.kfhe new.csv | paste -d, new.csv - > both.csv
"""


def predict(
    model: Annotated[
        Path,
        typer.Argument(help="A model that kfhe fit has written; - for standard input.", show_default=False),
    ],
    table: Annotated[
        Path,
        typer.Argument(help="A .csv, .csv.gz or .parquet file; - for standard input.", show_default=False),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="The .csv, .csv.gz or .parquet file to write; - for standard output."
        ),
    ] = Path("-"),
    proba: Annotated[
        bool, typer.Option("--proba", help="Write the score of each class as well: they sum to 1.")
    ] = False,
) -> None:
    """Predict the class of each row of a table.

    The output has a row for each row, in the same order, with the class in
    the column prediction. Columns are found by their names, in any order;
    those that the model doesn't know are ignored.
    """
    from kfhe.cli.scoring import Scorer, load_model
    from kfhe.table_files import open_output, open_table
    from kfhe.table_files.output import check_output

    if str(model) == str(table) == "-":
        raise typer.BadParameter("the model and the table can't both come from standard input")
    check_output(output)
    scorer = Scorer(load_model(model))
    writes_text = not str(output).endswith(".parquet")
    with open_table(table) as rows:
        ignored = scorer.match(rows)
        if ignored:
            typer.echo(
                f"kfhe: {rows.name}: not used, as the model doesn't know them: {', '.join(ignored)}", err=True
            )
        schema = _schema(scorer, proba, writes_text)
        with open_output(output, schema) as out:
            for scores in scorer.scores(rows):
                out.write(_predictions(scorer, scores, schema))
    for note in scorer.notes(rows.name):
        typer.echo(f"kfhe: {note}", err=True)


def _schema(scorer: Scorer, proba: bool, writes_text: bool) -> Any:
    """Return the columns of the output; a csv gets classes as Python writes them: True, not true."""
    import pyarrow as pa

    classes = pa.array(scorer.model.classes_.tolist())
    fields = [pa.field("prediction", pa.string() if writes_text else classes.type)]
    if proba:
        fields += [pa.field(f"proba_{label}", pa.float64()) for label in scorer.model.classes_.tolist()]
    return pa.schema(fields)


def _predictions(scorer: Scorer, scores: Any, schema: Any) -> Any:
    import pyarrow as pa

    labels = scorer.model.classes_.tolist()
    if pa.types.is_string(schema.types[0]):
        labels = [str(label) for label in labels]
    best = pa.array(scores.argmax(axis=1))
    columns = [pa.array(labels, schema.types[0]).take(best)]
    columns += [pa.array(scores[:, position]) for position in range(len(schema) - 1)]
    return pa.table(columns, schema=schema)
