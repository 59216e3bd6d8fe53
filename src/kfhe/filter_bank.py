"""A bank of filters, one per shrinkage; the labels of unseen rows show which one is right.

Trees are grown until they fit every label, including wrong ones. A filter down each tree corrects this: the
votes of a leaf are shrunk towards those of its ancestors, and more so if it has few rows. The right amount
depends on the noise, which is unknown. So there is one filter for each of several shrinkages. Their states
are built from the votes of trees that have not seen a row, and are compared with the labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfhe.kalman import KalmanFilter

if TYPE_CHECKING:
    from kfhe.rows import TrainingRows  # it imports scikit-learn, which prediction does without

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]
Labels = NDArray[np.int32]

SHRINKAGES = np.array([0.0, 1.0, 3.0, 10.0, 30.0, 100.0])
STEERING = 5  # number of low shrinkages that control the training; all are compared at the end
CLEAN_UP_TO = 1.0  # up to this shrinkage labels look clean,
COARSE_FROM = 30.0  # and from this one on they are so noisy that larger leaves are better
WARM_UP = 20  # number of trees before the size of the leaves is chosen
READ_EVERY = 5  # number of trees between two evaluations of the bank


class TreeVotes(NamedTuple):
    """Votes of a tree for the training rows, under each shrinkage."""

    leaves: NDArray[np.int32]  # the leaf of each row
    votes: Floats  # by shrinkage, leaf and class


class Unseen(NamedTuple):
    """The votes of a tree, and its sample: they count for the rows outside it."""

    tree: TreeVotes
    counts: Counts


class FilterBank:
    """The model filter of the robust classifier.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.

    Attributes
    ----------
    prior : ndarray of shape (n_classes,)
        The class shares, by weight.
    n_components : int
        The number of trees.
    variance : float
        Variance of a row that no tree has seen, such as new rows.
    chosen : int
        Position of the current shrinkage.
    coarse : bool
        Whether labels are so noisy that leaves should be larger.
    clean : bool
        Whether labels look clean, so that a missed row is hard rather than wrong.
    """

    def __init__(self, rows: TrainingRows) -> None:
        self.prior: Floats = rows.class_units / rows.class_units.sum()
        self.n_components = 0
        self.chosen = 0
        self.coarse = False
        self._rows = rows
        self._bank = rows.bank(self.prior, len(SHRINKAGES))
        self._unseen_row = KalmanFilter(0.0, 1.0)

    @property
    def shrinkage(self) -> float:
        """The current shrinkage."""
        return float(SHRINKAGES[self.chosen])

    @property
    def clean(self) -> bool:
        """Whether labels look clean, so that a missed row is hard rather than wrong.

        A row that is equal to one with another label is neither: more weight does not help.
        """
        looks_clean = self.n_components >= WARM_UP and not self.coarse and self.shrinkage <= CLEAN_UP_TO
        return looks_clean and not self._rows.overlap

    @property
    def variance(self) -> float:
        """Variance of a row that no tree has seen."""
        return self._unseen_row.variance

    @property
    def state(self) -> Floats:
        """Scores of the training rows under the current shrinkage, by trees that have not seen them."""
        return self._bank.state(self.chosen)

    @property
    def n_read(self) -> Counts:
        """Number of trees that have not seen each row."""
        return self._bank.n_read

    def predict(self) -> None:
        """Time update: the state does not change."""

    def update(self, measurement: Unseen, noise: float) -> float:
        """Add the votes of a tree; return the gain for rows that no tree has seen.

        All trees count as equally noisy measurements, whatever their error, so the filter averages them.
        """
        self._bank.update(measurement.tree.leaves, measurement.tree.votes, measurement.counts)
        self.n_components += 1
        if self.n_components % READ_EVERY == 0:
            scores = self._rows.exchange.sum(self._bank.brier_scores())
            self.chosen = int(scores[:STEERING].argmin())
        if self.n_components == WARM_UP:
            self.coarse = self.shrinkage >= COARSE_FROM
        return self._unseen_row.update(0.0, 1.0)

    def misses(self, measurement: Unseen) -> tuple[NDArray[np.bool_], float]:
        """Return which unseen rows the newest tree misses, and their share by weight."""
        tree = measurement.tree
        missed, *weights = self._bank.misses(tree.leaves, tree.votes[self.chosen], measurement.counts)
        wrong, unseen = self._rows.exchange.sum(tuple(weights))
        return missed, wrong / unseen if unseen else 0.0

    def verdict(self) -> int:
        """Return the position of the final shrinkage, judged on all rows.

        As in CART's pruning: the highest shrinkage whose log loss is within one standard error of the lowest.
        (The last one in the bank must have the lowest log loss itself.)
        """
        rows, share = self._rows, 1 / (self.n_components + 1)
        prior = share * self.prior[rows.labels]
        losses = [self._bank.label_scores(k) for k in range(len(SHRINKAGES))]
        for scores in losses:  # in place, because allocating memory is slower than writing it
            scores *= 1 - share
            scores += prior
            log_losses(scores, rows.base, out=scores)
        sums = [rows.exact_sum(loss) for loss in losses]
        best = int(np.argmin(sums))
        for more in range(STEERING - 1, best, -1):
            mean = sums[more] - sums[best]
            squares = (losses[more] - losses[best] - rows.base * mean) ** 2
            if mean <= rows.exact_sum(squares) ** 0.5:
                return more
        return best

    def scores(self, chosen: int) -> Floats:
        """Return the out-of-bag scores of the training rows under the final shrinkage."""
        share = 1 / (self.n_components + 1)
        scores: Floats = (1 - share) * self._bank.state(chosen) + share * self.prior
        return scores


def log_losses(scores: Floats, base: Floats, out: Floats | None = None) -> Floats:
    """Return the log loss of each row's label, by the label's score, times the row's weight."""
    losses = np.log(scores, out=out)
    np.maximum(np.negative(losses, out=losses), 0.0, out=losses)
    losses *= base
    return losses
