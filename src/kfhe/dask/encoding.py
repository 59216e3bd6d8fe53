"""Target encoding of partitioned rows: encodings are chosen by the counts of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfhe.dask.workers import Parts
from kfhe.tables.binned import category_bins, category_counts
from kfhe.tables.columns import Columns
from kfhe.tables.schema import Encodings, FeatureColumns, Rules
from kfhe.target_encoding import ClassShares, Counts, CrossFitted, Target, encoded_categories

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Folds = NDArray[np.uint8]


class TargetOfParts(NamedTuple):
    """The labels of partitioned rows, for encoding categories.

    Attributes
    ----------
    rows : Parts
        For each row, one below the other: its label, its weight, the number of the first row of its group (or
        its own), and the size of the group.
    classes : ndarray
        The class labels.
    seed : int
        The seed of the folds.
    """

    rows: Parts
    classes: NDArray[Any]
    seed: int


@dataclass
class FeatureRules:
    """How columns become features, by partition.

    Attributes
    ----------
    rules : tuple of (int, Rule)
        How to read some of the columns.
    fitted : Future or dict
        Encodings of categories, by column.
    folds : Parts or None
        The folds of the rows, by partition, if any categories are encoded.
    """

    rules: Rules
    fitted: Any = field(default_factory=dict)
    folds: Parts | None = None

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of `features`, in addition to the columns, by partition."""
        return self.rules, self.fitted, self.folds


class Chosen(NamedTuple):
    """What happens to the categories of each column.

    Attributes
    ----------
    left_out : dict of int to int
        Columns that say nothing, with their numbers of categories.
    encodings : dict of int to TargetEncoding
        Encodings of categories.
    bins : dict of int to dict
        Bins of categories that trees split as sets.
    told_parts : list of str
        The classes whose shares become features.
    """

    left_out: dict[int, int]
    encodings: Encodings
    bins: dict[int, dict[Hashable, int]]
    told_parts: list[str]


class PartCounts(NamedTuple):
    """The number of rows of each category in a part of a table, and by class and fold."""

    rows: dict[int, dict[Hashable, int]]
    target: dict[int, Counts]
    shares: ClassShares | None


# ---------------------------------------------------------------- on the workers


def numbered(labels: Labels, weights: Floats, first_row: int) -> Floats:
    """Return the target for rows without groups."""
    return np.stack([labels, weights, first_row + np.arange(len(labels)), np.ones(len(labels))])


def grouped(labels: Labels, weights: Floats, groups: NDArray[np.int64]) -> Floats:
    """Return the target for rows with groups, given the sizes and first rows of the groups."""
    sizes, first_rows = groups
    return np.stack([labels, weights, first_rows, sizes])


def target_of(rows: Floats, classes: NDArray[Any], seed: int) -> Target:
    """Return the target of some rows."""
    labels, weights, ids, sizes = rows
    return Target(labels.astype(np.int32), classes, weights, ids.astype(np.int64), sizes, seed)


def folds_of(rows: Floats, classes: NDArray[Any], seed: int) -> Folds:
    """Return the folds of some rows."""
    return target_of(rows, classes, seed).folds


def counted(
    columns: Columns,
    categorical: NDArray[np.bool_],
    rows: Floats | None = None,
    classes: NDArray[Any] | None = None,
    seed: int = 0,
) -> PartCounts:
    """Count the rows of each category of the categorical columns, and with a target by class and fold."""
    factorized = {j: columns.factorize(j) for j in np.flatnonzero(categorical).tolist()}
    of_rows = {j: category_counts(each) for j, each in factorized.items()}
    if rows is None or classes is None:
        return PartCounts(of_rows, {}, None)
    target = target_of(rows, classes, seed)
    return PartCounts(of_rows, {j: target.count(each) for j, each in factorized.items()}, target.shares)


def chosen(parts: list[PartCounts], max_bins: int) -> tuple[Chosen, dict[int, CrossFitted]]:
    """Choose what happens to the categories of each column, by the counts of all parts."""
    left_out, fitted, told = dict[int, int](), dict[int, CrossFitted](), list[str]()
    shares = [part.shares for part in parts if part.shares is not None]
    if shares:
        whole = ClassShares(shares[0].classes, np.sum([each.counts for each in shares], axis=0))
        counts = {j: Counts.merged([part.target[j] for part in parts]) for j in parts[0].target}
        left_out, fitted = encoded_categories(counts, whole)
        told = whole.told_parts
    bins = {}
    for j in parts[0].rows:
        if j not in left_out and j not in fitted:
            total: Counter[Hashable] = Counter()
            for part in parts:
                total.update(part.rows[j])
            bins[j] = category_bins(total, max_bins)
    encodings = {j: each.encoding for j, each in fitted.items()}
    return Chosen(left_out, encodings, bins, told), fitted


def features(columns: Columns, rules: Rules, fitted: dict[int, CrossFitted], folds: Folds | None) -> Columns:
    """Return the features for training, with cross-fitted encodings."""
    if not rules:
        return columns
    if folds is None:
        return FeatureColumns(columns, rules)
    encodings = {j: each.encoding for j, each in fitted.items()}
    values = {j: each.values(columns.factorize(j), folds) for j, each in fitted.items()}
    return FeatureColumns(columns, rules, encodings, values)
