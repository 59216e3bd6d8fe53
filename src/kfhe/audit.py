"""The audit: which labels look wrong."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Integral
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, validate_params

from kfhe.engine.draws import bootstrap
from kfhe.engine.threads import thread_count
from kfhe.noise import estimated_rate
from kfhe.tree_settings import TreeSettings
from kfhe.validation import (
    COMMON_CONSTRAINTS,
    check_same_length,
    encode_labels,
    readable_table,
    row_weights,
    seed_from,
)

Floats = NDArray[np.float64]

# Leaves of a few rows smooth wrong labels away: on the benchmark's datasets better than one row, or ten.
LEAF_ROWS = 5
# Votes are counted in these units: sums of whole numbers don't depend on the order, nor on the threads.
UNITS = 2.0**32


@dataclass(frozen=True, repr=False)
class LabelAudit:
    """What an audit found: arrays with one value per row, in the order of the rows.

    Attributes
    ----------
    given : ndarray of shape (n,)
        The labels, as they were given.
    quality : ndarray of shape (n,)
        Share of the votes that the given label got, 0 to 1. Low: suspicious. NaN if a row got no votes,
        which happens with a handful of trees only.
    suggested : ndarray of shape (n,)
        The class with the most votes; often the given one.
    rank : ndarray of shape (n,)
        1 for the most suspicious label, n for the least. Of equal ones the first row comes first.
    suspects : ndarray of bool of shape (n,)
        The proposed cut: as many of the most suspicious labels as are estimated to be wrong. Only labels
        that the votes disagree with are among them.
    estimated_share : float
        Estimated share of wrong labels, 0 to 1, if they went wrong by chance.
    classes : ndarray of shape (n_classes,)
        The classes.
    votes : ndarray of shape (n, n_classes)
        Share of the votes that each class got; NaN if a row got none.
    index : pandas.Index or None
        The index of a pandas table, for `to_frame`.
    """

    given: NDArray[Any]
    quality: Floats
    suggested: NDArray[Any]
    rank: NDArray[np.int64]
    suspects: NDArray[np.bool_]
    estimated_share: float
    classes: NDArray[Any]
    votes: Floats
    index: Any = None

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        n_disputed = int((self.suggested != self.given).sum())
        return (
            f"LabelAudit of {len(self):,} labels: about {self.estimated_share:.1%} look wrong, "
            f"{self.suspects.sum():,} suspects; the votes disagree with {n_disputed:,}"
        )

    def to_frame(self) -> Any:
        """Return the audit as a pandas DataFrame, the most suspicious label first.

        Its index is that of the table, if that was a pandas one, else the number of the row, from 0.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("LabelAudit.to_frame() needs pandas: pip install kfhe[frames]") from error
        columns = ("rank", "given", "suggested", "quality", "suspects")
        index = pd.RangeIndex(len(self)) if self.index is None else self.index
        frame = pd.DataFrame({name: getattr(self, name) for name in columns}, index=index)
        frame = frame.rename_axis(index=index.name or "row")
        return frame.rename(columns={"suspects": "suspect"}).sort_values("rank")


