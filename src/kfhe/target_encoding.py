"""Target encoding: in columns of many categories, each category becomes its class shares.

A split that sorts categories by the labels of its rows, and is judged by the same labels, always looks
excellent if each category has only a few rows. So a category is measured on other rows than those it is
applied to: the training rows are divided into folds, and a row gets the class shares of its category in the
other folds. The shares are filtered by the gain N / (N + noise), where N is the number of rows of the
category: the fewer rows, the closer they stay to the shares of the whole table.

The noise is estimated by maximum likelihood from the counts of the column. If the likelihood is not clearly
higher than for categories that say nothing, the column is left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.draws import folds

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]
Factorized = tuple[NDArray[Any], list[Hashable]]  # positions in a list of values; -1 is missing

FEW = 12  # up to this number of categories, trees always split sets
FOLDS = 5
NOISES = np.array([1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0])
LEAST_EVIDENCE = 3.0  # minimum log likelihood ratio of a column that matters
MOST_SHARES = 10  # maximum number of features that a column becomes
UNIT = 2.0**20  # weighted counts are multiples of 1 / UNIT, so sums are exact in any order


@dataclass(frozen=True, eq=False)
class TargetEncoding:
    """The encoding of a column of categories as class shares.

    Attributes
    ----------
    categories : dict
        Position of each category in `shares`.
    shares : ndarray of shape (n_categories + 1, n_features)
        Shares of some classes in each category. The last row is for all other categories.
    """

    categories: dict[Hashable, int]
    shares: Floats

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TargetEncoding):
            return NotImplemented
        return self.categories == other.categories and np.array_equal(self.shares, other.shares)

    __hash__ = None  # type: ignore[assignment]

    def encoded(self, factorized: Factorized) -> Floats:
        """Return the shares for each row; NaN where the category is missing."""
        shares = np.vstack([self.shares, np.full((1, self.shares.shape[1]), np.nan)])
        encoded: Floats = shares[self.positions(factorized, len(self.shares) - 1, len(self.shares))]
        return encoded

    def positions(self, factorized: Factorized, other: int, gap: int) -> NDArray[np.intp]:
        """Return the position of each row's category, with one for unknown and one for missing values."""
        codes, values = factorized
        known = [self.categories.get(plain(value), other) for value in values]
        return np.array([*known, gap], dtype=np.intp)[codes]  # the code -1 is the last one


@dataclass(frozen=True)
class ClassShares:
    """The classes and their weights.

    Attributes
    ----------
    classes : ndarray
        The class labels.
    counts : ndarray of shape (n_classes,)
        The weight of each class, in units.
    """

    classes: NDArray[Any]
    counts: Floats

    @cached_property
    def told(self) -> NDArray[np.intp]:
        """The classes whose shares become features: the second of two, the most frequent of many."""
        if len(self.classes) == 2:
            return np.array([1])
        return np.sort(np.argsort(-self.counts, kind="stable")[:MOST_SHARES])

    @property
    def told_parts(self) -> list[str]:
        """The names of these classes."""
        return [str(label) for label in self.classes[self.told].tolist()]

    @property
    def prior(self) -> Floats:
        """The class shares of the table."""
        shares: Floats = self.counts / self.counts.sum()
        return shares


@dataclass(frozen=True)
class Target:
    """The labels of some training rows, for encoding categories.

    Attributes
    ----------
    labels : int32 array of shape (n_rows,)
        The rows' classes.
    classes : ndarray
        The class labels.
    weights : ndarray of shape (n_rows,)
        The weight of each row.
    ids : int64 array of shape (n_rows,)
        Rows with the same number belong together: they are in the same fold, and in the same category they
        count as one row.
    sizes : ndarray of shape (n_rows,) or None
        The number of rows in each row's group, in the whole table; None: each row is alone.
    seed : int
        The seed of the folds.
    """

    labels: Labels
    classes: NDArray[Any]
    weights: Floats
    ids: NDArray[np.int64]
    sizes: NDArray[Any] | None
    seed: int

    @cached_property
    def folds(self) -> NDArray[np.uint8]:
        """The fold of each row."""
        return folds(self.ids, self.seed, FOLDS)

    @cached_property
    def shares(self) -> ClassShares:
        """The classes, and their weights; a group counts as one row."""
        weights = self.weights if self.sizes is None else self.weights / self.sizes
        return ClassShares(self.classes, _sums(self.labels, np.rint(weights * UNIT), len(self.classes)))

    def count(self, factorized: Factorized) -> Counts:
        """Count the rows of each category."""
        codes, values = in_order(factorized)
        present = codes >= 0
        pairs = codes.astype(np.int64) * len(self.classes) + self.labels
        cells, units = pairs * FOLDS + self.folds, np.rint(self.weights * UNIT)
        several = np.zeros_like(present) if self.sizes is None else present & (self.sizes > 1)
        alone = present & ~several
        counts = Counts.summed(values, len(self.classes), cells[alone], units[alone])
        if not several.any():
            return counts
        return counts._replace(together=Together(self.ids[several], cells[several], units[several]))


