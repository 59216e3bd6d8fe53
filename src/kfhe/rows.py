"""The training rows: table, labels, weights, and everything that the loop does row by row.

On a cluster, each worker has some of the rows and runs the same loop on them. Statements about all rows,
mostly sums, go through an exchange with the other workers. On one machine there are no others.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.copies import RowHashes, find_copies, labels_overlap
from kfhe.engine.arrays import Measurer, class_totals, divide, multiply
from kfhe.engine.bank import HonestBank
from kfhe.engine.draws import Draws
from kfhe.engine.trees.grower import Grower
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.leaf_votes import shrunken_shares
from kfhe.exchange import ALONE, Exchange, kept
from kfhe.groups import GroupDraws, Groups
from kfhe.kalman import KalmanFilter
from kfhe.tables.binned import BinnedTable
from kfhe.tables.columns import open_columns
from kfhe.target_encoding import Target
from kfhe.tree_settings import TreeSettings
from kfhe.validation import integer_weights, same_table

Floats = NDArray[np.float64]


AUTO_ROWS = 50_000  # up to this number, "auto" draws as many rows as there are


def sample_size(max_samples: int | float | str | None, n_rows: int) -> int:
    """Return the number of rows in a component's sample.

    Parameters
    ----------
    max_samples : int, float, "auto" or None
        A number; a share of the rows; None for as many as there are; or "auto": as many as there are up to
        50,000, and beyond that the geometric mean of 50,000 and their number.
    n_rows : int
        The number of training rows.

    Returns
    -------
    int
        At least 1, and at most `n_rows`.

    Examples
    --------
    >>> from kfhe.rows import sample_size
    >>> [sample_size(wanted, 200_000) for wanted in (None, 1000, 0.25, "auto")]
    [200000, 1000, 50000, 100000]
    """
    if max_samples is None:
        return n_rows
    if isinstance(max_samples, str):
        wanted = (min(n_rows, AUTO_ROWS) * n_rows) ** 0.5
    elif isinstance(max_samples, Integral):
        wanted = int(max_samples)
    else:
        wanted = max_samples * n_rows
    return max(1, min(n_rows, round(wanted)))


@dataclass(frozen=True)
class TrainingRows:
    """The training rows, validated and encoded.

    Attributes
    ----------
    X : array, data frame or sparse matrix
        The rows, in the user's container.
    labels : int32 array
        Position of each row's label in `classes`.
    classes : ndarray
        The class labels, sorted.
    base : ndarray
        Base weights, all positive; they sum to 1.
    seed : int
        The seed of all random numbers.
    n_threads : int
        Number of threads.
    max_samples : int, float, "auto" or None, default=None
        Number of rows in a sample, as in `sample_size`.
    groups : Groups, optional
        Rows that belong together, given by the user.
    copies : Groups, optional
        Rows that were found to be copies of each other.
    overlap : bool, default=False
        Whether many rows are equal to a row of another label without being copies. Such rows are not hard:
        no classifier can tell them apart.
    exchange : Exchange, default=ALONE
        The other workers, if each has some of the rows. Groups and copies are those of all rows.
    remember : callable, optional
        Returns what encodes categories by the labels.
    """

    X: Any
    labels: NDArray[np.int32]
    classes: NDArray[Any]
    base: Floats
    seed: int
    n_threads: int
    max_samples: int | float | str | None = None
    groups: Groups | None = None
    copies: Groups | None = None
    overlap: bool = False
    exchange: Exchange = ALONE
    remember: Callable[[Grower, BinnedTable], Grower] | None = None

    @property
    def together(self) -> Groups | None:
        """Rows that are drawn together, and judged only by components that have seen none of them."""
        return self.copies if self.groups is None else self.groups

    @kept
    def n_present(self) -> int:
        """Return the number of classes that have a row."""
        return int(np.count_nonzero(self.exchange.sum(np.bincount(self.labels, minlength=len(self.classes)))))

    @kept
    def uniform(self) -> bool:
        """Whether all rows have the same weight."""
        ranges = self.exchange.gather((self.base.min(), self.base.max()))
        return len({weight for range in ranges for weight in range}) == 1

    @kept
    def n_samples(self) -> int:
        """Return the number of rows in a sample, with repetitions."""
        n_samples = sample_size(self.max_samples, self.n_rows)
        if n_samples < self.n_present:
            raise ValueError(
                f"max_samples={self.max_samples!r} makes samples of {n_samples} rows: too few to have one of "
                f"each of the {self.n_present} classes; raise it, or use None for as many rows as there are"
            )
        return n_samples

    @kept
    def n_rows(self) -> int:
        """Return the number of rows of all workers."""
        return int(self.exchange.sum(len(self.labels)))

    def draws(self) -> Draws | GroupDraws:
        """Return the source of bootstrap samples."""
        if self.together is not None:
            return GroupDraws(
                self.together,
                self.labels,
                self.n_present,
                self.n_samples,
                self.seed,
                self.n_threads,
                self.exchange,
            )
        return Draws(
            self.labels,
            len(self.classes),
            self.n_present,
            self.seed,
            self.n_threads,
            self.n_samples,
            self.exchange if self.exchange.n > 1 else None,
        )

    def with_copies(self) -> TrainingRows:
        """Return the rows with copies grouped; if there are none, with a note on whether labels overlap."""
        hashes = RowHashes(open_columns(self.X))
        copies = find_copies(hashes, lambda: self.labels)
        return replace(
            self, copies=copies, overlap=copies is None and labels_overlap(hashes, lambda: self.labels)
        )

    @kept
    def once(self) -> NDArray[np.bool_] | None:
        """Rows that trees are trained on, if some are copies of the same record; None: all."""
        together = self.together
        if together is None or not together.one_record:
            return None
        return self.exchange.for_each(together.without_repeats, self.labels)

    def without_copies(self, counts: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return how often each row is trained on; a record that occurs twice counts once."""
        return counts if self.once is None else counts * self.once

    def initial_sample(self) -> NDArray[np.int32]:
        """Return how often each row is in the sample for h_0, if it is not trained on all of them."""
        return self.draws().draw(self.base, 0, 0)

    def exact_sum(self, values: Floats) -> float:
        """Return the exact sum of non-negative values, one per row, wherever the rows are."""
        return self.exchange.exact_sum(values, self.n_threads)

    def normalised(self, values: Floats) -> Floats:
        """Return non-negative values, one per row, divided by their sum."""
        return values / self.exact_sum(values)

    def normalise(self, weights: KalmanFilter) -> None:
        """Normalise the sampling weights of a filter to sum to 1; raise if their sum is not positive."""
        total = self.exact_sum(weights.state)
        if not total > 0:
            raise ValueError("emphasis left no row with a positive weight to sample from")
        divide(weights.state, total, self.n_threads)

    def raised(self, weights: Floats, missed: NDArray[np.bool_], right: float, wrong: float) -> Floats:
        """Multiply weights by one factor where a row is right and by another where it was missed."""
        return multiply(weights, missed, right, wrong, self.n_threads)

    def effective_sample_size(self, weights: Floats) -> float:
        """Return the effective sample size of sampling weights that sum to 1."""
        return self.exchange.effective_sample_size(weights, self.n_threads)

    def filter(self, state: Floats, kind: type[KalmanFilter] = KalmanFilter, **settings: Any) -> KalmanFilter:
        """Return a filter of a state with one or more values per row; its variance starts at 1."""
        return kind(state, 1.0, n_threads=self.n_threads, **settings)

    def measurer(self) -> Measurer:
        """Return what computes the paper's measurement and its error."""
        return Measurer(self.labels, self.base, len(self.classes), self.n_threads)

    def bank(self, prior: Floats, n_filters: int) -> HonestBank:
        """Return a bank of filters without measurements: every row's state is the prior."""
        return HonestBank(self.labels, self.base, prior, n_filters, self.n_threads)

    def leaf_votes(self, tree: GrownTree, shrinkages: Floats) -> Floats:
        """Return what each leaf of a tree votes for, for each of some shrinkages."""
        return shrunken_shares(tree.nodes, tree.leaf_weights, shrinkages, self.n_threads)

    def whole_weights(self) -> tuple[NDArray[np.int32], bool]:
        """Return the base weights as integers for a tree, and whether they count rows."""
        return integer_weights(np.ones(len(self.base)) if self.uniform else self.base, self.exchange)

    @kept
    def class_units(self) -> NDArray[np.int32]:
        """Return the integer weight of each class."""
        units, _ = self.whole_weights()
        totals = self.exchange.sum(class_totals(self.labels, units, len(self.classes)))
        return np.asarray(totals, dtype=np.int32)

    @cached_property
    def target(self) -> Target:
        """The labels, for encoding columns of many categories."""
        together, weights = self.together, self.base * self.effective_sample_size(self.base)
        if together is None:
            return Target(self.labels, self.classes, weights, np.arange(self.n_rows), None, self.seed)
        sizes = together.sizes[together.numbers]
        return Target(self.labels, self.classes, weights, together.first_rows, sizes, self.seed)

    def table(self, settings: TreeSettings) -> BinnedTable:
        """Return the binned table; the rows of all workers are binned alike."""
        if isinstance(self.X, BinnedTable):
            return self.X
        target = self.target if settings.honest_categories else None
        return settings.binned(self.X, self.n_threads, target)

    def grower(self, settings: TreeSettings, table: BinnedTable, n_threads: int | None = None) -> Grower:
        """Return a grower for the rows, with all threads unless a number is given."""
        n_threads = self.n_threads if n_threads is None else n_threads
        grower = settings.grower(table, self.labels, len(self.classes), self.seed, n_threads, self.exchange)
        return grower if self.remember is None or table is not self.X else self.remember(grower, table)

    def kept(self) -> TrainingRows:
        """Return the rows for a run that may be resumed; the user may change the table in the meantime."""
        return replace(self, X=deepcopy(self.X))

    def differences(self, other: TrainingRows) -> str:
        """Name what differs in other rows: "" if nothing does."""
        same = {
            "classes": np.array_equal(self.classes, other.classes),
            "labels": np.array_equal(self.labels, other.labels),
            "weights": np.array_equal(self.base, other.base),
            "values in X": same_table(self.X, other.X),
            "groups": self.groups == other.groups,
        }
        return ", ".join(name for name, is_same in same.items() if not is_same)
