"""Votes of classifiers on rows that they have not seen: out of bag, or by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from numbers import Integral
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from kfhe.engine.draws import bootstrap
from kfhe.engine.trees.grower import Grower
from kfhe.groups import Groups
from kfhe.rows import TrainingRows
from kfhe.validation import MAX_WEIGHT

Floats = NDArray[np.float64]

# Votes are counted as integers, so that sums don't depend on the order or the threads.
UNITS = 2.0**32
# Number of trees between two checks for early stopping
BLOCK = 25
# Expected rank correlation with the complete audit at which it stops
SETTLED = 0.982


class VoteCounts:
    """Counts of the votes of trees on rows that they have not seen.

    Parameters
    ----------
    labels : int32 array of shape (n,)
        The given labels.
    n_classes : int
        The number of classes.

    Attributes
    ----------
    votes : array of shape (n, n_classes)
        Sum of the votes, in `UNITS`.
    n_votes : int array of shape (n,)
        Number of trees that voted on each row.
    half, n_half : arrays of shape (n,)
        For every other tree: the votes for the given labels, and the number of trees that voted.
    """

    def __init__(self, labels: NDArray[np.int32], n_classes: int) -> None:
        n = len(labels)
        self._labels = labels
        self.votes = np.zeros((n, n_classes))
        self.n_votes = np.zeros(n, dtype=np.int64)
        self.half = np.zeros(n)
        self.n_half = np.zeros(n, dtype=np.int64)

    def add(self, shares: Floats, drawn: NDArray[np.int32], tree: int) -> None:
        """Add a tree's votes on the rows that were not drawn; `shares` is overwritten."""
        np.rint(np.multiply(shares, UNITS, out=shares), out=shares)
        out_of_bag = drawn == 0
        np.add(self.votes, shares, out=self.votes, where=out_of_bag[:, np.newaxis])
        self.n_votes += out_of_bag
        if tree % 2:
            np.add(self.half, self._given(shares), out=self.half, where=out_of_bag)
            self.n_half += out_of_bag

    @classmethod
    def joined(cls, parts: Sequence[VoteCounts]) -> VoteCounts:
        """Return the counts of consecutive rows as one."""
        whole = cls(np.concatenate([counts._labels for counts in parts]), parts[0].votes.shape[1])
        for name in ("votes", "n_votes", "half", "n_half"):
            setattr(whole, name, np.concatenate([getattr(counts, name) for counts in parts]))
        return whole

    def include(self, other: VoteCounts) -> None:
        """Add the counts of other trees for the same rows."""
        self.votes += other.votes
        self.n_votes += other.n_votes
        self.half += other.half
        self.n_half += other.n_half

    def mean(self) -> Floats:
        """Return the mean votes; NaN for a row that every tree has seen."""
        with np.errstate(invalid="ignore"):
            return self.votes / (UNITS * self.n_votes)[:, np.newaxis]

    def halves(self) -> tuple[Floats, Floats] | None:
        """Return the mean votes for the given labels by each half of the trees; None if a row has none."""
        n_rest = self.n_votes - self.n_half
        if not (self.n_half.all() and n_rest.all()):
            return None
        return self.half / self.n_half, (self._given(self.votes) - self.half) / n_rest

    def _given(self, votes: Floats) -> Floats:
        """Return the votes for the given labels."""
        given: Floats = votes[np.arange(len(self._labels)), self._labels]
        return given


class OutOfBag:
    """Trees that vote on the rows that they have not seen, grown in threads.

    Parameters
    ----------
    growers : list of Grower
        One per thread; a single one if workers grow trees together.
    rows : TrainingRows
        The rows, all drawn alike.
    weights : array of shape (n,) or None
        The weight of each row in the trees.
    advance : callable
        Called after each tree.
    """

    def __init__(
        self,
        growers: Sequence[Grower],
        rows: TrainingRows,
        weights: Floats | None,
        advance: Callable[[], None],
    ) -> None:
        self._growers, self._rows, self._weights, self._advance = growers, rows, weights, advance

    def count(self, trees: range) -> VoteCounts:
        """Grow the trees of some numbers, which are the keys of their samples, and return their votes."""
        stopped = Event()
        n_threads = len(self._growers)

        def grow(thread: int) -> VoteCounts:
            """Grow the trees of one thread."""
            counts = VoteCounts(self._rows.labels, len(self._rows.classes))
            for tree in trees[thread::n_threads]:
                if stopped.is_set():
                    break
                self._add(counts, self._growers[thread], tree)
                self._advance()
            return counts

        with ThreadPoolExecutor(n_threads) as pool:
            try:
                first, *others = pool.map(grow, range(n_threads))
            except BaseException:  # such as Ctrl-C; otherwise the pool would wait for all trees
                stopped.set()
                raise
        for other in others:
            first.include(other)
        return first

    def _add(self, counts: VoteCounts, grower: Grower, tree: int) -> None:
        drawn = drawn_rows(self._rows, tree)
        sample = self._rows.without_copies(drawn)
        if self._weights is None:
            grown = grower.grow(sample, True, tree)
        else:
            weighed = sample * self._weights
            total = self._rows.exact_sum(weighed)
            if not total:  # a tree without rows has no votes
                return
            grown = grower.grow(whole_weights(weighed, total), False, tree)
        counts.add(np.asarray(grown.share_votes()), drawn, tree)


