"""A saved model and a table file: columns matched by name, scores batch by batch."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from kfhe.table_files.errors import TableFileError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kfhe.saving.model_file import SavedForest
    from kfhe.table_files import TableFile


class Scorer:
    """Reads a table as a model needs it, and gives the scores of its rows.

    Parameters
    ----------
    model : SavedForest
        The model.

    Attributes
    ----------
    classes : ndarray
        The classes that the model knows.
    unknown : dict
        For each column of categories, how many values were categories that the model has not seen.
    """

    def __init__(self, model: SavedForest) -> None:
        self._model = model
        self.classes = model.forest.classes
        schema = model.forest.schema
        self._categories = dict(zip(schema.names, schema.categories, strict=True))
        self.unknown: dict[str, int] = {}

    def match(self, table: TableFile) -> list[str]:
        """Find the model's columns in a table; return those that it doesn't need.

        Raises
        ------
        TableFileError
            If columns are missing.
        """
        if not self._model.named:  # trained on an array: the columns count by their places
            if len(table.columns) != len(self._categories):
                raise TableFileError(
                    f"{table.name}: has {len(table.columns)} columns; the model was trained without names on "
                    f"{len(self._categories)}, and takes just these, in their order"
                )
            self._categories = dict(zip(table.columns, self._categories.values(), strict=True))
            return []
        missing = [column for column in self._categories if column not in table.columns]
        if missing:
            near = did_you_mean(missing[0], [c for c in table.columns if c not in self._categories])
            raise TableFileError(
                f"{table.name}: columns that the model needs are missing: "
                f"{', '.join(map(repr, missing[:10]))}{' ...' if len(missing) > 10 else ''}{near}"
            )
        return [column for column in table.columns if column not in self._categories]

    def scores(self, table: TableFile) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of the rows, batch by batch."""
        for batch in self.batches(table):
            yield self.score(batch)

    def batches(
        self, table: TableFile, numbers: Collection[str] = (), text: Collection[str] = ()
    ) -> Iterator[Any]:
        """Yield batches of the model's columns, and of others; the next is read while one is worked on."""
        words = [column for column, known in self._categories.items() if _are_text(known)]
        others = [column for column in self._categories if column not in words]
        return _read_ahead(table.batches({*others, *numbers}, {*words, *text}))

    def score(self, batch: Any) -> NDArray[np.float64]:
        """Return the scores of the rows of a batch."""
        features = batch.select(list(self._categories))
        self._count_unknown(features)
        from kfhe.engine.threads import thread_count

        return self._model.forest.scores(features, thread_count())

    def notes(self, name: str) -> list[str]:
        """Return what was noticed in the rows, in sentences."""
        return [
            f"{name}: column {column!r}: values in categories that the model has never seen: {count}; "
            "taken for gaps"
            for column, count in self.unknown.items()
        ]

    def _count_unknown(self, features: Any) -> None:
        from pyarrow import compute

        for column, known in self._categories.items():
            if known is None:
                continue
            for pair in compute.value_counts(features.column(column)).to_pylist():
                if pair["values"] is not None and pair["values"] not in known:
                    self.unknown[column] = self.unknown.get(column, 0) + pair["counts"]


def _are_text(categories: dict[Any, int] | None) -> bool:
    """Whether a column of the model holds text; categories can be numbers, too."""
    return categories is not None and (not categories or any(isinstance(value, str) for value in categories))


def _read_ahead(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches, and read the next one in the meantime."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, batches, None)
            yield batch
