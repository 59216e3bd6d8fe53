"""Tables of Dask: read part by part, cut into parts of whole blocks of rows, and binned.

A part of the table is read again for each look at it, so that the table itself is never held: only its bins
are, a byte per value. Their edges are those that one machine would choose: by a sample of rows, by number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from dask.base import is_dask_collection
from dask.delayed import delayed
from numpy.typing import NDArray

from kfhe.columns import Columns, open_columns
from kfhe.dask.spread import Future, OfParts, Spread
from kfhe.dask.workers import Workers
from kfhe.dates import part_ranges
from kfhe.engine.bins import bin_starts, encoded, sampled_rows
from kfhe.engine.draws import ROWS_OF_BLOCK
from kfhe.features import FeatureColumns, Rule, Rules, features_of
from kfhe.table import (
    BinnedTable,
    Schema,
    binned_categories,
    categorical_columns,
    category_bins,
    category_counts,
    infinite_values,
)
from kfhe.tree_settings import TreeSettings

Floats = NDArray[np.float64]
Codes = NDArray[np.uint8]

Starts = dict[int, tuple[Floats, bool]]  # what `bin_starts` gives, for numeric features


def delayed_parts(collection: Any, what: str) -> list[Any]:
    """Return the partitions of a Dask collection, each still to be made."""
    if not is_dask_collection(collection):
        kind = type(collection).__name__
        raise TypeError(f"{what} is a {kind}; accepted are Dask's data frames, series and arrays")
    if getattr(collection, "ndim", 1) == 2 and hasattr(collection, "rechunk"):
        collection = collection.rechunk({1: -1})
    # Optimised, columns of one frame might be partitioned each in another way.
    return np.ravel(collection.to_delayed(optimize_graph=False)).tolist()


@dataclass
class Cut:
    """Where rows come from and where they go: input parts of any size, and parts of whole blocks.

    Attributes
    ----------
    sizes : list of int
        Rows of each input part.
    first_blocks : list of int
        The first block of each part, and how many blocks there are.
    """

    sizes: list[int]
    first_blocks: list[int]

    @classmethod
    def of_sizes(cls, sizes: list[int], n_threads: int) -> Cut:
        """Cut rows into a part for each thread; if several waited for one, idle ones would have them sent."""
        n_blocks = -(-sum(sizes) // ROWS_OF_BLOCK)
        n_parts = max(1, min(n_blocks, n_threads))
        return cls(sizes, [n_blocks * p // n_parts for p in range(n_parts + 1)])

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return sum(self.sizes)

    @property
    def n_parts(self) -> int:
        """How many parts they are cut into."""
        return len(self.first_blocks) - 1

    def parts(self, workers: Workers, given: Sequence[Future]) -> Spread:
        """Put what has a value per row, given by input parts, together anew."""
        starts = np.append(0, np.cumsum(self.sizes))
        made = []
        spans_of_blocks = zip(self.first_blocks[:-1], self.first_blocks[1:], workers.homes(), strict=True)
        for first, last, home in spans_of_blocks:
            begin, end = first * ROWS_OF_BLOCK, min(last * ROWS_OF_BLOCK, int(starts[-1]))
            some = [i for i in range(len(self.sizes)) if starts[i] < end and starts[i + 1] > begin]
            spans = [
                (max(begin - int(starts[i]), 0), min(end, int(starts[i + 1])) - int(starts[i])) for i in some
            ]
            made.append(workers.run(cut_together, [given[i] for i in some], spans, at=home))
        return Spread(made)


@dataclass
class SpreadTable:
    """A table whose rows are spread, not read yet.

    Attributes
    ----------
    workers : Workers
        The workers.
    tables : list
        The partitions, each still to be made.
    present : list of Future or None
        Which of their rows are there: those of positive weight. None: all.
    cut : Cut
        How they are cut into parts.
    names : list of str
        Names of the columns.
    token : str
        Names the data: equal for equal data.
    """

    workers: Workers
    tables: list[Any]
    present: Sequence[Future] | None
    cut: Cut
    names: list[str]
    token: str

    def each(self, function: Callable[..., Any], *arguments: Any) -> list[Future]:
        """Read each partition, and run a function on its columns."""
        lazy, present = delayed(_read, pure=False), self.present
        tasks = []
        for i, table in enumerate(self.tables):
            own = [each.values[i] if isinstance(each, OfParts) else each for each in arguments]
            tasks.append(lazy(table, present and present[i], function, *own))
        futures: list[Future] = self.workers.client.compute(tasks)
        return futures

    def binned(self, settings: TreeSettings) -> BinnedTable:
        """Read the table, and bin its columns."""
        workers = self.workers
        schema, categorical = self._schema(settings)
        first_rows = np.append(0, np.cumsum(self.cut.sizes)).tolist()
        samples = self.each(sampled, schema.rules, categorical, OfParts(first_rows[:-1]), first_rows[-1])
        starts = workers.result(workers.run(chosen_starts, samples, settings.max_bins))
        tables, facts = self._encoded(schema, starts)
        again = self._corrected(schema, starts, facts, settings.max_bins)
        if again:
            starts |= again
            tables, facts = self._encoded(schema, starts)
        n_bins = [
            len(starts[k][0]) + 1 if bins is None else max(bins.values(), default=-1) + 2
            for k, bins in enumerate(schema.categories)
        ]
        return BinnedTable(
            schema,
            self.cut.parts(workers, [workers.run(codes_of, table) for table in tables]),  # type: ignore[arg-type]
            np.array(n_bins, dtype=np.int32),
            categorical.astype(np.uint8),
            np.min([fact.low for fact in facts], axis=0),
            np.max([fact.high for fact in facts], axis=0),
        )

    def _schema(self, settings: TreeSettings) -> tuple[Schema, NDArray[np.bool_]]:
        """Find out how the columns are to be read, and which features are categorical."""
        workers = self.workers
        surveys = workers.result(self.each(surveyed, settings.categorical_features))
        of_columns = np.any([survey.categorical for survey in surveys if survey.n_rows], axis=0)
        rules = _merged_rules(surveys, of_columns)
        categorical = of_columns[[j for j, _ in features_of(len(self.names), rules)]]
        counts = workers.result(self.each(counted, of_columns))
        categories: list[dict[Hashable, int] | None] = [None] * len(self.names)
        for j in np.flatnonzero(of_columns).tolist():
            total: Counter[Hashable] = Counter()
            for part in counts:
                total.update(part[j])
            categories[j] = category_bins(total, settings.max_bins)
        return Schema.of_columns(self.names, categories, rules), categorical

    def _encoded(self, schema: Schema, starts: Starts) -> tuple[list[Future], list[Facts]]:
        """Bin each partition; return the bins, and what is known of them."""
        tables = self.each(binned, schema, starts)
        return tables, self.workers.result([self.workers.run(facts_of, table) for table in tables])

    def _corrected(self, schema: Schema, starts: Starts, facts: list[Facts], max_bins: int) -> Starts:
        """Choose bins by all values where the sample had few distinct ones, but the column has others."""
        infinite = np.any([fact.infinite for fact in facts], axis=0)
        if infinite.any():
            raise infinite_values(schema.names[int(infinite.argmax())])
        odd = np.sum([fact.odd for fact in facts], axis=0)
        some = tuple(k for k, (_, exact) in starts.items() if exact and odd[k])
        if not some:
            return {}
        values = self.each(all_values, schema.rules, some)
        found: Starts = self.workers.result(self.workers.run(chosen_starts, values, max_bins))
        return found


def _merged_rules(surveys: Sequence[Survey], categorical: NDArray[np.bool_]) -> Rules:
    """Return the rules by which columns are read: of dates, all parts that vary are features."""
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


# ---------------------------------------------------------------- what workers do


def _read(table: Any, present: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function on the columns of a partition, without the rows that weigh nothing."""
    if present is not None and not present.all():
        table = table[present]
    return function(open_columns(table), *arguments)


