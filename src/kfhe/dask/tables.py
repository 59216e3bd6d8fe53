"""Dask tables: read partition by partition, binned, and placed on workers in whole blocks of rows.

Each pass reads the parts of the table again, so that only the bins are held, one byte per value. Bins are
those that one machine would choose, from the same sample of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate, pairwise
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import delayed
from numpy.typing import NDArray

from kfhe.dask.encoding import Chosen, FeatureRules, Folds, TargetOfParts, chosen, counted, features, folds_of
from kfhe.dask.workers import Parts, Workers
from kfhe.engine.bins import bin_starts, encoded, sampled_rows
from kfhe.tables.binned import BinnedTable, binned_categories, categorical_columns
from kfhe.tables.columns import Columns, open_columns
from kfhe.tables.dates import part_ranges
from kfhe.tables.schema import Rule, Rules, Schema, infinite_values, with_encodings
from kfhe.target_encoding import CrossFitted
from kfhe.tree_settings import TreeSettings

Floats = NDArray[np.float64]
Codes = NDArray[np.uint8]

Starts = dict[int, tuple[Floats, bool]]  # result of `bin_starts`, for numeric features


def delayed_parts(collection: Any, what: str) -> list[Any]:
    """Return the lazy partitions of a Dask collection."""
    if not is_dask_collection(collection):
        kind = type(collection).__name__
        raise TypeError(f"{what} is a {kind}; accepted are Dask's data frames, series and arrays")
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "rechunk"):
        collection = collection.rechunk({1: -1})
    # After optimisation, columns of one frame might be partitioned differently.
    return np.ravel(collection.to_delayed(optimize_graph=False)).tolist()


def recut(workers: Workers, given: Parts, before: list[int], after: list[int], homes: Sequence[str]) -> Parts:
    """Concatenate pieces that begin at some rows into others; the last number is the total."""
    made = Parts()
    for (begin, end), home in zip(pairwise(after), homes, strict=True):
        some = [i for i in range(len(given)) if before[i] < end and before[i + 1] > begin]
        spans = [(max(begin - before[i], 0), min(end, before[i + 1]) - before[i]) for i in some]
        made.append(workers.run(cut_together, [given[i] for i in some], spans, at=home))
    return made


class Bins:
    """A binned table: its schema here, and the bins of each partition on the workers.

    Parameters
    ----------
    table : BinnedTable
        The table, without rows.
    made : Parts
        The bins and facts of each partition, for their first use.
    make : callable
        Computes them again.
    """

    def __init__(self, table: BinnedTable, made: Parts, make: Callable[[], Parts]) -> None:
        self.table, self._made, self._make = table, made, make

    def codes(self, workers: Workers) -> Parts:
        """Return the bins of each partition. They are not kept, because the workers have them."""
        made, self._made = self._made or self._make(), Parts()
        return workers.each(getitem, made, 0)


@dataclass
class PartedTable:
    """A partitioned table, not read yet.

    Attributes
    ----------
    workers : Workers
        The workers.
    tables : list
        The lazy partitions.
    present : Parts or None
        The rows of positive weight, by partition. None: all.
    sizes : list of int
        Their numbers.
    names : list of str
        Names of the columns.
    surveyed : dict
        Facts about the columns that are known already, by the parameter `categorical_features`.
    """

    workers: Workers
    tables: list[Any]
    present: Parts | None
    sizes: list[int]
    names: list[str]
    surveyed: dict[str, list[Survey]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return sum(self.sizes)

    @property
    def first_rows(self) -> Parts:
        """The first row of each partition, and the total."""
        return Parts(accumulate(self.sizes, initial=0))

    def each(self, function: Callable[..., Any], *arguments: Any) -> Parts:
        """Read each partition, and run a function on its columns."""
        lazy, present = delayed(_read, pure=False), self.present
        tasks = []
        for i, table in enumerate(self.tables):
            own = [each[i] if isinstance(each, Parts) else each for each in arguments]
            tasks.append(lazy(table, present and present[i], function, *own))
        with self.workers.watched():
            return Parts(self.workers.client.compute(tasks))

    @cached_property
    def is_text(self) -> NDArray[np.bool_]:
        """Which columns have strings or categories."""
        categorical: NDArray[np.bool_] = np.any(
            [survey.categorical for survey in self._surveys("from_dtype")], axis=0
        )
        return categorical

    def binned(self, settings: TreeSettings, target: TargetOfParts | None = None) -> Bins:
        """Bin the table; with a target, columns of many categories are encoded."""
        workers = self.workers
        schema, reading, left_out = self._schema(settings, target)
        categorical = np.array([bins is not None for bins in schema.categories], dtype=bool)
        samples = self.each(
            sampled, *reading.arguments, categorical, Parts(self.first_rows[:-1]), self.n_rows
        )
        starts = workers.result(workers.run(chosen_starts, list(samples), settings.max_bins))
        made, found = self._binned(schema, reading, starts)
        again = self._corrected(schema, reading, starts, found, settings.max_bins)
        if again:
            starts |= again
            made, found = self._binned(schema, reading, starts)
        n_bins = [
            len(starts[k][0]) + 1 if bins is None else max(bins.values(), default=-1) + 2
            for k, bins in enumerate(schema.categories)
        ]
        table = BinnedTable(
            schema,
            np.empty((len(n_bins), 0), dtype=np.uint8),
            np.array(n_bins, dtype=np.int32),
            categorical.astype(np.uint8),
            np.min([facts.low for facts in found], axis=0),
            np.max([facts.high for facts in found], axis=0),
            left_out,
        )
        return Bins(table, made, partial(self.each, binned, *reading.arguments, schema.categories, starts))

    def _surveys(self, categorical_features: Any) -> list[Survey]:
        """Return the facts about the columns from the parts that have rows."""
        name = repr(np.asarray(categorical_features).tolist())
        if name not in self.surveyed:
            found = self.workers.result(self.each(surveyed, categorical_features))
            self.surveyed[name] = [survey for survey in found if survey.n_rows]
        return self.surveyed[name]

    def _schema(
        self, settings: TreeSettings, target: TargetOfParts | None
    ) -> tuple[Schema, FeatureRules, dict[int, int]]:
        """Return how to read the columns, and which ones say nothing."""
        workers = self.workers
        surveys = self._surveys(settings.categorical_features)
        categorical = np.any([survey.categorical for survey in surveys], axis=0)
        counts = self.each(counted, categorical, *(target or ()))
        found = workers.run(chosen, list(counts), settings.max_bins)
        choice: Chosen = workers.result(workers.run(getitem, found, 0))
        reading = FeatureRules(
            with_encodings(
                _merged_rules(surveys, categorical),
                [*choice.left_out],
                [*choice.encodings],
                choice.told_parts,
            )
        )
        if target is not None and choice.encodings:
            reading.fitted = workers.run(getitem, found, 1)
            reading.folds = workers.each(folds_of, *target)
        categories = [choice.bins.get(j) for j in range(len(self.names))]
        schema = Schema.of_columns(self.names, categories, reading.rules, choice.encodings)
        return schema, reading, choice.left_out

    def _binned(self, schema: Schema, reading: FeatureRules, starts: Starts) -> tuple[Parts, list[Facts]]:
        """Bin each partition; return the bins, and facts about them."""
        made = self.each(binned, *reading.arguments, schema.categories, starts)
        return made, self.workers.result(self.workers.each(getitem, made, 1))

    def _corrected(
        self, schema: Schema, reading: FeatureRules, starts: Starts, facts: list[Facts], max_bins: int
    ) -> Starts:
        """Choose bins by all values where the sample had few distinct ones, but the column has others."""
        infinite = np.any([fact.infinite for fact in facts], axis=0)
        if infinite.any():
            raise infinite_values(schema.names[int(infinite.argmax())])
        odd = np.sum([fact.odd for fact in facts], axis=0)
        some = tuple(k for k, (_, exact) in starts.items() if exact and odd[k])
        if not some:
            return {}
        values = self.each(all_values, *reading.arguments, some)
        found: Starts = self.workers.result(self.workers.run(chosen_starts, list(values), max_bins))
        return found


def _merged_rules(surveys: Sequence[Survey], categorical: NDArray[np.bool_]) -> Rules:
    """Return the rules for reading the columns; all parts of dates that vary are features."""
    dates: dict[int, dict[str, tuple[int, int]]] = {}
    for survey in surveys:
        for j, ranges in survey.dates.items():
            known = dates.setdefault(j, {})
            for name, (low, high) in ranges.items():
                before = known.get(name, (low, high))
                known[name] = min(low, before[0]), max(high, before[1])
    return tuple(
        (j, Rule("date", tuple(name for name, (low, high) in dates[j].items() if high > low)))
        for j in sorted(dates)
        if not categorical[j]
    )


# ---------------------------------------------------------------- on the workers


def _read(table: Any, present: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function on the columns of a partition, without rows of weight 0."""
    if present is not None and not present.all():
        table = table[present]
    return function(open_columns(table), *arguments)