@validate_params(
    {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "categorical_features": TreeSettings.constraints()["categorical_features"],
        "sample_weight": ["array-like", None],
        **{name: COMMON_CONSTRAINTS[name] for name in ("random_state", "n_jobs")},
    },
    prefer_skip_nested_validation=True,
)
def label_quality(
    X: Any,
    y: Any,
    *,
    n_estimators: int = 1000,
    categorical_features: Any = "from_dtype",
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> LabelAudit:
    """Find the labels that look wrong.

    Trees are grown on random samples of the rows. Each row is judged by the trees whose sample it was not
    in, so that a wrong label can't speak for itself. The quality of a label is the share of their votes
    that it gets.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
        The rows; columns of strings and gaps need no preparation.
    y : array-like of shape (n,)
        Their labels, of two classes at least: strings, integers or booleans.
    n_estimators : int, default=1000
        Number of trees.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns are categorical: those with strings or categories; or column numbers, names or a mask.
    sample_weight : array-like of shape (n,) or None, default=None
        How often a row is drawn, compared with others: more for labels that are certain, 0 for rows that
        nothing is to be learnt from.
    random_state : int, Generator, RandomState or None, default=None
        Where the randomness comes from.
    n_jobs : int or None, default=None
        Number of threads. It has no influence on the result.

    Returns
    -------
    LabelAudit
        For each row the quality of its label, the class that the votes suggest, and a rank; an
        estimate of the share of wrong labels, and which labels to look at.

    Notes
    -----
    An audit can't tell a wrong label from a right one in an unusual row: hard rows look like wrong ones.
    So look at the suspects before you change or drop them. Wrong labels that follow a pattern in X
    (always one kind of row) look right.

    The share of wrong labels is estimated where the votes are surest: rows that are easy to tell apart
    are wrong as often as others, if labels went wrong by chance, and there a label that the votes
    disagree with is likely wrong. It is the lowest rate of disagreement among the surest rows, at least a
    fifth of them all. Where even those rows are hard it is too high: if X says nothing about y, all
    labels look wrong.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.audit import label_quality
    >>> from kfhe.noise import flip_labels
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> noisy = flip_labels(y, 0.1, random_state=0)
    >>> audit = label_quality(X, noisy, random_state=0)
    >>> audit
    LabelAudit of 150 labels: about 11.3% look wrong, 17 suspects; the votes disagree with 21
    >>> audit.to_frame().head(3).round(3)
         rank  given  suggested  quality  suspect
    row
    137     1      0          2    0.000     True
    43      2      1          0    0.002     True
    78      3      0          1    0.003     True
    >>> int((noisy != y)[audit.suspects].sum())  # so many of the 15 changed labels are among the suspects
    15
    """
    classes, labels = encode_labels(y, "label_quality")
    index = X.index if type(X).__module__.startswith("pandas") else None
    X = readable_table(X, "label_quality")
    check_same_length(X, labels)
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only ({classes.tolist()[0]!r}): an audit needs two at least, "
            "there is nothing else that a row could be"
        )
    weights = row_weights(sample_weight, None, classes, labels)
    chances = weights / weights.sum()
    n_threads = thread_count(n_jobs)
    settings = TreeSettings(
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=LEAF_ROWS,
        max_features="log2",
        categorical_features=categorical_features,
    )
    table = settings.binned(X, n_threads)
    seed = seed_from(random_state)
    n_workers = min(n_threads, n_estimators)
    stopped = Event()

    def out_of_bag_votes(worker: int) -> tuple[Floats, Floats]:
        """Grow a worker's share of the trees; sum up the votes for rows out of bag, and their number."""
        grower = settings.grower(table, labels, len(classes), seed, n_threads=1)
        votes, n_votes = np.zeros((len(labels), len(classes))), np.zeros((len(labels), 1))
        for t in range(worker, n_estimators, n_workers):
            if stopped.is_set():
                break
            counts = bootstrap(chances, seed, t, 0)
            shares = grower.grow(counts, True, t).share_votes()
            np.rint(np.multiply(shares, UNITS, out=shares), out=shares)
            out_of_bag = (counts == 0)[:, np.newaxis]
            np.add(votes, shares, out=votes, where=out_of_bag)
            n_votes += out_of_bag
        return votes, n_votes

    with ThreadPoolExecutor(n_workers) as pool:
        try:
            parts = list(pool.map(out_of_bag_votes, range(n_workers)))
        except BaseException:  # Ctrl-C, say: the pool would wait for all trees
            stopped.set()
            raise
    votes: Floats = np.sum([part[0] for part in parts], axis=0)
    n_votes: Floats = np.sum([part[1] for part in parts], axis=0)
    with np.errstate(invalid="ignore"):  # a row that was in every sample has no votes
        return _judge(classes, labels, votes / (UNITS * n_votes), index)


def _judge(classes: NDArray[Any], labels: NDArray[np.int32], votes: Floats, index: Any = None) -> LabelAudit:
    """Compare the labels with the shares of the votes; rows without votes are beyond suspicion."""
    n = len(labels)
    quality = votes[np.arange(n), labels]
    judged = ~np.isnan(quality)
    suggested = np.where(judged, votes.argmax(axis=1), labels)
    order = np.argsort(quality, kind="stable")  # NaN last
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(1, n + 1)
    share = estimated_rate(votes[judged], labels[judged])
    suspects = np.zeros(n, dtype=bool)
    disputed = order[suggested[order] != labels[order]]
    suspects[disputed[: round(share * n)]] = True
    return LabelAudit(
        classes[labels], quality, classes[suggested], rank, suspects, share, classes, votes, index
    )
