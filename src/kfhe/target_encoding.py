"""Target encoding: a category of many stands for the shares of the classes in it.

A split that orders categories by the labels of its rows, and is judged by the same labels, always looks
excellent where each category has a few rows only. So what a category says is measured on other rows than
those it is applied to: the training rows are dealt into folds, and a row gets the shares among the rows of
its category in the other folds. They are filtered like everything else, by the gain N / (N + noise), N being
the rows of the category: the fewer they are, the closer the shares stay to those of the whole table.

How noisy categories are as a measurement, the column tells by itself: the noise is the one under which its
counts are likeliest. If they are no likelier than with categories that say nothing, the column is left out.
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
Factorized = tuple[NDArray[Any], list[Hashable]]  # positions in a list of values, -1 for a gap

FEW = 12  # categories that trees split in sets, whatever they say
FOLDS = 5
NOISES = np.array([1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0])
LEAST_EVIDENCE = 3.0  # logarithm of how much likelier the counts have to be if categories matter
MOST_SHARES = 10  # features that a column becomes at most
UNIT = 2.0**20  # counts of weighted rows are of multiples of 1 / UNIT: their sums are exact in any order


@dataclass(frozen=True, eq=False)
class TargetEncoding:
    """How a column of categories becomes shares of classes.

    Attributes
    ----------
    categories : dict
        The position of each category in `shares`.
    shares : ndarray of shape (n_categories + 1, n_features)
        Shares of some of the classes in each category; in the last row those for all other categories.
    """

    categories: dict[Hashable, int]
    shares: Floats

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TargetEncoding):
            return NotImplemented
        return self.categories == other.categories and np.array_equal(self.shares, other.shares)

    __hash__ = None  # type: ignore[assignment]

    def encoded(self, factorized: Factorized) -> Floats:
        """Return the shares for each row, NaN where the category is missing."""
        shares = np.vstack([self.shares, np.full((1, self.shares.shape[1]), np.nan)])
        encoded: Floats = shares[self.positions(factorized, len(self.shares) - 1, len(self.shares))]
        return encoded

    def positions(self, factorized: Factorized, other: int, gap: int) -> NDArray[np.intp]:
        """Return the position of each row's category, or what stands for an unknown one and for none."""
        codes, values = factorized
        known = [self.categories.get(plain(value), other) for value in values]
        return np.array([*known, gap], dtype=np.intp)[codes]  # the code -1 picks the last one


@dataclass(frozen=True)
class ClassShares:
    """The classes, and how many training rows each counts for.

    Attributes
    ----------
    classes : ndarray
        The class labels.
    counts : ndarray of shape (n_classes,)
        How many rows each class counts for, in units.
    """

    classes: NDArray[Any]
    counts: Floats

    @cached_property
    def told(self) -> NDArray[np.intp]:
        """The classes whose shares become features: of two the second, of many the most frequent."""
        if len(self.classes) == 2:
            return np.array([1])
        return np.sort(np.argsort(-self.counts, kind="stable")[:MOST_SHARES])

    @property
    def told_parts(self) -> list[str]:
        """What these classes are called."""
        return [str(label) for label in self.classes[self.told].tolist()]

    @property
    def prior(self) -> Floats:
        """The shares of the classes in the table."""
        shares: Floats = self.counts / self.counts.sum()
        return shares


@dataclass(frozen=True)
class Target:
    """What categories are encoded by: the labels of the training rows, or of some of them.

    Attributes
    ----------
    labels : int32 array of shape (n_rows,)
        The rows' classes.
    classes : ndarray
        The class labels.
    weights : ndarray of shape (n_rows,)
        How many rows each row counts for.
    ids : int64 array of shape (n_rows,)
        Rows of one number belong together: they are in the same fold, and count for one row where they have
        the same category.
    sizes : ndarray of shape (n_rows,) or None
        How many rows belong together with each row, itself included, in the whole table; None: each is alone.
    seed : int
        What the folds depend on.
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
        """The classes, and what the rows of each count for: those that belong together, for one."""
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
    """Return the sum of the values at each place."""
    sums: Floats = np.bincount(places, values, n_places).astype(np.float64, copy=False)
    return sums


class Cells(NamedTuple):
    """How many rows there are, in units, of each class in each category that has any."""

    categories: NDArray[np.int64]
    classes: NDArray[np.int64]
    counts: Floats


class Together(NamedTuple):
    """Rows that belong together with others, which may be elsewhere, one by one."""

    ids: NDArray[np.int64]
    cells: NDArray[np.int64]
    units: Floats


class Counts(NamedTuple):
    """How many rows there are, in units, of each category, class and fold that has any.

    Units are whole numbers: counts of parts of a table add up to those of the whole, to the bit.
    """

    values: list[Hashable]  # the categories, sorted
    n_classes: int
    cells: NDArray[np.int64]  # numbers of category, class and fold as one, the last one counting fastest
    units: Floats
    together: Together | None = None  # rows that are not counted yet, as those of a group count for one

    @classmethod
    def summed(
        cls, values: list[Hashable], n_classes: int, cells: NDArray[np.int64], units: Floats
    ) -> Counts:
        """Add up what is in the same cell."""
        size = len(values) * n_classes * FOLDS
        if size <= len(cells):  # no need to sort
            sums = _sums(cells, units, size)
            found = np.flatnonzero(sums)
            return cls(values, n_classes, found, sums[found])
        found, positions = np.unique(cells, return_inverse=True)
        sums = _sums(positions.reshape(-1), units, len(found))
        return cls(values, n_classes, found[sums > 0], sums[sums > 0])

    @classmethod
    def merged(cls, parts: Sequence[Counts]) -> Counts:
        """Return the counts of a table by those of its parts."""
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
        """Count the rows that belong together, too: those of one group and category are one row's worth."""
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

    def by_class(self) -> Cells:
        """Return the counts of all folds together."""
        pairs = self.cells // FOLDS
        first = np.flatnonzero(
            np.diff(pairs, prepend=-1)
        )  # cells are in order: those of a pair are neighbours
        counts = np.add.reduceat(self.units, first)
        return Cells(*np.divmod(pairs[first], self.n_classes), counts)

    def by_fold(self, told: NDArray[np.intp]) -> Floats:
        """Return the counts by category, class that features tell of (then: all others) and fold."""
        place = np.full(self.n_classes, len(told))
        place[told] = np.arange(len(told))
        categories, classes, folds = np.unravel_index(self.cells, (len(self.values), self.n_classes, FOLDS))
        shape = len(self.values), len(told) + 1, FOLDS
        cells = np.ravel_multi_index((categories, place[classes], folds), shape)
        return _sums(cells, self.units, int(np.prod(shape))).reshape(shape)


