"""Applying decisions: to labels in memory, or to table files, where everything else is unchanged."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kfhe.display.text import counted, needed, some
from kfhe.files import whole_file
from kfhe.review.cells import label_text, row_digests
from kfhe.review.decisions import CHANGE, DROP, UNSURE, Decision, DecisionError, write_decisions
from kfhe.review.records import Records
from kfhe.tables.columns import is_missing
from kfhe.tables.errors import TableFileError, did_you_mean, no_column
from kfhe.tables.files import AS_FOUND, Dialect, open_table

if TYPE_CHECKING:
    from polars import DataFrame


@dataclass(frozen=True)
class Cleaned:
    """Labels after decisions: arrays with one value per row, in the order of the rows.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The labels after all changes.
    kept : ndarray of bool of shape (n,)
        The rows that are kept: all but the dropped ones.
    judged : ndarray of bool of shape (n,)
        The rows whose label was confirmed or changed.
    changes : list of Decision
        The decisions that changed or dropped something, by row.
    source : ndarray of int of shape (n,)
        For each row, a row that had its new label originally.
    """

    labels: NDArray[Any]
    kept: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    changes: list[Decision]
    source: NDArray[np.intp]


def apply_decisions(
    decisions: Sequence[Decision],
    X: Any,
    y: Any,
    *,
    first_row: int = 0,
    row_numbers: NDArray[np.intp] | None = None,
) -> Cleaned:
    """Apply decisions to labels; everything else is unchanged.

    Parameters
    ----------
    decisions : sequence of Decision
        The decisions, for example from `read_decisions`.
    X : array or data frame of shape (n, n_features)
        The audited rows, without their labels.
    y : array-like of shape (n,)
        Their labels.
    first_row : int, default=0
        Number of the first row in the decisions: 2 for a csv file, where the header is row 1; 1 for a parquet
        file; 0 if the page was made from a table in memory.
    row_numbers : ndarray of int of shape (n,), optional
        Number of each row in the decisions, if some rows of the table are missing here.

    Returns
    -------
    Cleaned
        The labels, and the rows that are kept.

    Raises
    ------
    DecisionError
        A decision does not match its row or label, or its new label is not one of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.review import Decision, apply_decisions, row_digests
    >>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array(["a", "b", "b"])
    >>> digests = row_digests(X, np.arange(3))
    >>> decisions = [
    ...     Decision(0, digests[0], "y", "a", "change", "b"), Decision(2, digests[2], "y", "b", "drop")
    ... ]
    >>> cleaned = apply_decisions(decisions, X, y)
    >>> cleaned.labels[cleaned.kept].tolist()
    ['b', 'b']
    """
    given = np.asarray(y)
    texts = ["" if is_missing(label) else label_text(label) for label in given.tolist()]
    numbers = np.arange(len(given)) + first_row if row_numbers is None else row_numbers
    places = dict(zip(numbers.tolist(), range(len(given)), strict=True))
    positions = np.array([places.get(decision.row, -1) for decision in decisions], dtype=np.intp)
    _check_rows(decisions, positions, X, texts)
    home = {text: position for position, text in reversed(list(enumerate(texts))) if text}
    source = np.arange(len(given))
    kept, judged = np.ones(len(given), dtype=bool), np.zeros(len(given), dtype=bool)
    for position, decision in zip(positions, decisions, strict=True):
        kept[position] = decision.decision != DROP
        judged[position] = decision.decision not in (DROP, UNSURE)
        if decision.decision == CHANGE:
            if decision.decided not in home:
                raise DecisionError(
                    f"row {decision.row} is to become {decision.decided!r}, which is not one of the classes"
                    f"{did_you_mean(decision.decided, list(home)) or f'; there are {some(sorted(home))}'}"
                )
            source[position] = home[decision.decided]
    changes = [decision for decision in decisions if decision.decision in (CHANGE, DROP)]
    changes.sort(key=lambda decision: decision.row)
    return Cleaned(given[source], kept, judged, changes, source)


def _check_rows(
    decisions: Sequence[Decision], positions: NDArray[np.intp], X: Any, texts: Sequence[str]
) -> None:
    """Raise unless the row and the label of each decision match."""
    beyond = [decision.row for decision, position in zip(decisions, positions, strict=True) if position < 0]
    if beyond:
        raise DecisionError(
            f"there is no row {some([str(row) for row in beyond])}: the table has "
            f"{counted(len(texts), 'row')}, fewer than when it was reviewed, or it is another one"
        )
    digests = row_digests(X, positions)
    others = [
        decision.row for decision, digest in zip(decisions, digests, strict=True) if decision.digest != digest
    ]
    if others:
        raise DecisionError(
            f"row {some([str(row) for row in others])}: {'does' if len(others) == 1 else 'do'} not match the "
            f"decisions ({len(others)} of {counted(len(decisions), 'decision')}): values have changed, "
            "or this is another table"
        )
    for decision, position in zip(decisions, positions, strict=True):
        if decision.given != texts[position]:
            raise DecisionError(
                f"row {decision.row}: the label {decision.given!r} was reviewed, but it is "
                f"{texts[position]!r} now; were these decisions applied before?"
            )


def clean_file(
    decisions: Sequence[Decision],
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    log: str | os.PathLike[str] | None = None,
    dialect: Dialect = AS_FOUND,
) -> Cleaned:
    """Write a copy of a table file with decisions applied.

    Everything else in a csv stays the same byte for byte, and in a parquet file value by value. An Excel file
    is written as a csv of the reviewed sheet. Files are written completely or not at all.

    Parameters
    ----------
    decisions : sequence of Decision
        The decisions.
    source : path
        The reviewed .csv, .csv.gz, .parquet or Excel file. It is never overwritten.
    output : path
        The file to write, of the same format, or a csv for an Excel file; a csv may be gzipped or not.
    log : path, optional
        A csv file for the decisions that changed something, in the format of `write_decisions`.
    dialect : Dialect
        How a csv is written; default: detected.

    Returns
    -------
    Cleaned
        The labels, and the rows that are kept.

    Raises
    ------
    DecisionError
        A decision does not match the table.
    TableFileError
        A file can't be read, or has an unsupported format.
    """
    if not decisions:
        raise DecisionError("there are no decisions to apply")
    source, output = Path(source), Path(output)
    for path in (output, *([] if log is None else [Path(log)])):
        if path.exists() and source.exists() and path.samefile(source):
            raise TableFileError(f"{path}: is the table itself; choose another file")
    target = decisions[0].target
    with open_table(source, dialect) as file:
        is_csv, is_parquet, first_row = file.is_text, file.dialect.decimal is None, file.first_row
        if target not in file.columns:
            raise no_column(str(source), target, file.columns)
        column = file.columns.index(target)
        table = file.read([target] if is_csv else [])
    _check_kind(source, output, is_parquet=is_parquet)
    labels = np.array(table[target].to_list(), dtype=object)
    try:
        cleaned = apply_decisions(decisions, table.drop(target), labels, first_row=first_row)
    except DecisionError as error:
        raise DecisionError(f"{source}: {error} (nothing was written)") from None
    with whole_file(output) as written:
        if is_parquet:
            _write_cleaned_parquet(source, written, target, cleaned)
        else:
            content = _as_csv(table.with_columns(table[target][cleaned.source]).filter(cleaned.kept))
            if is_csv:
                content = _cleaned_csv(source, file.dialect, column, len(table), cleaned)
            written.write(gzip.compress(content, mtime=0) if str(output).endswith(".gz") else content)
        if log is not None:
            write_decisions(log, cleaned.changes)
    return cleaned


def _check_kind(source: Path, output: Path, *, is_parquet: bool) -> None:
    endings = (".parquet",) if is_parquet else (".csv", ".csv.gz")
    if output.suffix not in ((".parquet",) if is_parquet else (".gz", ".csv", ".tsv", ".txt")):
        raise TableFileError(f"{output}: must end in {' or '.join(endings)}, as the table is in {source}")


def _cleaned_csv(source: Path, dialect: Dialect, column: int, n_rows: int, cleaned: Cleaned) -> bytes:
    raw = source.read_bytes()
    if raw.startswith(b"\x1f\x8b"):
        raw = gzip.decompress(raw)
    records = Records(raw, str(dialect.sep), dialect.encoding, str(source))
    if len(records) != n_rows + 1:
        raise TableFileError(
            f"{source}: has {counted(n_rows, 'row')}, but {counted(len(records) - 1, 'record')} can be told "
            "apart in it; fix its quotes"
        )
    # The header is row 1, and record 0
    changed = {(each.row - 1, column): each.decided for each in cleaned.changes if each.decision == CHANGE}
    return records.changed(changed, {each.row - 1 for each in cleaned.changes if each.decision == DROP})


def _as_csv(rows: DataFrame) -> bytes:
    from kfhe.tables.output import csv_texts

    return "".join(csv_texts(rows.columns, [rows])).encode()


def _write_cleaned_parquet(source: Path, written: Any, target: str, cleaned: Cleaned) -> None:
    """Write with pyarrow, which keeps all types and pandas' index."""
    with needed(f"{source}: to change it needs pyarrow", "review"):
        from pyarrow import parquet
    rows = parquet.ParquetFile(source).read()
    j = rows.schema.get_field_index(target)
    labels = rows.column(j).take(cleaned.source)
    parquet.write_table(rows.set_column(j, rows.schema.field(j), labels).filter(cleaned.kept), written)
