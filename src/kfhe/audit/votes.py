"""Votes on rows by classifiers that have not seen them: trees out of bag, or folds of cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from kfhe.engine.draws import bootstrap
from kfhe.engine.trees.growing import Grower
from kfhe.validation import MAX_WEIGHT

Floats = NDArray[np.float64]

# Votes are counted in these units: sums of whole numbers don't depend on the order, nor on the threads.
UNITS = 2.0**32
# Trees after which it is asked again whether more of them would still change the ranks
BLOCK = 25
# Expected rank correlation with the audit of all trees from which the ranks are said to be settled
SETTLED = 0.982


class OutOfBag:
    """Votes of a worker's trees for the rows that were not in their samples.

    Parameters
    ----------
    grower : Grower
        Grows the trees, in one thread.
    labels : int32 array of shape (n,)
        The given labels.
    n_classes : int
        How many classes there are.
    weights : array of shape (n,) or None
        What each row weighs in the trees.
    seed : int
        Which rows are drawn.

    Attributes
    ----------
    votes : array of shape (n, n_classes)
        The sum of the votes, in `UNITS`.
    n_votes : int array of shape (n,)
        How many trees voted on each row.
    half, n_half : arrays of shape (n,)
        Of every other tree: the votes for the given labels, and how many trees voted.
    """

    def __init__(
        self, grower: Grower, labels: NDArray[np.int32], n_classes: int, weights: Floats | None, seed: int
    ) -> None:
        n = len(labels)
        self._grower, self._labels, self._weights, self._seed = grower, labels, weights, seed
        self._uniform = np.full(n, 1 / n)
        self.votes = np.zeros((n, n_classes))
        self.n_votes = np.zeros(n, dtype=np.int64)
        self.half = np.zeros(n)
        self.n_half = np.zeros(n, dtype=np.int64)

    def for_given(self) -> Floats:
        """Return the sum of the votes for the given labels."""
        votes: Floats = self.votes[np.arange(len(self._labels)), self._labels]
        return votes

    def add(self, tree: int) -> None:
        """Grow a tree and add its votes; its number decides which rows it sees."""
        drawn = bootstrap(self._uniform, self._seed, tree, 0)
        if self._weights is None:
            grown = self._grower.grow(drawn, True, tree)
        else:
            grown = self._grower.grow(_weighed(drawn, self._weights), False, tree)
        shares = grown.share_votes()
        np.rint(np.multiply(shares, UNITS, out=shares), out=shares)
        out_of_bag = drawn == 0
        np.add(self.votes, shares, out=self.votes, where=out_of_bag[:, np.newaxis])
        self.n_votes += out_of_bag
        if tree % 2:
            given = shares[np.arange(len(drawn)), self._labels]
            np.add(self.half, given, out=self.half, where=out_of_bag)
            self.n_half += out_of_bag


def _weighed(drawn: NDArray[np.int32], weights: Floats) -> NDArray[np.int32]:
    """Return what drawn rows weigh, as whole numbers; a row that weighs something never rounds to nothing."""
    total = drawn * weights
    units = np.rint(total * (MAX_WEIGHT / max(total.sum(), np.finfo(float).tiny)))
    return np.maximum(units, total > 0).astype(np.int32)


def out_of_bag_votes(
    workers: Sequence[OutOfBag], n_estimators: int, *, early_stopping: bool, advance: Callable[[], None]
) -> tuple[Floats, int]:
    """Let trees vote on the rows that they have not seen.

    Parameters
    ----------
    workers : list of OutOfBag
        Each grows its share of the trees in a thread of its own.
    n_estimators : int
        Number of trees at most.
    early_stopping : bool
        Whether to stop once the ranks are settled.
    advance : callable
        Is told of each tree.

    Returns
    -------
    votes : array of shape (n, n_classes)
        Mean votes; NaN for a row that every tree has seen.
    n_trees : int
        How many trees there were.
    """
    stopped = Event()
    n_trees = 0

    def grow(some: range) -> None:
        """Grow a worker's share of a block."""
        for tree in some:
            if stopped.is_set():
                break
            workers[tree % len(workers)].add(tree)
            advance()

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            while n_trees < n_estimators:
                last = min(n_trees + BLOCK, n_estimators) if early_stopping else n_estimators
                shares = [range(tree, last, len(workers)) for tree in range(n_trees, n_trees + len(workers))]
                list(pool.map(grow, shares))
                n_trees = last
                if early_stopping and settled(workers, n_trees, n_estimators):
                    break
        except BaseException:  # Ctrl-C, say: the pool would wait for all trees
            stopped.set()
            raise
    votes: Floats = np.sum([worker.votes for worker in workers], axis=0)
    n_votes = np.sum([worker.n_votes for worker in workers], axis=0)
    with np.errstate(invalid="ignore"):  # a row that was in every sample has no votes
        return votes / (UNITS * n_votes)[:, np.newaxis], n_trees


def settled(workers: Sequence[OutOfBag], n_trees: int, n_estimators: int) -> bool:
    """Whether all trees would rank the labels nearly as those do that have voted by now."""
    half, n_half, given, n_votes = (
        np.sum(arrays, axis=0)
        for arrays in zip(*((w.half, w.n_half, w.for_given(), w.n_votes) for w in workers), strict=True)
    )
    if not (n_half.all() and (n_half < n_votes).all()):
        return False
    r = rank_correlation(half / n_half, (given - half) / (n_votes - n_half))
    return likeness(r, n_trees, n_estimators) >= SETTLED


def likeness(r: float, n_trees: int, n_estimators: int) -> float:
    """Return the expected rank correlation of the first trees' audit with that of all trees.

    The trees of odd numbers and those of even ones are two audits of half the length; r is their rank
    correlation. By the formula of Spearman and Brown that of two audits of m trees each is m / (m + noise).
    The longer audit holds the shorter one, so theirs is the root of the ratio.
    """
    if r <= 0:
        return 0.0
    noise = n_trees / 2 * (1 - r) / r
    return float(((n_trees / (n_trees + noise)) / (n_estimators / (n_estimators + noise))) ** 0.5)


def rank_correlation(a: Floats, b: Floats) -> float:
    """Return Spearman's rank correlation; 0 if all values of one are equal."""
    a, b = (ranks - ranks.mean() for ranks in (rankdata(a), rankdata(b)))
    spread = ((a**2).sum() * (b**2).sum()) ** 0.5  # no dot products: their last bits depend on the threads
    return float((a * b).sum() / spread) if spread else 0.0


def cross_validated_votes(
    estimator: Any, X: Any, y: Any, *, cv: Any, sample_weight: Any, seed: int, n_jobs: int | None
) -> Floats:
    """Return the probabilities that clones of a classifier give to rows of folds that they have not seen."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    if not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"estimator must have predict_proba, {type(estimator).__name__} has none; "
            "sklearn.calibration.CalibratedClassifierCV gives it one"
        )
    folds = StratifiedKFold(cv, shuffle=True, random_state=seed % 2**32) if isinstance(cv, Integral) else cv
    with warnings.catch_warnings():  # of classes with fewer rows than folds: those get no votes in some
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.filterwarnings("ignore", "Number of classes in training fold", RuntimeWarning)
        votes: Floats = cross_val_predict(
            estimator,
            X,
            y,
            cv=folds,
            n_jobs=n_jobs,
            params=None if sample_weight is None else {"sample_weight": sample_weight},
            method="predict_proba",
        )
    return votes