def drawn_rows(rows: TrainingRows, tree: int) -> NDArray[np.int32]:
    """Return how often each row is drawn for a tree; all rows are equally likely."""
    if rows.together is not None:
        drawn = partial(rows.together.drawn, n_rows=rows.n_rows, seed=rows.seed, iteration=tree, attempt=0)
        return rows.exchange.for_each(drawn, rows.base)
    others = rows.exchange if rows.exchange.n > 1 else None
    return bootstrap(rows.base, rows.seed, tree, 0, n_draws=rows.n_rows, exchange=others)


def whole_weights(weights: Floats, total: float) -> NDArray[np.int32]:
    """Return weights as integers; positive weights stay positive."""
    units = np.rint(weights / total * MAX_WEIGHT)
    return np.maximum(units, weights > 0).astype(np.int32)


def out_of_bag_votes(voters: OutOfBag, n_estimators: int, *, early_stopping: bool) -> tuple[Floats, int]:
    """Collect the votes of trees on rows that they have not seen.

    Parameters
    ----------
    voters : OutOfBag
        Grows the trees.
    n_estimators : int
        Maximum number of trees.
    early_stopping : bool
        Whether to stop when the ranks have settled.

    Returns
    -------
    votes : array of shape (n, n_classes)
        Mean votes; NaN for a row that every tree has seen.
    n_trees : int
        The number of trees.
    """
    n_trees = min(BLOCK, n_estimators) if early_stopping else n_estimators
    counts = voters.count(range(n_trees))
    while n_trees < n_estimators and not settled(counts, n_trees, n_estimators):
        last = min(n_trees + BLOCK, n_estimators)
        counts.include(voters.count(range(n_trees, last)))
        n_trees = last
    return counts.mean(), n_trees


def settled(counts: VoteCounts, n_trees: int, n_estimators: int) -> bool:
    """Whether the ranks would hardly change with all trees."""
    halves = counts.halves()
    return halves is not None and likeness(rank_correlation(*halves), n_trees, n_estimators) >= SETTLED


def likeness(r: float, n_trees: int, n_estimators: int) -> float:
    """Return the expected rank correlation of the current audit with the complete one.

    The odd-numbered and the even-numbered trees are two audits of half the length, with rank correlation r.
    By the Spearman-Brown formula, two audits of m trees have a correlation of m / (m + noise). Since the
    complete audit includes the current one, the correlation of these two is the square root of the ratio.
    """
    if r <= 0:
        return 0.0
    noise = n_trees / 2 * (1 - r) / r
    return float(((n_trees / (n_trees + noise)) / (n_estimators / (n_estimators + noise))) ** 0.5)


def rank_correlation(a: Floats, b: Floats) -> float:
    """Return Spearman's rank correlation; 0 if all values are equal."""
    a, b = (ranks - ranks.mean() for ranks in (rankdata(a), rankdata(b)))
    spread = ((a**2).sum() * (b**2).sum()) ** 0.5  # not a dot product, whose last bits depend on the threads
    return float((a * b).sum() / spread) if spread else 0.0


def cross_validated_votes(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any,
    sample_weight: Any,
    seed: int,
    n_jobs: int | None,
    groups: Groups | None = None,
) -> Floats:
    """Return cross-validated probabilities by clones of a classifier."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_predict

    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"estimator must have predict_proba, {type(estimator).__name__} has none; "
            "sklearn.calibration.CalibratedClassifierCV gives it one"
        )
    if isinstance(cv, Integral):
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        cv = kind(cv, shuffle=True, random_state=seed % 2**32)
    with warnings.catch_warnings():  # classes with fewer rows than folds get no votes in some folds
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.filterwarnings("ignore", "Number of classes in training fold", RuntimeWarning)
        votes: Floats = cross_val_predict(
            estimator,
            X,
            y,
            cv=cv,
            groups=None if groups is None else groups.numbers,
            n_jobs=n_jobs,
            params=None if sample_weight is None else {"sample_weight": sample_weight},
            method="predict_proba",
        )
    return votes
