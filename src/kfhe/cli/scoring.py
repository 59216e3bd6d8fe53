"""Reading tables for a model: columns are matched by name, with the types of training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kfhe.display.text import counted
from kfhe.tables.columns import is_beyond_floats
from kfhe.tables.errors import TableFileError, did_you_mean, no_column
from kfhe.tables.labelled import without_label
from kfhe.tables.readings import CATEGORY, NUMBER, READINGS, WHOLE, converted, is_text

if TYPE_CHECKING:
    import polars as pl

    from kfhe.forest import Forest
    from kfhe.tables.files import TableFile

MOST_CLASSES = 20  # that are listed in an error

T = TypeVar("T")


class ModelReader:
    """Reads the columns of a model from tables.

    Parameters
    ----------
    forest : Forest
        The model.
    named : bool
        Whether the training columns had names.

    Attributes
    ----------
    unknown : Counter
        For each categorical column, the number of values that were unknown categories.
    unlabelled : int
        Number of rows that were ignored because they have no label.
    """

    def __init__(self, forest: Forest, *, named: bool) -> None:
        self.classes, self._schema, self._named = forest.classes, forest.schema, named
        self._names, self._categories = forest.schema.columns, forest.schema.column_categories
        self._readings = {j: rule.reading for j, rule in forest.schema.rules if rule.reading in READINGS}
        self.unknown: Counter[str] = Counter()
        self.unlabelled = 0

    def match(self, table: TableFile, target: str | None = None) -> list[str]:
        """Find the model's columns and the target in a table; return the other columns.

        Raises
        ------
        TableFileError
            Columns are missing.
        """
        if target is not None and target not in table.columns:
            raise no_column(table.name, target, table.columns)
        if not self._named:
            self._match_by_place(table, target)
        missing = [column for column in self._needed if column not in table.columns]
        others = [column for column in table.columns if column not in self._names]
        if missing:
            raise TableFileError(
                f"{table.name}: columns that the model needs are missing: "
                f"{', '.join(map(repr, missing[:10]))}{' ...' if len(missing) > 10 else ''}"
                f"{did_you_mean(missing[0], others)}"
            )
        return others

    def _match_by_place(self, table: TableFile, target: str | None) -> None:
        """Use the table's names for the columns of a model that was trained on an array."""
        columns = [column for column in table.columns if column != target]
        if len(columns) != len(self._names):
            besides = "" if target is None else f" besides {target!r}"
            raise TableFileError(
                f"{table.name}: has {counted(len(columns), 'column')}{besides}; the model was "
                f"trained without names on {len(self._names)}, and needs exactly these, in their order"
            )
        self._names = columns

    @property
    def _needed(self) -> list[str]:
        """The columns to read: those of the model that were not left out in training.

        If all were left out, one of them is read for the number of rows.
        """
        left_out = self._schema.left_out
        return [column for j, column in enumerate(self._names) if j not in left_out] or self._names[:1]

    def batches(
        self, table: TableFile, kept: Collection[str] = ()
    ) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        """Yield features, and some columns unchanged, in batches.

        The next batch is read while one is processed.
        """
        row = table.first_row
        for batch, written in ahead(table.batches(self._kinds(), kept)):
            yield self._features(batch, table.name, row), written
            row += len(batch)

    def labelled_batches(
        self, table: TableFile, target: str, *, drop_unlabelled: bool = False
    ) -> Iterator[tuple[pl.DataFrame, NDArray[np.intp]]]:
        """Yield features and labels, as positions in `classes`, in batches.

        Raises
        ------
        TableFileError
            A label is unknown, or missing and not ignored.
        """
        called, row = f"{table.name}: target {target!r}", table.first_row
        kind = CATEGORY if self.classes.dtype.kind not in "biuf" else _kind_of_numbers(self.classes.tolist())
        for batch, _ in ahead(table.batches({**self._kinds(), target: kind})):
            features, given = self._features(batch, table.name, row), batch[target]
            labels = self._positions(given.to_list(), called, row, drop_gaps=drop_unlabelled)
            if len(labels) < len(batch):
                self.unlabelled += len(batch) - len(labels)
                features = features.filter(given.is_not_null())
            yield features, labels
            row += len(batch)

    def read(self, table: TableFile, target: str) -> tuple[pl.DataFrame, NDArray[Any]]:
        """Return the features of all rows and their labels."""
        import polars as pl

        self.match(table, target)
        features, labels = zip(*self.labelled_batches(table, target), strict=True)
        return pl.concat(features), self.classes[np.concatenate(labels)]

    def notes(self, table: TableFile) -> list[str]:
        """Return notes on the rows that were read, as sentences."""
        notes = list(table.notes)
        if self.unlabelled:
            notes.append(f"{table.name}: {without_label(self.unlabelled)}")
        for column in filter(self.unknown.__getitem__, table.columns):
            become = "treated as missing"
            if self._names.index(column) in self._schema.encodings:
                become = "they get the shares of the whole table"
            notes.append(
                f"{table.name}: column {column!r}: values in categories that the model has never seen: "
                f"{self.unknown[column]}; {become}"
            )
        return notes

    def _kinds(self) -> dict[str, str]:
        """Return the types in which to read the columns."""
        found = {}
        for j, (column, known) in enumerate(zip(self._names, self._categories, strict=True)):
            found[column] = self._readings.get(j, NUMBER)
            if known is not None:
                are_text = not known or any(isinstance(value, str) for value in known)
                found[column] = CATEGORY if are_text else _kind_of_numbers(known)
        return {column: found[column] for column in self._needed}

    def _features(self, batch: pl.DataFrame, name: str, first_row: int) -> pl.DataFrame:
        """Return the model's columns; those that were left out are empty."""
        import polars as pl

        columns = []
        for j, (column, known) in enumerate(zip(self._names, self._categories, strict=True)):
            if j in self._schema.left_out:
                columns.append(pl.Series(column, [None] * len(batch), pl.String))
                continue
            values = batch[column]
            if j in self._readings and is_text(values.dtype):
                values = converted(values, self._readings[j], f"{name}: column {column!r}", first_row)
            if known is not None:
                counts = values.drop_nulls().value_counts().iter_rows()
                self.unknown[column] += sum(n for value, n in counts if value not in known and value == value)
            columns.append(values)
        return pl.DataFrame(columns)

    def _positions(
        self, labels: list[Any], called: str, first_row: int, *, drop_gaps: bool
    ) -> NDArray[np.intp]:
        positions = {label: position for position, label in enumerate(self.classes.tolist())}
        for row, label in enumerate(labels, first_row):
            if label not in positions and not (drop_gaps and label is None):
                what = f"{label!r}, which the model doesn't know"
                if label is None:
                    what = "a gap (kfhe evaluate leaves such rows out with --drop-unlabelled)"
                known = ", ".join(map(str, self.classes[:MOST_CLASSES]))
                raise TableFileError(f"{called}, row {row}: found {what}; accepted are {known}")
        return np.array([positions[label] for label in labels if label is not None], dtype=np.intp)


def _kind_of_numbers(values: Collection[Any]) -> str:
    """Return the type of numbers: float, or integer if floats can't represent them exactly."""
    return WHOLE if any(map(is_beyond_floats, values)) else NUMBER


def ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yield items, while a thread prepares the next one.

    So several stages work at the same time, with at most one item waiting between two of them. Errors are
    raised where the item would have been yielded.
    """
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = maker.submit(next, items, None)
            yield item