def cut_together(given: list[NDArray[Any]], spans: list[tuple[int, int]]) -> NDArray[Any]:
    """Put pieces together; rows are along the last axis."""
    pieces = [each[..., begin:end] for each, (begin, end) in zip(given, spans, strict=True)]
    return np.ascontiguousarray(np.concatenate(pieces, axis=-1))


class Survey(NamedTuple):
    """What a part of a table tells of its columns."""

    n_rows: int
    categorical: NDArray[np.bool_]
    dates: dict[int, dict[str, tuple[int, int]]]  # of columns with dates, the range of each part


def surveyed(columns: Columns, categorical_features: Any) -> Survey:
    """Return which columns are categorical, and which hold dates."""
    categorical = categorical_columns(columns, categorical_features)
    dates = {j: columns.dates(j) for j in np.flatnonzero(~categorical).tolist()}
    ranges = {j: part_ranges(found) for j, found in dates.items() if found is not None}
    return Survey(columns.n_rows, categorical, ranges)


def features(columns: Columns, rules: Rules) -> Columns:
    """Return what trees split on."""
    return FeatureColumns(columns, rules) if rules else columns


def counted(columns: Columns, categorical: NDArray[np.bool_]) -> dict[int, dict[Hashable, int]]:
    """Return how many rows each category of each categorical column has."""
    return {j: category_counts(columns.factorize(j)) for j in np.flatnonzero(categorical).tolist()}


