"""A model and a table file: its columns matched by name, and read in the types that it was trained on."""

from __future__ import annotations

from collections.abc import Collection, Generator, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from kfhe.display.text import counted
from kfhe.tables.columns import is_beyond_floats
from kfhe.tables.errors import TableFileError, did_you_mean, no_column
from kfhe.tables.features import LEFT_OUT
from kfhe.tables.labels import without_label
from kfhe.tables.readings import READINGS
from kfhe.tables.texts import converted
from kfhe.tables.types import is_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from polars import DataFrame, Series

    from kfhe.tables.files import TableFile
    from kfhe.tables.schema import Schema

MOST_CLASSES = 20  # that an error names

T = TypeVar("T")


class ModelReader:
    """Reads tables as a model needs them.

    Parameters
    ----------
    schema : Schema
        The model's columns, and which of them hold which categories.
    classes : ndarray
        The classes that the model knows.
    named : bool
        Whether the model was trained on columns with names.

    Attributes
    ----------
    unknown : dict
        For each column of categories, how many values were categories that the model has not seen.
    unlabelled : int
        How many rows were left out, as they have no label.
    """

    def __init__(self, schema: Schema, classes: NDArray[Any], *, named: bool) -> None:
        self.classes = classes
        self.named = named
        self._categories = dict(zip(schema.columns, schema.column_categories, strict=True))
        special = {schema.columns[j]: rule.reading for j, rule in schema.rules}
        self._readings = {column: reading for column, reading in special.items() if reading in READINGS}
        self._others = {column: reading for column, reading in special.items() if reading not in READINGS}
        self._whole: set[str] = set()  # columns of a csv whose categories are too large for floats
        self.unknown: dict[str, int] = {}
        self.unlabelled = 0

    def match(self, table: TableFile, target: str | None = None) -> list[str]:
        """Find the model's columns in a table, and the target; return those that it doesn't need.

        Raises
        ------
        TableFileError
            If columns are missing.
        """
        if target is not None and target not in table.columns:
            raise no_column(table.name, target, table.columns)
        if not self.named:
            self._match_by_place(table, target)
        missing = [column for column in self._needed if column not in table.columns]
        if missing:
            near = did_you_mean(missing[0], [c for c in table.columns if c not in self._categories])
            raise TableFileError(
                f"{table.name}: columns that the model needs are missing: "
                f"{', '.join(map(repr, missing[:10]))}{' ...' if len(missing) > 10 else ''}{near}"
            )
        if table.is_text:
            known = self._categories.items()
            self._whole = {column for column, categories in known if _beyond_floats(categories or ())}
        return [column for column in table.columns if column not in self._categories]

    @property
    def _needed(self) -> list[str]:
        """The model's columns but for those that were left out: what these hold is no matter.

        If that are all, one of them tells how many rows there are.
        """
        left_out = [column for column, reading in self._others.items() if reading == LEFT_OUT]
        if len(left_out) == len(self._categories):
            left_out = left_out[1:]
        return [column for column in self._categories if column not in left_out]

    def _match_by_place(self, table: TableFile, target: str | None) -> None:
        """Name the columns of a model that was trained on an array as the table does."""
        columns = [column for column in table.columns if column != target]
        if len(columns) != len(self._categories):
            besides = "" if target is None else f" besides {target!r}"
            raise TableFileError(
                f"{table.name}: has {counted(len(columns), 'column')}{besides}; the model was "
                f"trained without names on {len(self._categories)}, and takes just these, in their order"
            )
        renamed = dict(zip(self._categories, columns, strict=True))
        self._categories = {renamed[column]: known for column, known in self._categories.items()}
        self._readings = {renamed[column]: reading for column, reading in self._readings.items()}
        self._others = {renamed[column]: reading for column, reading in self._others.items()}

    def batches(self, table: TableFile, kept: list[str]) -> Iterator[tuple[DataFrame, DataFrame]]:
        """Yield the features of the rows, and some columns as they are written, batch by batch.

        The next batch is read while one is worked on.
        """
        row = table.first_row
        for batch, written in ahead(table.kept_batches(kept, *self._names())):
            yield self._features(batch, table.name, row), written
            row += len(batch)

    def labelled_batches(
        self, table: TableFile, target: str, *, drop_unlabelled: bool = False
    ) -> Iterator[tuple[DataFrame, NDArray[np.intp]]]:
        """Yield the features of the rows and their labels, as positions in `classes`, batch by batch.

        Raises
        ------
        TableFileError
            If a label is none of the classes, or a gap, unless rows without a label are to be left out.
        """
        are_text = self.classes.dtype.kind not in "biuf"
        beyond = table.is_text and _beyond_floats(self.classes.tolist())
        called, row = f"{table.name}: target {target!r}", table.first_row
        for batch in self._read(table, *(((), [target]) if are_text or beyond else ([target], ()))):
            features, given = self._features(batch, table.name, row), batch[target]
            values = [_number(text) for text in given] if beyond else given.to_list()
            labels = self._positions(values, called, row, drop_gaps=drop_unlabelled)
            if len(labels) < len(batch):
                self.unlabelled += len(batch) - len(labels)
                features = features.filter(given.is_not_null())
            yield features, labels
            row += len(batch)

    def read(self, table: TableFile, target: str) -> tuple[DataFrame, NDArray[Any]]:
        """Return the features of all rows and their labels."""
        import numpy as np
        import polars as pl

        self.match(table, target)
        features, labels = zip(*self.labelled_batches(table, target), strict=True)
        return pl.concat(features), self.classes[np.concatenate(labels)]

    def notes(self, table: TableFile) -> list[str]:
        """Return what was noticed in the rows, in sentences."""
        notes = list(table.notes)
        if self.unlabelled:
            notes.append(f"{table.name}: {without_label(self.unlabelled)}")
        return notes + [
            f"{table.name}: column {column!r}: values in categories that the model has never seen: {count}; "
            + ("they get the shares of the whole table" if column in self._others else "taken for gaps")
            for column, count in sorted(self.unknown.items(), key=lambda item: table.columns.index(item[0]))
        ]

    def _read(
        self, table: TableFile, numbers: Collection[str] = (), text: Collection[str] = ()
    ) -> Iterator[DataFrame]:
        """Yield batches of the model's columns, and of others."""
        others, words, special = self._names()
        return ahead(table.batches({*others, *numbers}, {*words, *text}, special))

    def _names(self) -> tuple[set[str], set[str], set[str]]:
        """Return the model's columns of numbers, those of text, and those with a rule of how text is read."""
        words = {column for column in self._needed if _are_text(self._categories[column])} | self._whole
        special = {*self._readings}
        return {*self._needed} - words - special, words, special

    def _features(self, batch: DataFrame, name: str, first_row: int) -> DataFrame:
        import polars as pl

        features = batch.select(self._needed)
        for column, reading in self._readings.items():
            if is_text(features.schema[column]):
                where = f"{name}: column {column!r}"
                features = features.with_columns(converted(features[column], reading, where, first_row))
        for column in self._whole:
            whole = _whole_numbers(features[column], f"{name}: column {column!r}", first_row)
            features = features.with_columns(whole)
        self._count_unknown(features)
        left_out = [column for column in self._categories if column not in features.columns]
        features = features.with_columns(pl.lit(None, pl.String).alias(column) for column in left_out)
        return features.select(list(self._categories)) if left_out else features

    def _positions(
        self, labels: list[Any], called: str, first_row: int, *, drop_gaps: bool
    ) -> NDArray[np.intp]:
        import numpy as np

        positions = {label: position for position, label in enumerate(self.classes.tolist())}
        for row, label in enumerate(labels, first_row):
            if label not in positions and not (drop_gaps and label is None):
                what = f"{label!r}, which the model doesn't know"
                if label is None:
                    what = "a gap (kfhe evaluate leaves such rows out with --drop-unlabelled)"
                known = ", ".join(map(str, self.classes[:MOST_CLASSES]))
                raise TableFileError(f"{called}, row {row}: found {what}; accepted are {known}")
        return np.array([positions[label] for label in labels if label is not None], dtype=np.intp)

    def _count_unknown(self, features: DataFrame) -> None:
        for column in self._needed:
            known = self._categories[column]
            if known is None or self._others.get(column) == LEFT_OUT:
                continue
            for value, count in features[column].drop_nulls().value_counts().iter_rows():
                if value not in known and value == value:
                    self.unknown[column] = self.unknown.get(column, 0) + count


