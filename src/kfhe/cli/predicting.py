"""A table predicted by a saved model, from file to file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kfhe.cli.bars import bar, rows_of
from kfhe.cli.echo import echo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kfhe.saving.model_file import SavedForest
    from kfhe.tables.files import Dialect, TableFile
    from kfhe.tables.output import CsvOutput


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
    from kfhe.engine.threads import thread_count
    from kfhe.tables.errors import some
    from kfhe.tables.files import Dialect, open_output, open_table
    from kfhe.tables.output import CsvOutput

    saved = read_forest(model).deciding(decision)
    reader = ModelReader(saved.forest.schema, saved.forest.classes, named=saved.named)
    with open_table(table, dialect or Dialect()) as rows:
        kept = list(rows.columns) if keep is None else _kept(keep, rows)
        ignored = [column for column in reader.match(rows) if column not in kept]
        if ignored:
            echo(f"kfhe: {rows.name}: not used, as the model doesn't know them: {some(ignored)}", err=True)
        predictor = _Predictor(saved, proba=proba, as_text=not str(output).endswith(".parquet"))
        tables = (
            _beside(written, predictor.table(saved.forest.encoded(features), thread_count()))
            for features, written in ahead(reader.batches(rows, kept))
        )
        with (
            open_output(output, _joined(rows, kept, predictor), escape_formulas=escape_formulas) as out,
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


def _joined(rows: TableFile, kept: list[str], predictor: _Predictor) -> Any:
    """Return the columns of the output, each with a name of its own; names do if they are all in a csv."""
    from kfhe.tables.files import TableFileError

    taken = [column for column in kept if column in predictor.names]
    if taken:
        raise TableFileError(
            f"{rows.name}: column {taken[0]!r} can't be kept, as one of the predictions has this name; "
            "rename it, or name others by --keep"
        )
    if not kept:
        return predictor.names if predictor.as_text else predictor.schema
    import pyarrow as pa

    return pa.schema([*rows.kept_schema(kept), *predictor.schema])


def _beside(written: Any, found: Any) -> Any:
    """Return what was found behind the columns that are kept, if there are any."""
    if written is None:
        return found
    for field, column in zip(found.schema, found.columns, strict=True):
        written = written.append_column(field, column)
    return written


class _Predictor:
    """Predicts rows, and puts what it finds into words.

    pyarrow, which is slow to start, is loaded once it is needed.

    Attributes
    ----------
    names : list of str
        The columns of the predictions.
    as_text : bool
        Whether labels are words, as Python writes them.
    """

    def __init__(self, saved: SavedForest, *, proba: bool, as_text: bool) -> None:
        self._saved, self._proba, self.as_text = saved, proba, as_text
        self._classes = saved.forest.classes.tolist()
        self._unlikely: list[int] = []  # of each piece of rows, as threads take them
        self.names = ["prediction", *(f"proba_{label}" for label in self._classes * proba)]

    @cached_property
    def schema(self) -> Any:
        """The columns with their types: a pyarrow schema."""
        import pyarrow as pa

        types = [self._labels.type, *[pa.float64()] * (len(self.names) - 1)]
        return pa.schema(list(zip(self.names, types, strict=True)))

    @cached_property
    def _labels(self) -> Any:
        return _labels(self._classes, as_text=self.as_text)

    def table(self, rows: Any, n_threads: int) -> Any:
        """Return the predictions as a pyarrow table."""
        import numpy as np
        import pyarrow as pa

        decided, scores = self._saved.predict_rows(rows, n_threads, proba=self._proba)
        if self._proba:
            taken = scores[np.arange(len(scores)), decided]
            self._unlikely.append(int(np.count_nonzero(scores.max(axis=1) > taken)))
        columns = [self._labels.take(_as_arrow(decided))]
        columns += [_as_arrow(scores[:, position]) for position in range(len(self.names) - 1)]
        return pa.table(columns, schema=self.schema)

    @property
    def n_unlikely(self) -> int:
        """How many rows got another class than the likeliest one; 0 if probabilities weren't asked for."""
        return sum(self._unlikely)

    def line_maker(self, out: CsvOutput) -> Callable[[NDArray[np.float64]], tuple[int, Any]] | None:
        """Return what predicts some rows, on one thread: how many they are, and lines of a csv.

        None: whether labels have quotes depends on others.
        """
        import numpy as np

        words = out.plain_lines([str(label) for label in self._classes])
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
