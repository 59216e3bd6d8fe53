"""A bank of filters, one for each of several shrinkages; the labels of unseen rows tell which one is right.

Trees are grown until they fit every label, wrong ones included. A filter down each tree undoes this: the
votes of a leaf are shrunken towards those of its ancestors, the more the fewer rows it has. The right amount
depends on the noise, which is unknown. So there is a filter for each of several shrinkages, and their states,
made of the votes of trees that have not seen a row, are compared with the labels.
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
STEERING = 5  # so many of them, the lower ones, steer the training; all are asked in the end
CLEAN_UP_TO = 1.0  # a shrinkage up to which labels look clean,
COARSE_FROM = 30.0  # and one from which on the noise is plain, and leaves had better be larger
WARM_UP = 20  # trees after which the size of the leaves is chosen
READ_EVERY = 5  # trees between two readings of the bank


class TreeVotes(NamedTuple):
    """What a tree votes for the training rows, under each shrinkage."""

    leaves: NDArray[np.int32]  # the leaf of each row
    votes: Floats  # per shrinkage, leaf and class


class Unseen(NamedTuple):
    """The votes of a tree, and the sample that it was grown on: they count for other rows."""

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
        The share of each class in the weight of the rows.
    n_components : int
        How many trees there are.
    variance : float
        Variance of a row that no tree has seen, such as all rows to come.
    chosen : int
        The position of the shrinkage that is believed in now.
    coarse : bool
        Whether leaves are to be larger, as labels are plainly noisy.
    clean : bool
        Whether labels look clean, so that a row that is missed is hard rather than wrong.
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
        """The shrinkage that is believed in now."""
        return float(SHRINKAGES[self.chosen])

    @property
    def clean(self) -> bool:
        """Whether labels look clean, so that a row that is missed is hard rather than wrong.

        A row that is equal to one of another label is neither: no attention helps.
        """
        looks_clean = self.n_components >= WARM_UP and not self.coarse and self.shrinkage <= CLEAN_UP_TO
        return looks_clean and not self._rows.overlap

    @property
    def variance(self) -> float:
        """Variance of a row that no tree has seen."""
        return self._unseen_row.variance

    @property
    def state(self) -> Floats:
        """Scores of the training rows, by trees that have not seen them, under the shrinkage of now."""
        return self._bank.state(self.chosen)

    @property
    def n_read(self) -> Counts:
        """How many trees have not seen each row."""
        return self._bank.n_read

    def predict(self) -> None:
        """Time update: nothing moves."""

    def update(self, measurement: Unseen, noise: float) -> float:
        """Take the votes of a tree in; return the gain for rows that no tree has seen.

        Whatever its own error, a tree is as noisy a measurement as any other: the filter averages.
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
        """Say which rows the newest tree misses, of those that it has not seen, and their share by weight."""
        tree = measurement.tree
        missed, *weights = self._bank.misses(tree.leaves, tree.votes[self.chosen], measurement.counts)
        wrong, unseen = self._rows.exchange.sum(tuple(weights))
        return missed, wrong / unseen if unseen else 0.0

    def verdict(self) -> int:
        """Return the position of the shrinkage that all rows speak for in the end.

        As CART chooses how far to prune: the most of those whose log loss is within a standard error of the
        lowest. (The highest shrinkage has to be the best one itself.)
        """
        rows, share = self._rows, 1 / (self.n_components + 1)
        prior = share * self.prior[rows.labels]
        losses = [self._bank.label_scores(k) for k in range(len(SHRINKAGES))]
        for scores in losses:  # in place, as memory takes longer to be had than to be written
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
        """Return what the final ensemble would say of the training rows, had it not seen them."""
        share = 1 / (self.n_components + 1)
        scores: Floats = (1 - share) * self._bank.state(chosen) + share * self.prior
        return scores


def log_losses(scores: Floats, base: Floats, out: Floats | None = None) -> Floats:
    """Return the log loss of each row's label, by the label's score, times the row's weight."""
    losses = np.log(scores, out=out)
    np.maximum(np.negative(losses, out=losses), 0.0, out=losses)
    losses *= base
    return losses
