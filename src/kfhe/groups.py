"""Groups: rows that belong together, such as those of one patient, or copies.

Groups are drawn as a whole, so that no row is judged by a component that has seen another row of its group.
Each group is drawn by the mean weight of its rows. If it were drawn by their sum, large groups would be in
every sample, and would never be judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.arrays import exact_sum
from kfhe.engine.draws import REDRAWS, bootstrap
from kfhe.exchange import ALONE, Exchange

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Groups:
    """Which rows belong together.

    Attributes
    ----------
    numbers : int array of shape (n_rows,)
        The number of each row's group, from 0.
    one_record : bool, default=False
        Whether the rows of a group are copies of one record.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.groups import Groups
    >>> groups = Groups.of(np.array(["Ada", "Ben", "Ada", "Cleo"]))
    >>> groups.numbers
    array([0, 1, 0, 2])
    >>> groups.sizes
    array([2, 1, 1])
    """

    numbers: NDArray[np.intp]
    one_record: bool = False

    @classmethod
    def of(cls, values: NDArray[Any], *, one_record: bool = False) -> Groups:
        """Return the groups of rows that have the same value."""
        return cls(np.unique(values, return_inverse=True)[1].reshape(-1), one_record)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and np.array_equal(self.numbers, other.numbers)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def sizes(self) -> NDArray[np.intp]:
        """Number of rows of each group."""
        return np.bincount(self.numbers)

    @cached_property
    def first_rows(self) -> NDArray[np.int64]:
        """For each row, the first row of its group."""
        return np.unique(self.numbers, return_index=True)[1].astype(np.int64)[self.numbers]

    def some(self, rows: NDArray[Any]) -> Groups:
        """Return the groups of some rows."""
        return Groups.of(self.numbers[rows], one_record=self.one_record)

    def without_repeats(self, labels: Labels) -> NDArray[np.bool_]:
        """Return which rows remain if groups with a single label are reduced to their first row.

        Groups with several labels are kept whole: the majority shows which label is right.
        """
        order = np.lexsort((labels, self.numbers))
        starts = self.sizes.cumsum() - self.sizes
        lowest, highest = labels[order[starts]], labels[order[starts + self.sizes - 1]]
        return (lowest != highest)[self.numbers] | (self.first_rows == np.arange(len(labels)))

    def means(self, weights: Floats) -> Floats:
        """Return the mean weight of the rows of each group, normalised to sum to 1."""
        means = np.bincount(self.numbers, weights) / self.sizes
        normalised: Floats = means / exact_sum(means)
        return normalised

    def drawn(
        self, weights: Floats, n_rows: int, seed: int, iteration: int, attempt: int, n_threads: int = 1
    ) -> Labels:
        """Draw groups until there are about enough rows; return how often each row is in the sample."""
        n_draws = max(1, round(len(self) * n_rows / len(self.numbers)))
        return bootstrap(self.means(weights), seed, iteration, attempt, n_threads, n_draws)[self.numbers]


class GroupDraws:
    """Weighted bootstrap samples of whole groups, if possible with a row of each class.

    Parameters
    ----------
    groups : Groups
        The groups.
    labels : int32 array of shape (n_rows,)
        The rows' classes.
    n_present, n_samples, seed, n_threads : int
        Number of classes that have a row; approximate number of rows in a sample; key of the random numbers;
        number of threads.
    exchange : Exchange, default=ALONE
        The other workers, if each has some of the rows. The first one draws for all.
    """

    def __init__(
        self,
        groups: Groups,
        labels: Labels,
        n_present: int,
        n_samples: int,
        seed: int,
        n_threads: int,
        exchange: Exchange = ALONE,
    ) -> None:
        self._groups, self._labels = groups, labels
        self._n_classes = max(exchange.gather(labels.max())) + 1
        self._n_present, self._n_samples = n_present, n_samples
        self._seed, self._n_threads = seed, n_threads
        self._exchange = exchange

    def draw(self, weights: Floats, iteration: int, attempt: int) -> Labels:
        """Return how often each row is in the sample; redraw up to a limit while a class is missing."""
        first = attempt * (REDRAWS + 1)
        for redraw in range(first, first + REDRAWS + 1):
            drawn = partial(
                self._groups.drawn,
                n_rows=self._n_samples,
                seed=self._seed,
                iteration=iteration,
                attempt=redraw,
                n_threads=self._n_threads,
            )
            counts = self._exchange.for_each(drawn, weights)
            of_classes = self._exchange.sum(np.bincount(self._labels[counts > 0], minlength=self._n_classes))
            if np.count_nonzero(of_classes) == self._n_present:
                break
        return counts