def cut_together(given: list[NDArray[Any]], spans: list[tuple[int, int]]) -> NDArray[Any]:
    """Concatenate pieces; rows are on the last axis."""
    pieces = [each[..., begin:end] for each, (begin, end) in zip(given, spans, strict=True)]
    return np.ascontiguousarray(np.concatenate(pieces, axis=-1))


class Survey(NamedTuple):
    """Facts about the columns of a part of a table."""

    n_rows: int
    categorical: NDArray[np.bool_]
    dates: dict[int, dict[str, tuple[int, int]]]  # the range of each part of a date, by column


def surveyed(columns: Columns, categorical_features: Any) -> Survey:
    """Return which columns are categorical, and which are dates."""
    categorical = categorical_columns(columns, categorical_features)
    dates = {j: columns.dates(j) for j in np.flatnonzero(~categorical).tolist()}
    ranges = {j: part_ranges(found) for j, found in dates.items() if found is not None}
    return Survey(columns.n_rows, categorical, ranges)


def sampled(
    columns: Columns,
    rules: Rules,
    fitted: dict[int, CrossFitted],
    folds: Folds | None,
    categorical: NDArray[np.bool_],
    first_row: int,
    n_rows: int,
) -> dict[int, Floats]:
    """Return the values of numeric features in the sample by which bins are chosen."""
    columns = features(columns, rules, fitted, folds)
    found = {}
    for k in np.flatnonzero(~categorical).tolist():
        rows = sampled_rows(n_rows, k) - first_row
        found[k] = columns.numbers(k)[rows[(rows >= 0) & (rows < columns.n_rows)]]
    return found