class Way(Enum):
    """What is done with categories that are not encoded."""

    SETS = "sets"  # trees split them
    LEFT_OUT = "left out"  # they say nothing


@dataclass(frozen=True)
class CrossFitted:
    """An encoding, and what the training rows get instead.

    Attributes
    ----------
    encoding : TargetEncoding
        For rows to come.
    others : ndarray of shape (n_categories, n_folds, n_features)
        For each category what its rows of each fold get: the shares among rows of the other folds.
    """

    encoding: TargetEncoding
    others: Floats

    def values(self, factorized: Factorized, folds: NDArray[np.uint8]) -> Floats:
        """Return what training rows get, which may be some of them, by the fold of each."""
        positions = self.encoding.positions(factorized, -1, -1)
        present = positions >= 0
        honest = np.full((len(positions), self.others.shape[2]), np.nan)
        honest[present] = self.others[positions[present], folds[present]]
        return honest


def noise_of(cells: Cells, n_categories: int, prior: Floats) -> float:
    """Return how noisy the categories are as a measurement of the classes; infinite: they say nothing.

    The shares in a category are taken to be drawn around those of the table, the closer the higher the noise;
    the likelihood of the counts is then that of a Dirichlet-multinomial distribution.

    Parameters
    ----------
    cells : Cells
        The counts.
    n_categories : int
        How many categories there are.
    prior : ndarray of shape (n_classes,)
        The shares of the classes in the table.

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
    """Return the shares of the classes by their counts along an axis: filtered, and short to write down."""
    total = counts.sum(axis=1, keepdims=True)
    shares = (counts / UNIT + noise * prior[:, None]) / (total / UNIT + noise)
    return shares.astype(np.float32).astype(np.float64)


def tables_of(counts: Floats, prior: Floats, noise: float) -> tuple[Floats, Floats]:
    """Return the shares by category, and those that the rows of each fold get: of the other folds.

    Parameters
    ----------
    counts : ndarray of shape (n_categories, n_told + 1, n_folds)
        Counts in units, the last class standing for all that no feature tells of.
    prior : ndarray of shape (n_told + 1,)
        The shares in the table.
    noise : float
        What `noise_of` found.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Of shapes (n_categories + 1, n_told) and (n_categories, n_folds, n_told).
    """
    total = counts.sum(axis=2, keepdims=True)
    alone = total.sum(axis=1, keepdims=True) <= UNIT  # what one row says nobody else can have judged
    all_rows = filtered(np.where(alone, 0.0, total), prior, noise)[:, :-1, 0]
    others = filtered(total - counts, prior, noise)[:, :-1].transpose(0, 2, 1)
    unknown = filtered(np.zeros((1, len(prior), 1)), prior, noise)[:, :-1, 0]
    return np.vstack([all_rows, unknown]), np.ascontiguousarray(others)


def cross_fitted(counts: Counts, shares: ClassShares) -> CrossFitted | Way:
    """Encode a column of categories, honestly, or say what else to do with it.

    Parameters
    ----------
    counts : Counts
        The column's counts.
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
    """Return the columns that say nothing, and how others are encoded, each told by the column's number.

    Of those that say nothing it is said how many categories they have.
    """
    found = {j: cross_fitted(counts, shares) for j, counts in columns.items()}
    left_out = {j: len(columns[j].values) for j, each in found.items() if each is Way.LEFT_OUT}
    return left_out, {j: each for j, each in found.items() if isinstance(each, CrossFitted)}


def prior_of(class_counts: Floats, told: NDArray[np.intp]) -> Floats:
    """Return the shares of the classes that features tell of, and of all others together."""
    shares = class_counts / class_counts.sum()
    return np.append(shares[told], max(0.0, 1 - shares[told].sum()))


def in_order(factorized: Factorized) -> Factorized:
    """Return the same with the categories sorted by value, those only that a row has."""
    codes, values = factorized
    texts = [plain(value) for value in values]
    present = np.bincount(codes[codes >= 0], minlength=len(texts)) > 0
    order = sorted(np.flatnonzero(present).tolist(), key=lambda k: by_value(texts[k]))
    renamed = np.full(len(texts) + 1, -1)
    renamed[order] = np.arange(len(order))
    return renamed[codes], [texts[k] for k in order]


def by_value(category: Any) -> tuple[str, Any]:
    """Return what categories are sorted by: those of one type by value."""
    return type(category).__name__, category


def plain(value: Any) -> Any:
    """Write equal categories alike, whichever container they come from: 1 for 1.0 and for True."""
    if isinstance(value, np.generic):
        value = value.item()
    return (
        int(value) if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()) else value
    )
