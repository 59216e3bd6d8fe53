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

from collections.abc import Hashable
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
MANY_ROWS = 25  # in a category on average, from which on sets are safe, and find out more
FOLDS = 5
NOISES = np.array([1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0])
LEAST_EVIDENCE = 3.0  # logarithm of how much likelier the counts have to be if categories matter
MOST_SHARES = 10  # features that a column becomes at most
UNIT = 2.0**20  # counts of weighted rows are of multiples of 1 / UNIT: their sums are exact in any order


@dataclass(frozen=True)
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

    def encoded(self, factorized: Factorized) -> Floats:
        """Return the shares for each row, NaN where the category is missing."""
        codes, values = factorized
        gap = np.full((1, self.shares.shape[1]), np.nan)
        known, other = self.categories, len(self.shares) - 1
        positions = np.array(
            [known.get(plain(value), other) for value in values] + [other + 1], dtype=np.intp
        )
        encoded: Floats = np.vstack([self.shares, gap])[positions[codes]]  # the code -1 picks the last one
        return encoded


@dataclass(frozen=True)
class Target:
    """What categories are encoded by: the labels of the training rows.

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
    seed : int
        What the folds depend on.
    """

    labels: Labels
    classes: NDArray[Any]
    weights: Floats
    ids: NDArray[np.int64]
    seed: int

    @cached_property
    def units(self) -> Floats:
        """What the rows count for, as whole numbers."""
        return np.rint(self.weights * UNIT)

    @cached_property
    def folds(self) -> NDArray[np.uint8]:
        """The fold of each row."""
        return folds(self.ids, self.seed, FOLDS)

    @cached_property
    def _together(self) -> bool:
        """Whether any rows belong together."""
        return len(np.unique(self.ids)) < len(self.ids)

    def units_in(self, codes: NDArray[Any]) -> Floats:
        """Return what the rows count for in their categories, which they share with those of their group."""
        if not self._together:
            return self.units
        pairs = np.stack([self.ids, codes.astype(np.int64)])
        _, pair, counts = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
        units: Floats = self.units // counts[pair.reshape(-1)]  # so that they sum to those of a row at most
        return units

    @cached_property
    def class_counts(self) -> Floats:
        """How many rows each class counts for, in units."""
        return _sums(self.labels, self.units_in(np.zeros(len(self.labels))), len(self.classes))

    @cached_property
    def told(self) -> NDArray[np.intp]:
        """The classes whose shares become features: of two the second, of many the most frequent."""
        if len(self.classes) == 2:
            return np.array([1])
        return np.sort(np.argsort(-self.class_counts, kind="stable")[:MOST_SHARES])

    @property
    def told_parts(self) -> list[str]:
        """What these classes are called."""
        return [str(label) for label in self.classes[self.told].tolist()]

    def counts(self, codes: NDArray[Any], n_categories: int) -> Floats:
        """Count the rows, in units, by category, class that features tell of (then: others) and fold."""
        place = np.full(len(self.classes), len(self.told))
        place[self.told] = np.arange(len(self.told))
        shape = n_categories, len(self.told) + 1, FOLDS
        present = codes >= 0
        cells = np.ravel_multi_index(
            (codes[present], place[self.labels[present]], self.folds[present]), shape
        )
        counts = _sums(cells, self.units_in(codes)[present], int(np.prod(shape)))
        return counts.reshape(shape)

    def cells(self, codes: NDArray[Any]) -> Cells:
        """Count the rows by category and class, where there are any."""
        present = codes >= 0
        pairs = codes[present].astype(np.int64) * len(self.classes) + self.labels[present]
        found, positions = np.unique(pairs, return_inverse=True)
        counts = _sums(positions.reshape(-1), self.units_in(codes)[present], len(found))
        return Cells(*np.divmod(found, len(self.classes)), counts)


def _sums(places: NDArray[Any], values: Floats, n_places: int) -> Floats:
    """Return the sum of the values at each place."""
    sums: Floats = np.bincount(places, values, n_places).astype(np.float64, copy=False)
    return sums


class Cells(NamedTuple):
    """How many rows there are, in units, of each class in each category that has any."""

    categories: NDArray[np.int64]
    classes: NDArray[np.int64]
    counts: Floats


class Way(Enum):
    """What is done with categories that are not encoded."""

    SETS = "sets"  # trees split them
    LEFT_OUT = "left out"  # they say nothing


class Fitted(NamedTuple):
    """An encoding, and what it makes of the training rows."""

    encoding: TargetEncoding
    values: Floats


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


def fitted(factorized: Factorized, target: Target) -> Fitted | Way:
    """Encode a column of categories, honestly, or say what else to do with it.

    Parameters
    ----------
    factorized : tuple of (array, list)
        The rows' positions in a list of categories, -1 where one is missing.
    target : Target
        The labels.

    Returns
    -------
    Fitted or Way
        The encoding, and the shares of the training rows.
    """
    codes, values = in_order(factorized)
    if len(values) <= FEW:
        return Way.SETS
    prior, cells = target.class_counts / target.class_counts.sum(), target.cells(codes)
    noise = noise_of(cells, len(values), prior)
    if np.isinf(noise):
        return Way.LEFT_OUT
    if cells.counts.sum() / UNIT >= MANY_ROWS * len(values):
        return Way.SETS
    counts = target.counts(codes, len(values))
    shares, others = tables_of(counts, prior_of(target.class_counts, target.told), noise)
    honest = np.full((len(codes), len(target.told)), np.nan)
    present = codes >= 0
    honest[present] = others[codes[present], target.folds[present]]
    return Fitted(TargetEncoding(dict(zip(values, range(len(values)), strict=True)), shares), honest)


def encoded_categories(
    columns: dict[int, Factorized], target: Target
) -> tuple[dict[int, int], dict[int, TargetEncoding], dict[int, Floats]]:
    """Return the columns that say nothing, how others are encoded, and what their rows become.

    Each is told by the column's number; of those that say nothing, how many categories they have.
    """
    found = {j: fitted(each, target) for j, each in columns.items()}
    honest = {j: each for j, each in found.items() if isinstance(each, Fitted)}
    encodings = {j: each.encoding for j, each in honest.items()}
    left_out = {j: len(columns[j][1]) for j, each in found.items() if each is Way.LEFT_OUT}
    return left_out, encodings, {j: each.values for j, each in honest.items()}


def prior_of(class_counts: Floats, told: NDArray[np.intp]) -> Floats:
    """Return the shares of the classes that features tell of, and of all others together."""
    shares = class_counts / class_counts.sum()
    return np.append(shares[told], max(0.0, 1 - shares[told].sum()))


def in_order(factorized: Factorized) -> Factorized:
    """Return the same with the categories sorted by value, those only that a row has."""
    codes, values = factorized
    texts = [plain(value) for value in values]
    present = np.bincount(codes[codes >= 0], minlength=len(texts)) > 0
    order = sorted(np.flatnonzero(present).tolist(), key=lambda k: (type(texts[k]).__name__, texts[k]))
    renamed = np.full(len(texts) + 1, -1)
    renamed[order] = np.arange(len(order))
    return renamed[codes], [texts[k] for k in order]


def plain(value: Any) -> Any:
    """Write equal categories alike, whichever container they come from: 1 for 1.0 and for True."""
    if isinstance(value, np.generic):
        value = value.item()
    return (
        int(value) if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()) else value
    )