def all_values(
    columns: Columns,
    rules: Rules,
    fitted: dict[int, CrossFitted],
    folds: Folds | None,
    some: tuple[int, ...],
) -> dict[int, Floats]:
    """Return all values of some features."""
    columns = features(columns, rules, fitted, folds)
    return {k: columns.numbers(k) for k in some}


def chosen_starts(samples: list[dict[int, Floats]], max_bins: int) -> Starts:
    """Return the first value of each bin of numeric columns, and whether each bin has a single value."""
    return {k: bin_starts(np.concatenate([part[k] for part in samples]), max_bins) for k in samples[0]}


class Facts(NamedTuple):
    """Facts about the bins of a part, by feature."""

    low: Floats
    high: Floats
    odd: NDArray[np.int64]  # values that are not the first of their bin
    infinite: NDArray[np.bool_]


def binned(
    columns: Columns,
    rules: Rules,
    fitted: dict[int, CrossFitted],
    folds: Folds | None,
    categories: list[dict[Hashable, int] | None],
    starts: Starts,
) -> tuple[Codes, Facts]:
    """Return the bin of each value, and facts about the bins."""
    columns = features(columns, rules, fitted, folds)
    n = columns.n_columns
    codes = np.empty((n, columns.n_rows), dtype=np.uint8)
    facts = Facts(
        np.full((n, 256), np.inf),
        np.full((n, 256), -np.inf),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=bool),
    )
    for k, bins in enumerate(categories):
        if bins is not None:
            codes[k] = binned_categories(columns.factorize(k), bins)
            continue
        numbers = columns.numbers(k)
        facts.infinite[k] = np.isinf(numbers).any()
        codes[k], facts.low[k], facts.high[k], facts.odd[k] = encoded(numbers, starts[k][0])
    return codes, facts