def sampled(
    columns: Columns, rules: Rules, categorical: NDArray[np.bool_], first_row: int, n_rows: int
) -> dict[int, Floats]:
    """Return the values of numeric columns by which bins are chosen, as far as their rows are here."""
    columns = features(columns, rules)
    found = {}
    for k in np.flatnonzero(~categorical).tolist():
        rows = sampled_rows(n_rows, k) - first_row
        found[k] = columns.numbers(k)[rows[(rows >= 0) & (rows < columns.n_rows)]]
    return found


def all_values(columns: Columns, rules: Rules, some: tuple[int, ...]) -> dict[int, Floats]:
    """Return all values of some columns."""
    columns = features(columns, rules)
    return {k: columns.numbers(k) for k in some}


def chosen_starts(samples: list[dict[int, Floats]], max_bins: int) -> Starts:
    """Return the first value of each bin, for each numeric column, and whether each bin is just one value."""
    return {k: bin_starts(np.concatenate([part[k] for part in samples]), max_bins) for k in samples[0]}


class Facts(NamedTuple):
    """What is known of the bins of a part, for each feature."""

    low: Floats
    high: Floats
    odd: NDArray[np.int64]  # values that are not the first of their bin
    infinite: NDArray[np.bool_]


def binned(columns: Columns, schema: Schema, starts: Starts) -> tuple[Codes, Facts]:
    """Return the bin of each value, and what is known of the bins."""
    columns = features(columns, schema.rules)
    n = columns.n_columns
    codes = np.empty((n, columns.n_rows), dtype=np.uint8)
    facts = Facts(
        np.full((n, 256), np.inf),
        np.full((n, 256), -np.inf),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=bool),
    )
    for k, bins in enumerate(schema.categories):
        if bins is not None:
            codes[k] = binned_categories(columns.factorize(k), bins)
            continue
        numbers = columns.numbers(k)
        facts.infinite[k] = np.isinf(numbers).any()
        codes[k], facts.low[k], facts.high[k], facts.odd[k] = encoded(numbers, starts[k][0])
    return codes, facts


def codes_of(table: tuple[Codes, Facts]) -> Codes:
    """Return the bins."""
    return table[0]


def facts_of(table: tuple[Codes, Facts]) -> Facts:
    """Return what is known of the bins."""
    return table[1]