def _sums(places: NDArray[Any], values: Floats, n_places: int) -> Floats:
    """Return the sum of the values at each position."""
    sums: Floats = np.bincount(places, values, n_places).astype(np.float64, copy=False)
    return sums


class ClassCounts(NamedTuple):
    """The number of rows, in units, for each category and class that occur together."""

    categories: NDArray[np.int64]
    classes: NDArray[np.int64]
    counts: Floats


class Together(NamedTuple):
    """Rows that belong together with others, which may be on other machines."""

    ids: NDArray[np.int64]
    cells: NDArray[np.int64]
    units: Floats


class Counts(NamedTuple):
    """The number of rows, in units, for each category, class and fold that occur together.

    Units are integers, so the counts of parts of a table add up exactly to those of the whole.
    """

    values: list[Hashable]  # the categories, sorted
    n_classes: int
    cells: NDArray[np.int64]  # category, class and fold as one number, the fold counting fastest
    units: Floats
    together: Together | None = None  # rows not yet counted, because a group counts as one row

    @classmethod
    def summed(
        cls, values: list[Hashable], n_classes: int, cells: NDArray[np.int64], units: Floats
    ) -> Counts:
        """Add up the counts of equal cells."""
        size = len(values) * n_classes * FOLDS
        if size <= len(cells):  # few enough for an array of all cells
            sums = _sums(cells, units, size)
            found = np.flatnonzero(sums)
            return cls(values, n_classes, found, sums[found])
        found, positions = np.unique(cells, return_inverse=True)
        sums = _sums(positions.reshape(-1), units, len(found))
        return cls(values, n_classes, found[sums > 0], sums[sums > 0])

    @classmethod
    def merged(cls, parts: Sequence[Counts]) -> Counts:
        """Return the sum of the counts of the parts of a table."""
        values = sorted({value for part in parts for value in part.values}, key=by_value)
        numbers = dict(zip(values, range(len(values)), strict=True))
        width = parts[0].n_classes * FOLDS
        cells, together = [], []
        for part in parts:
            renamed = np.array([numbers[value] for value in part.values], dtype=np.int64)
            cells.append(renamed[part.cells // width] * width + part.cells % width)
            if part.together is not None:
                ids, old, units = part.together
                together.append(Together(ids, renamed[old // width] * width + old % width, units))
        units = np.concatenate([part.units for part in parts])
        counts = cls.summed(values, parts[0].n_classes, np.concatenate(cells), units)
        if not together:
            return counts
        return counts._replace(together=Together(*map(np.concatenate, zip(*together, strict=True))))

    def settled(self) -> Counts:
        """Add the rows that belong together: those of one group and category count as one row."""
        if self.together is None:
            return self
        ids, cells, units = self.together
        width = self.n_classes * FOLDS
        _, pair, n_rows = np.unique(
            ids * len(self.values) + cells // width, return_inverse=True, return_counts=True
        )
        found, first, place = np.unique(
            ids * (len(self.values) * width) + cells, return_index=True, return_inverse=True
        )
        shared = _sums(place.reshape(-1), units, len(found)) // n_rows[pair.reshape(-1)[first]]
        return self.summed(
            self.values,
            self.n_classes,
            np.concatenate([self.cells, cells[first]]),
            np.concatenate([self.units, shared]),
        )

    def by_class(self) -> ClassCounts:
        """Return the counts summed over the folds."""
        pairs = self.cells // FOLDS
        first = np.flatnonzero(
            np.diff(pairs, prepend=-1)
        )  # cells are sorted, so those of a pair are neighbours
        counts = np.add.reduceat(self.units, first)
        return ClassCounts(*np.divmod(pairs[first], self.n_classes), counts)

    def by_fold(self, told: NDArray[np.intp]) -> Floats:
        """Return the counts by category, class (those with features, then all others) and fold."""
        place = np.full(self.n_classes, len(told))
        place[told] = np.arange(len(told))
        categories, classes, folds = np.unravel_index(self.cells, (len(self.values), self.n_classes, FOLDS))
        shape = len(self.values), len(told) + 1, FOLDS
        cells = np.ravel_multi_index((categories, place[classes], folds), shape)
        return _sums(cells, self.units, int(np.prod(shape))).reshape(shape)


class Way(Enum):
    """What happens to categories that are not encoded."""

    SETS = "sets"  # trees split them
    LEFT_OUT = "left out"  # they are not informative


@dataclass(frozen=True)
class CrossFitted:
    """An encoding for new rows, and the cross-fitted values of the training rows.

    Attributes
    ----------
    encoding : TargetEncoding
        For new rows.
    others : ndarray of shape (n_categories, n_folds, n_features)
        For each category and fold, the shares among the rows of the other folds.
    """

    encoding: TargetEncoding
    others: Floats

    def values(self, factorized: Factorized, folds: NDArray[np.uint8]) -> Floats:
        """Return the values of some training rows, by their folds."""
        positions = self.encoding.positions(factorized, -1, -1)
        present = positions >= 0
        honest = np.full((len(positions), self.others.shape[2]), np.nan)
        honest[present] = self.others[positions[present], folds[present]]
        return honest


def noise_of(cells: ClassCounts, n_categories: int, prior: Floats) -> float:
    """Return how noisy the categories are as a measurement of the classes; infinite: they say nothing.

    The shares in a category are assumed to be drawn around those of the table; the higher the noise, the
    closer. The counts then have a Dirichlet-multinomial distribution.

    Parameters
    ----------
    cells : ClassCounts
        The counts.
    n_categories : int
        Number of categories.
    prior : ndarray of shape (n_classes,)
        The class shares of the table.

    Returns
    -------
    float
        One of `NOISES`, or infinity.
    """
    from scipy.special import gammaln

    counts, shares = cells.counts / UNIT, prior[cells.classes]
    totals = _sums(cells.categories, counts, n_categories)
    nothing = (counts * np.log(shares)).sum()
    evidence = [
        (gammaln(counts + noise * shares) - gammaln(noise * shares)).sum()
        + (gammaln(noise) - gammaln(totals + noise)).sum()
        - nothing
        for noise in NOISES
    ]
    best = int(np.argmax(evidence))
    return float(NOISES[best]) if evidence[best] >= LEAST_EVIDENCE else np.inf


def filtered(counts: Floats, prior: Floats, noise: float) -> Floats:
    """Return filtered and rounded class shares, from the counts along an axis."""
    total = counts.sum(axis=1, keepdims=True)
    shares = (counts / UNIT + noise * prior[:, None]) / (total / UNIT + noise)
    return shares.astype(np.float32).astype(np.float64)


def tables_of(counts: Floats, prior: Floats, noise: float) -> tuple[Floats, Floats]:
    """Return the shares by category, and the cross-fitted shares by category and fold.

    Parameters
    ----------
    counts : ndarray of shape (n_categories, n_told + 1, n_folds)
        Counts in units; the last class stands for all that have no feature.
    prior : ndarray of shape (n_told + 1,)
        The shares in the table.
    noise : float
        The noise.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Of shapes (n_categories + 1, n_told) and (n_categories, n_folds, n_told).
    """
    total = counts.sum(axis=2, keepdims=True)
    alone = total.sum(axis=1, keepdims=True) <= UNIT  # a single row can't be judged by others
    all_rows = filtered(np.where(alone, 0.0, total), prior, noise)[:, :-1, 0]
    others = filtered(total - counts, prior, noise)[:, :-1].transpose(0, 2, 1)
    unknown = filtered(np.zeros((1, len(prior), 1)), prior, noise)[:, :-1, 0]
    return np.vstack([all_rows, unknown]), np.ascontiguousarray(others)


def cross_fitted(counts: Counts, shares: ClassShares) -> CrossFitted | Way:
    """Encode a column of categories by cross-fitting, or return what else happens to it.

    Parameters
    ----------
    counts : Counts
        The counts of the column.
    shares : ClassShares
        The classes in the table.
    """
    n_categories, counts = len(counts.values), counts.settled()
    if n_categories <= FEW:
        return Way.SETS
    cells = counts.by_class()
    noise = noise_of(cells, n_categories, shares.prior)
    if np.isinf(noise):
        return Way.LEFT_OUT
    known, others = tables_of(counts.by_fold(shares.told), prior_of(shares.counts, shares.told), noise)
    numbers = dict(zip(counts.values, range(n_categories), strict=True))
    return CrossFitted(TargetEncoding(numbers, known), others)


def encoded_categories(
    columns: dict[int, Counts], shares: ClassShares
) -> tuple[dict[int, int], dict[int, CrossFitted]]:
    """Return the columns that say nothing, and the encodings of others, by the number of the column.

    For columns that say nothing, the value is the number of categories.
    """
    found = {j: cross_fitted(counts, shares) for j, counts in columns.items()}
    left_out = {j: len(columns[j].values) for j, each in found.items() if each is Way.LEFT_OUT}
    return left_out, {j: each for j, each in found.items() if isinstance(each, CrossFitted)}


def prior_of(class_counts: Floats, told: NDArray[np.intp]) -> Floats:
    """Return the shares of the classes that have features, and of all others together."""
    shares = class_counts / class_counts.sum()
    return np.append(shares[told], max(0.0, 1 - shares[told].sum()))


def in_order(factorized: Factorized) -> Factorized:
    """Return the categories that occur, sorted by value, with their codes."""
    codes, values = factorized
    texts = [plain(value) for value in values]
    present = np.bincount(codes[codes >= 0], minlength=len(texts)) > 0
    order = sorted(np.flatnonzero(present).tolist(), key=lambda k: by_value(texts[k]))
    renamed = np.full(len(texts) + 1, -1)
    renamed[order] = np.arange(len(order))
    return renamed[codes], [texts[k] for k in order]


def by_value(category: Any) -> tuple[str, Any]:
    """Return the sort key of a category: first its type, then its value."""
    return type(category).__name__, category


def plain(value: Any) -> Any:
    """Convert equal categories of any container to one value: 1.0 and True to 1."""
    if isinstance(value, np.generic):
        value = value.item()
    return (
        int(value) if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()) else value
    )