def _are_text(categories: dict[Any, int] | None) -> bool:
    """Whether a column of the model holds text; categories can be numbers, too."""
    return categories is not None and (not categories or any(isinstance(value, str) for value in categories))


def _beyond_floats(values: Collection[Hashable]) -> bool:
    """Whether some are whole numbers that a csv's numbers, which are floats, can't tell apart."""
    return any(map(is_beyond_floats, values))


def _whole_numbers(column: Series, called: str, first_row: int) -> Series:
    """Return text as the whole numbers that it stands for; other numbers are gaps, as no category is one."""
    import polars as pl

    found: list[int | None] = []
    for row, text in enumerate(column, first_row):
        try:
            whole = _number(text)
            found.append(whole if isinstance(whole, int | None) else _as_whole(float(whole)))
        except ValueError:
            raise TableFileError(f"{called}, row {row}: found {text!r}; accepted are numbers") from None
    return pl.Series(column.name, found, pl.Int64, strict=False)


def _as_whole(number: float) -> int | None:
    return int(number) if number.is_integer() else None


def _number(text: str | None) -> int | str | None:
    """Return a whole number as it is written; other text, and a gap, as they are."""
    try:
        return text if text is None else int(text)
    except ValueError:
        return text


def ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yield items, and let a thread of its own make the next one in the meantime.

    So the stages of a work are busy at the same time, one item waits between two of them at most, and what
    goes wrong in one is raised where its item would have come.
    """
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = maker.submit(next, items, None)
            yield item
