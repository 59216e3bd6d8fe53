"""``kfhe predict``: predict the classes of new rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kfhe.cli.bars import bar, rows_of
from kfhe.cli.echo import echo
from kfhe.cli.options import CsvInput, Decision, EscapeFormulas, check_table_output, decision_of, spread

if TYPE_CHECKING:
    from polars import DataFrame

    from kfhe.saving.model_file import SavedForest

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
            help="The .csv, .csv.gz, .parquet or .xlsx file to write; - for standard output.",
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
    check_table_output(output, model, table)
    # Waiting threads must not use up cores that others need. The environment is read at import.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from kfhe.cli.models import read_forest
    from kfhe.cli.scoring import ModelReader, ahead
    from kfhe.display.text import counted, some
    from kfhe.tables.errors import TableFileError
    from kfhe.tables.files import open_table
    from kfhe.tables.labelled import named_columns

    saved = read_forest(model).deciding(decision_of(decision))
    reader = ModelReader(saved.forest, named=saved.named)
    with open_table(table, csv.dialect) as rows:
        from kfhe.tables.output import write_batches

        kept = rows.columns if keep_all else named_columns(keep or (), rows.columns, rows.name)
        ignored = [column for column in reader.match(rows) if column not in kept]
        if ignored:
            echo(f"kfhe: {rows.name}: not used, as the model doesn't know them: {some(ignored)}", err=True)
        predictor = _Predictor(saved, proba=proba, as_text=not str(output).endswith((".parquet", ".xlsx")))
        taken = [column for column in kept if column in predictor.schema]
        if taken:
            raise TableFileError(
                f"{rows.name}: column {taken[0]!r} can't be kept, as one of the predictions has this name; "
                "rename it, or name others by --keep"
            )
        types = rows.schema if kept else {}
        schema = {column: types[column] for column in kept} | predictor.schema
        with bar("Rows", rows_of(table), output=output) as advance:

            def predicted() -> Iterator[DataFrame]:
                for features, written in reader.batches(rows, kept):
                    found = predictor.rows(features)
                    if str(output).endswith(".xlsx"):  # numbers, even if the table has them as text
                        written = with_numbers(written, features)
                    yield written.hstack(found) if kept else found
                    advance(len(features))

            with closing(ahead(predicted())) as batches:
                write_batches(output, schema, batches, escape_formulas=escape_formulas)
    for note in reader.notes(rows):
        echo(f"kfhe: {note}", err=True)
    if predictor.n_unlikely:
        echo(
            f"kfhe: {rows.name}: {counted(predictor.n_unlikely, 'prediction', 'are')} not the likeliest "
            "class, as the model favours rare ones. To predict the likeliest: --decision likeliest",
            err=True,
        )
    if str(output) != "-":
        echo(f"The predictions are in {output}", err=True)


def with_numbers(written: DataFrame, features: DataFrame) -> DataFrame:
    """Convert columns to numbers where they are features of the model."""
    names = [name for name in written.columns if name in features.columns]
    return written.with_columns(column for column in features.select(names) if column.dtype.is_numeric())


class _Predictor:
    """Predicts rows, and collects notes on them.

    Attributes
    ----------
    schema : dict of str to DataType
        The columns of the output.
    n_unlikely : int
        Number of rows whose prediction is not the most likely class; 0 without probabilities.
    """

    def __init__(self, saved: SavedForest, *, proba: bool, as_text: bool) -> None:
        import polars as pl

        self._saved, self._proba = saved, proba
        classes = saved.forest.classes.tolist()
        # Booleans are written in csv as in Python: True, not true
        self._labels = pl.Series("prediction", [str(label) for label in classes] if as_text else classes)
        self.schema = {"prediction": self._labels.dtype}
        self.schema |= {f"proba_{label}": pl.Float64() for label in classes * proba}
        self.n_unlikely = 0

    def rows(self, features: DataFrame) -> DataFrame:
        """Return the predictions of some rows."""
        import numpy as np
        import polars as pl

        from kfhe.engine.threads import thread_count

        # A faster way if all columns are numeric
        are_numbers = all(dtype.is_float() for dtype in features.dtypes)
        rows = self._saved.forest.encoded(features.to_numpy() if are_numbers else features)
        decided, scores = self._saved.predict_rows(rows, thread_count(), proba=self._proba)
        if self._proba:
            taken = scores[np.arange(len(scores)), decided]
            self.n_unlikely += int(np.count_nonzero(scores.max(axis=1) > taken))
        columns = [self._labels.gather(decided), *(pl.Series(score) for score in scores.T)]
        return pl.DataFrame(columns, schema=list(self.schema))
