"""A table predicted by a saved model, from file to file."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kfhe.cli.bars import bar, rows_of
from kfhe.cli.echo import echo

if TYPE_CHECKING:
    from polars import DataFrame

    from kfhe.saving.model_file import SavedForest
    from kfhe.tables.files import Dialect, TableFile


def predict_table(
    model: Path,
    table: Path,
    output: Path,
    *,
    dialect: Dialect | None = None,
    proba: bool = False,
    decision: str | float | None = None,
    escape_formulas: bool = False,
    keep: Collection[str] | None = (),
) -> None:
    """Write the class of each row to a file that is known to be writable; what `kfhe predict` says of it all.

    Parameters
    ----------
    model, table, output : path
        The files; ``-`` for standard input or output.
    dialect : Dialect or None
        How a csv is written; None: as its first rows look.
    proba : bool
        Whether to write the probability of each class as well.
    decision : str, float or None
        Which class is predicted, as in `RobustKFHEClassifier`; None: as the model was trained.
    escape_formulas : bool
        Whether labels that a spreadsheet would take for formulas get an apostrophe in front.
    keep : collection of str or None
        Columns of the table to write as well; None: all of them.
    """
    # Threads that wait must not keep a core busy that others work on. Both look as they are loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from kfhe.cli.models import read_forest
    from kfhe.cli.scoring import ModelReader, ahead
    from kfhe.display.text import counted
    from kfhe.tables.errors import some
    from kfhe.tables.files import Dialect, open_table, write_batches

    saved = read_forest(model).deciding(decision)
    reader = ModelReader(saved.forest.schema, saved.forest.classes, named=saved.named)
    with open_table(table, dialect or Dialect()) as rows:
        kept = list(rows.columns) if keep is None else _kept(keep, rows)
        ignored = [column for column in reader.match(rows) if column not in kept]
        if ignored:
            echo(f"kfhe: {rows.name}: not used, as the model doesn't know them: {some(ignored)}", err=True)
        predictor = _Predictor(saved, proba=proba, as_text=not str(output).endswith(".parquet"))
        schema = rows.kept_schema(kept) | predictor.schema
        _check_names(rows, kept, [*predictor.schema])
        with bar("Rows", rows_of(table), output=output) as advance:

            def predicted() -> Iterator[DataFrame]:
                for features, written in reader.batches(rows, kept):
                    found = predictor.rows(saved.forest.encoded(features))
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


def _kept(keep: Collection[str], rows: TableFile) -> list[str]:
    """Return the columns to keep."""
    from kfhe.tables.labelled import named_columns

    return named_columns(keep, rows.columns, rows.name)


def _check_names(rows: TableFile, kept: list[str], names: list[str]) -> None:
    """Raise if a column that is kept is called like one of the predictions."""
    from kfhe.tables.files import TableFileError

    taken = [column for column in kept if column in names]
    if taken:
        raise TableFileError(
            f"{rows.name}: column {taken[0]!r} can't be kept, as one of the predictions has this name; "
            "rename it, or name others by --keep"
        )


class _Predictor:
    """Predicts rows, and puts what it finds into words.

    Attributes
    ----------
    schema : dict of str to DataType
        The columns of the predictions.
    n_unlikely : int
        How many rows got another class than the likeliest one; 0 if probabilities weren't asked for.
    """

    def __init__(self, saved: SavedForest, *, proba: bool, as_text: bool) -> None:
        import polars as pl

        self._saved, self._proba = saved, proba
        classes = saved.forest.classes.tolist()
        # A csv gets them as Python writes them: True, not true
        self._labels = pl.Series("prediction", [str(label) for label in classes] if as_text else classes)
        self.schema = {"prediction": self._labels.dtype}
        self.schema |= {f"proba_{label}": pl.Float64() for label in classes * proba}
        self.n_unlikely = 0

    def rows(self, rows: Any) -> DataFrame:
        """Return the predictions of rows as numbers."""
        import numpy as np
        import polars as pl

        from kfhe.engine.threads import thread_count

        decided, scores = self._saved.predict_rows(rows, thread_count(), proba=self._proba)
        if self._proba:
            taken = scores[np.arange(len(scores)), decided]
            self.n_unlikely += int(np.count_nonzero(scores.max(axis=1) > taken))
        columns = [self._labels.gather(decided), *(pl.Series(score) for score in scores.T)]
        return pl.DataFrame(columns, schema=list(self.schema))
