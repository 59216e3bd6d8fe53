"""``kfhe predict``: the classes of new rows, by a saved model."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfhe.cli.bars import bar, rows_of
from kfhe.cli.echo import echo
from kfhe.cli.options import CsvInput, EscapeFormulas, check_writable, spread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kfhe.saving.model_file import SavedForest
    from kfhe.table_files import TableFile
    from kfhe.table_files.output import CsvOutput

EXAMPLES = """
Examples:

  kfhe predict model.kfhe new.csv -o out.csv

  kfhe predict model.kfhe new.parquet --proba -o out.parquet

  kfhe predict model.kfhe new.csv --keep id,name -o out.csv

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
            "--output", "-o", help="The .csv, .csv.gz or .parquet file to write; - for standard output."
        ),
    ] = Path("-"),
    proba: Annotated[
        bool, typer.Option("--proba", help="Write the probability of each class as well: they sum to 1.")
    ] = False,
    escape_formulas: EscapeFormulas = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Write these columns of the table as well, such as id,name; repeatable.",
            metavar="COLUMNS",
            show_default=False,
        ),
    ] = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Write all columns of the table as well.")
    ] = False,
) -> None:
    """Predict the class of each row of a table.

    The output has a row for each row, in the same order, with the class in
    the column prediction. Columns are found by their names, in any order;
    those that the model doesn't know are ignored. Columns that are kept
    come first, as they are written in the table.
    """
    # Threads that wait must not keep a core busy that others work on. Both look as they are loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from kfhe.cli.models import read_forest
    from kfhe.cli.scoring import ModelReader, ahead
    from kfhe.engine.threads import thread_count
    from kfhe.table_files import open_output, open_table
    from kfhe.table_files.errors import some
    from kfhe.table_files.output import CsvOutput, check_output

    if keep and keep_all:
        raise typer.BadParameter("choose one of --keep and --keep-all")
    if str(model) == str(table) == "-":
        raise typer.BadParameter("the model and the table can't both come from standard input")
    check_output(output)
    check_writable(output, model, table)
    saved = read_forest(model)
    reader = ModelReader(saved.forest.schema, saved.forest.classes, named=saved.named)
    with open_table(table, csv.dialect) as rows:
        kept = list(rows.columns) if keep_all else _kept(keep or [], rows)
        ignored = [column for column in reader.match(rows) if column not in kept]
        if ignored:
            echo(f"kfhe: {rows.name}: not used, as the model doesn't know them: {some(ignored)}", err=True)
        predictor = _Predictor(saved, proba=proba, as_text=not str(output).endswith(".parquet"))
        tables = (
            _beside(written, predictor.table(saved.forest.encoded(features), thread_count()))
            for features, written in ahead(reader.batches(rows, kept))
        )
        with (
            open_output(
                output, _joined(rows, kept, predictor.schema), escape_formulas=escape_formulas
            ) as out,
            bar("Rows", rows_of(table), output=output) as advance,
        ):
            if isinstance(out, CsvOutput) and not kept and (lines := predictor.line_maker(out)):
                with closing(reader.plain_rows(rows, lines, thread_count())) as plain:
                    for n_rows, written in plain:
                        out.write_lines(written)
                        advance(n_rows)
            with closing(ahead(tables)) as found:
                for batch in found:
                    out.write(batch)
                    advance(len(batch))
    for note in reader.notes(rows):
        echo(f"kfhe: {note}", err=True)
    if str(output) != "-":
        echo(f"The predictions are in {output}", err=True)


def _kept(keep: list[str], rows: TableFile) -> list[str]:
    """Return the columns to keep; several may be named at once, with commas, unless one is called so."""
    from kfhe.table_files.errors import no_column

    names = [name for names in keep for name in ([names] if names in rows.columns else names.split(","))]
    for name in names:
        if name not in rows.columns:
            raise no_column(rows.name, name, rows.columns)
    return list(dict.fromkeys(names))


def _joined(rows: TableFile, kept: list[str], schema: Any) -> Any:
    """Return the columns of the output, each with a name of its own."""
    import pyarrow as pa

    from kfhe.table_files import TableFileError

    taken = [column for column in kept if column in schema.names]
    if taken:
        raise TableFileError(
            f"{rows.name}: column {taken[0]!r} can't be kept, as one of the predictions has this name; "
            "rename it, or name others by --keep"
        )
    return pa.schema([*rows.kept_schema(kept), *schema]) if kept else schema


def _beside(written: Any, found: Any) -> Any:
    """Return what was found behind the columns that are kept, if there are any."""
    if written is None:
        return found
    for field, column in zip(found.schema, found.columns, strict=True):
        written = written.append_column(field, column)
    return written


class _Predictor:
    """Predicts rows, and puts what it finds into words.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns of the predictions.
    """

    def __init__(self, saved: SavedForest, *, proba: bool, as_text: bool) -> None:
        import pyarrow as pa

        classes = saved.forest.classes.tolist()
        self._saved, self._proba, self._labels = saved, proba, _labels(classes, as_text=as_text)
        scores = [pa.field(f"proba_{label}", pa.float64()) for label in classes * proba]
        self.schema = pa.schema([pa.field("prediction", self._labels.type), *scores])

    def table(self, rows: Any, n_threads: int) -> Any:
        """Return the predictions as a pyarrow table."""
        import pyarrow as pa

        decided, scores = self._saved.predict_rows(rows, n_threads, proba=self._proba)
        columns = [self._labels.take(_as_arrow(decided))]
        columns += [_as_arrow(scores[:, position]) for position in range(len(self.schema) - 1)]
        return pa.table(columns, schema=self.schema)

    def line_maker(self, out: CsvOutput) -> Callable[[NDArray[np.float64]], tuple[int, Any]] | None:
        """Return what predicts some rows, on one thread: how many they are, and lines of a csv.

        None: whether labels have quotes depends on others.
        """
        import numpy as np

        words = out.plain_lines(self._labels.to_pylist())
        if words is None:
            return None
        labels = np.array(words)  # the shorter ones are filled up with zeros

        def lines(rows: NDArray[np.float64]) -> tuple[int, Any]:
            if self._proba:
                return len(rows), out.lines(self.table(rows, 1))
            decided, _ = self._saved.predict_rows(rows, 1, proba=False)
            return len(rows), labels[decided].tobytes().translate(None, b"\0")

        return lines


# pyarrow.array would import pandas, to ask whether it is given a series; that takes longer than small tables.


def _labels(classes: list[Any], *, as_text: bool) -> Any:
    """Return the classes for pyarrow; a csv gets them as Python writes them: True, not true."""
    import numpy as np
    import pyarrow as pa

    if not as_text:
        return pa.array(classes)
    words = [str(label).encode() for label in classes]
    ends = np.cumsum([0, *map(len, words)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(words), pa.py_buffer(ends), pa.py_buffer(b"".join(words)))


def _as_arrow(numbers: NDArray[Any]) -> Any:
    import numpy as np
    import pyarrow as pa

    data = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, data])
