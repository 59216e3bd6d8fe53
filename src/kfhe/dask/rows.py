"""Training rows that live on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any
from uuid import uuid4

import numpy as np
from dask.base import tokenize
from numpy.typing import NDArray

from kfhe.dask.copies import SpreadHashes
from kfhe.dask.draws import SpreadDraws, SpreadGroupDraws
from kfhe.dask.encoding import SpreadTarget, grouped, numbered
from kfhe.dask.growing import Grower
from kfhe.dask.nodes import leaves_in
from kfhe.dask.parts import (
    are_multiples,
    bank_misses,
    brier_scores,
    corrected,
    divided,
    empty_bank,
    least_of,
    measure,
    misses,
    moved,
    multiples_of,
    n_read_of,
    of_all,
    returned,
    scaled_by,
    state_of,
    taken,
    votes_of_leaves,
    whole_weight,
)
from kfhe.dask.rooms import Rooms
from kfhe.dask.spread import OfParts, Shared, Spread
from kfhe.dask.sums import (
    exact_total,
    in_ones,
    likely_total,
    square_units,
    total_and_top,
    unit_sums,
)
from kfhe.dask.trees import TreeArrays
from kfhe.dask.workers import Workers, as_is
from kfhe.engine.arrays import class_totals, highest, unit_of
from kfhe.engine.draws import ROWS_OF_BLOCK, block_totals
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.leaf_votes import leaf_classes, leaf_shares
from kfhe.forest import NODE_DTYPE
from kfhe.kalman import KalmanFilter
from kfhe.rows import TrainingRows
from kfhe.tables.binned import BinnedTable
from kfhe.tree_settings import TreeSettings
from kfhe.validation import MAX_WEIGHT

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

DRAWS_OF_TASK = 2**22  # draws of which one task finds out into which blocks they fall


@dataclass(frozen=True)
class SpreadRows(TrainingRows):
    """Rows of which each worker holds some. What has a value per row is a `Spread`.

    Attributes
    ----------
    X : SpreadTable
        The table, not read yet.
    labels, base : Spread
        Labels and base weights.
    workers : Workers
        Where the rows are.
    class_counts : int array
        How many rows each class has.
    first_blocks : list of int
        The first block of each part, and how many blocks there are.
    all_alike : bool
        Whether all rows weigh the same.
    grown : dict
        The trees so far, by settings, number and sample. All else follows from them: a training that
        was broken off is repeated, but they are not grown again.
    """

    workers: Workers = field(kw_only=True)
    class_counts: NDArray[np.int64] = field(kw_only=True)
    first_blocks: list[int] = field(kw_only=True)
    all_alike: bool = field(kw_only=True)
    grown: dict[Any, TreeArrays] = field(kw_only=True)

    @cached_property
    def n_present(self) -> int:
        """How many of the classes have a row."""
        return int((self.class_counts > 0).sum())

    @cached_property
    def uniform(self) -> bool:
        """Whether all rows weigh the same."""
        return self.all_alike

    @cached_property
    def rooms(self) -> Spread:
        """Where each part has the states of filters, and measurements of them."""
        return Spread(self.workers.pieces(self.map(Rooms)))

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.class_counts.sum())

    def map(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function gives for each part of the rows."""
        return self.workers.each(function, *arguments)

    def all(self, function: Callable[[Any], Any], values: Any) -> Any:
        """Return what a function gives for the values of all rows, which are sent to one worker."""
        workers = self.workers
        return workers.result(workers.run(of_all, function, workers.pieces(values)))

    def exact_sum(self, values: Any) -> float:
        """Return the sum of non-negative values, one per row."""
        return exact_total(self.workers, values, self.n_rows)

    def normalise(self, weights: KalmanFilter) -> None:
        """Divide the sampling weights that a filter holds by their sum.

        The workers do so before it is known here that they could tell the sum, and prepare to draw by them.
        """
        workers, n = self.workers, self.n_rows
        state: Any = weights.state
        sums, likely = workers.want(workers.each(unit_sums, state, n)), list[Spread]()

        def divide() -> Spread:
            return self.map(divided, self.rooms, state, self.map(likely_total, workers.everywhere(sums), n))

        def prepare() -> None:
            likely.append(divide())
            # Divided again by the task that draws: else it would take others to pick the totals
            totals = self.map(block_totals, likely[0] if workers.n_parts == 1 else divide())
            likely[0].blocks = workers.everywhere(totals)

        def normalised() -> Spread:
            parts = workers.parts(sums)
            total, top = total_and_top(workers, state, parts, n)
            self.check_total(total)
            is_likely = total == likely_total(parts, n)
            after = likely.pop() if is_likely else self.map(divided, self.rooms, state, total)
            after.top = top / total
            return after

        workers.follow(prepare)
        weights.state = Spread.promised(normalised)  # type: ignore[assignment]

    def effective_sample_size(self, weights: Any) -> float:
        """Return how many equal weights the sampling weights, which sum to 1, are worth."""
        weights = weights.resolved()
        if weights.squares is None:  # else rows have been drawn by them
            self.square(weights)
        sums, unit = weights.squares
        return 1 / in_ones(self.workers.parts(sums), unit)

    def filter(self, state: Any, kind: type[KalmanFilter] = KalmanFilter, **settings: Any) -> KalmanFilter:
        """Return a filter of a state that is spread."""
        if kind is not KalmanFilter:
            raise ValueError("measurement='out-of-bag' needs all rows on one machine; use 'training'")
        return SpreadFilter(state, self, **settings)

    def measurer(self) -> Any:
        """Return what takes measurements of the rows."""
        return SpreadMeasurer(self)

    def bank(self, prior: Floats, n_filters: int) -> Any:
        """Return a bank of filters that have read no component."""
        return SpreadBank(self, prior, n_filters)

    def draws(self) -> Any:
        """Return where bootstrap samples of the rows come from."""
        together = self.together
        return SpreadDraws(self) if together is None else SpreadGroupDraws(self, together)

    @cached_property
    def once(self) -> Any:
        """Which rows trees are trained on, if some are copies of the same record; None: all."""
        together = self.together
        if together is None or not together.one_record:
            return None
        first = together.without_repeats(np.concatenate(self.workers.parts(self.labels)))  # type: ignore[arg-type]
        return self.sent(first.astype(np.int32))

    def without_copies(self, counts: Any) -> Any:
        """Return how often each row is in a sample to train on: a record that stands twice says no more."""
        if self.once is None:
            return counts
        counts = counts.resolved()
        kept = self.map(np.multiply, counts, self.once)
        kept.sample = counts.sample._replace(
            class_totals=self.workers.total(class_totals, self.labels, kept, len(self.classes))
        )
        return kept

    def square(self, weights: Spread) -> None:
        """Have the squares of weights that sum to 1 summed up along with whatever is asked for next."""
        if weights.top is None:
            weights.top = max(self.workers.parts(self.map(highest, weights)))
        unit = unit_of(weights.top * weights.top, self.n_rows)
        weights.squares = self.workers.want(self.map(square_units, weights, unit)), unit

    def sent(self, values: NDArray[Any]) -> Spread:
        """Send the workers what has a value per row, along the last axis."""
        bounds = [block * ROWS_OF_BLOCK for block in self.first_blocks]
        homes = map(self.workers.home, range(self.workers.n_parts))
        return Spread(
            [
                self.workers.run(as_is, values[..., begin:end], at=home)
                for (begin, end), home in zip(pairwise(bounds), homes, strict=True)
            ]
        )

    def hashes(self) -> SpreadHashes:
        """Return numbers for the rows, by which equal ones are found."""
        return SpreadHashes(self.X)

    @cached_property
    def target(self) -> SpreadTarget:  # type: ignore[override]
        """The labels, as many categories are encoded by them."""
        together = self.together
        weights = self.map(np.multiply, self.base, self.effective_sample_size(self.base))
        if together is None:
            firsts = OfParts([block * ROWS_OF_BLOCK for block in self.first_blocks[:-1]])
            rows = self.map(numbered, self.labels, weights, firsts)
        else:
            groups = self.sent(np.stack([together.sizes[together.numbers], together.first_rows]))
            rows = self.map(grouped, self.labels, weights, groups)
        return SpreadTarget(rows, self.classes, self.seed)

    def whole_weights(self) -> tuple[Any, bool]:
        """Return the base weights as whole numbers, and whether they count rows."""
        if self.uniform:
            return self.map(np.ones_like, self.labels), True
        workers = self.workers
        least = min(part for part in workers.parts(self.map(least_of, self.base)))
        total = self.exact_sum(self.map(np.divide, self.base, least))
        if total < MAX_WEIGHT and all(workers.parts(self.map(are_multiples, self.base, least))):
            return self.map(multiples_of, self.base, least), False
        factor = MAX_WEIGHT / self.exact_sum(self.base)
        return self.map(scaled_by, self.base, factor), False

    @cached_property
    def class_units(self) -> NDArray[np.int32]:
        """The whole weight of each class."""
        units, _ = self.whole_weights()
        totals = self.workers.total(class_totals, self.labels, units, len(self.classes))
        whole: NDArray[np.int32] = totals.astype(np.int32)
        return whole

    def table(self, settings: TreeSettings) -> BinnedTable:
        """Return the table as bins."""
        return self.X.binned(settings, self.target if settings.honest_categories else None)

    def grower(self, settings: TreeSettings, table: BinnedTable, n_threads: int | None = None) -> Any:
        """Return what grows trees on the rows."""
        return SpreadGrower(self, settings, table)

    def tree(self, nodes: Any, gains: Any, leaf_weights: Any, category_sets: Any, leaves: Any) -> GrownTree:
        """Return a tree as growers do, of what its attributes show."""
        arrays = TreeArrays(nodes.view(NODE_DTYPE), gains, leaf_weights, category_sets)
        return SpreadTree.spread(self, arrays, self.workers.shared(arrays.walked), leaves)

    def kept(self) -> TrainingRows:
        """Return the same rows: parts of Dask's tables never change."""
        return self

    def differences(self, other: TrainingRows) -> str:
        """Name what is not the same in other rows: "" if all of it is."""
        assert isinstance(other, SpreadRows)
        return "" if self.X.token == other.X.token else "data"


class SpreadFilter(KalmanFilter):
    """A Kalman filter whose state is spread."""

    def __init__(self, state: Any, rows: SpreadRows, **settings: Any) -> None:
        prior = settings.pop("prior", 0.0)
        super().__init__(0.0, 1.0, **settings)
        self.state, self._rows, self.prior = state, rows, prior

    def _return(self) -> None:
        self.state = self._rows.map(returned, self.state, self.transition, self.prior)

    def _correct(self, measurement: Any, gain: float) -> None:
        self.state = self._rows.map(corrected, self._rows.rooms, self.state, measurement, gain)

    def __deepcopy__(self, memo: dict[int, Any]) -> SpreadFilter:
        copied = object.__new__(SpreadFilter)
        copied.__dict__.update(self.__dict__)
        return copied


class SpreadMeasurer:
    """Takes measurements of the training rows, as `kfhe.engine.arrays.Measurer` does."""

    def __init__(self, rows: SpreadRows) -> None:
        self._rows = rows
        self.measurement: Any = None
        self.missed: Any = None
        n_classes = len(rows.classes)
        self.total = float(sum(rows.workers.parts(rows.map(whole_weight, rows.labels, rows.base, n_classes))))

    def measure(self, state: Any, votes: Any, fusion: float) -> tuple[int, int]:
        """Take a measurement; return the weight of what it misses, and of what the votes alone do."""
        rows, workers = self._rows, self._rows.workers
        n_classes = len(rows.classes)
        self.measurement = self.missed = None  # the last ones make room
        measured = rows.map(measure, rows.rooms, rows.labels, rows.base, n_classes, state, votes, fusion)
        self.measurement, self.missed, sums = measured.items(3)
        missed, alone = zip(*workers.parts(sums), strict=True)
        return sum(missed), sum(alone)

    def misses(self, state: Any) -> int:
        """Return the weight of the rows that a state misses."""
        rows = self._rows
        parts = rows.workers.parts(rows.map(misses, rows.labels, rows.base, len(rows.classes), state))
        return sum(parts)


class SpreadBank:
    """The states of a bank of filters, as `kfhe.engine.bank.HonestBank` has them."""

    def __init__(self, rows: SpreadRows, prior: Floats, n_filters: int) -> None:
        self._rows, self._prior = rows, prior
        self._bank = rows.map(empty_bank, rows.labels, rows.base, prior, n_filters)

    def __deepcopy__(self, memo: dict[int, Any]) -> SpreadBank:
        copied = object.__new__(SpreadBank)
        copied.__dict__.update(self.__dict__)
        return copied

    def update(self, leaves: Any, votes: Floats, counts: Any) -> None:
        """Let a component move the rows that it has not seen."""
        self._bank = self._rows.map(moved, self._bank, leaves, Shared(votes), counts)

    def state(self, b: int) -> Any:
        """Return the state of one filter."""
        return self._rows.map(state_of, self._bank, b)

    @property
    def n_read(self) -> Any:
        """How many components have not seen each row."""
        return self._rows.map(n_read_of, self._bank)

    def brier_scores(self) -> Floats:
        """Return the Brier score of each filter; sums of whole units are exact in any order."""
        scores: Floats = self._rows.workers.total(brier_scores, self._bank)
        return scores

    def misses(self, leaves: Any, votes: Floats, counts: Any) -> tuple[Any, float, float]:
        """Say which rows a component misses, of those that it has not seen, and what they weigh."""
        found = self._rows.map(bank_misses, self._bank, leaves, votes, counts)
        missed, sums = found.items(2)
        wrong, unseen = zip(*self._rows.workers.parts(sums), strict=True)
        return missed, sum(wrong), sum(unseen)


class SpreadTree(GrownTree):
    """A tree whose training rows are spread.

    Attributes
    ----------
    rows : SpreadRows
        The rows.
    walked : Shared or Future
        What workers need of it.
    leaf_parts : Spread
        The leaf of each row.
    """

    rows: SpreadRows
    walked: Any
    leaf_parts: Spread

    @classmethod
    def spread(cls, rows: SpreadRows, arrays: TreeArrays, walked: Any, leaves: Spread) -> SpreadTree:
        """Make a tree of its arrays, of what workers have of these, and of the leaf of each row."""
        nodes = np.ascontiguousarray(arrays.nodes).view(np.uint8)
        tree = cls.from_arrays(nodes, *arrays[1:], np.empty(0, dtype=np.int32))
        tree.rows, tree.walked, tree.leaf_parts = rows, walked, leaves
        return tree

    @property
    def leaves(self) -> Any:
        """Number of the leaf that each training row is in."""
        return self.leaf_parts

    def class_votes(self) -> Any:
        """Return the class that each training row's leaf votes for."""
        return self.rows.map(votes_of_leaves, leaf_classes, self.walked, self.leaf_parts)

    def share_votes(self) -> Any:
        """Return each training row's shares of the classes in its leaf."""
        return self.rows.map(votes_of_leaves, leaf_shares, self.walked, self.leaf_parts)

    def votes(self, leaf_votes: Any) -> Any:
        """Return what the leaf of each training row votes for."""
        return self.rows.map(taken, Shared(leaf_votes), self.leaf_parts)


class SpreadGrower:
    """Grows trees, and finds the leaf of every row."""

    def __init__(self, rows: SpreadRows, settings: TreeSettings, table: BinnedTable) -> None:
        self._rows, self._table = rows, table
        # All columns, or a single one: trees of the same settings and samples are to be told apart
        self._settled = tokenize(repr(settings), table.n_bins, table.low, table.high)
        self._grower = Grower(
            rows.workers,
            table,
            rows.labels,  # type: ignore[arg-type]
            rows.n_rows,
            len(rows.classes),
            settings,
            rows.seed,
        )

    def grow(self, weights: Any, counts: bool, number: int) -> SpreadTree:
        """Grow a tree on the rows of positive weight."""
        rows, name, own = self._rows, uuid4().hex, (self._settled, number)
        arrays = None
        if any(key[:2] == own for key in rows.grown):  # else it need not be known yet what was drawn
            arrays = rows.grown.get((*own, weights.resolved().drawn_as))
        if arrays is None:
            arrays = self._grower.grow(weights, counts, number, name)
            rows.grown[*own, weights.resolved().drawn_as] = arrays
        walked, parts = rows.workers.shared(arrays.walked), OfParts(range(rows.workers.n_parts))
        leaves = rows.map(leaves_in, walked, self._table.codes, self._table.n_bins, name, parts)
        return SpreadTree.spread(rows, arrays, walked, leaves)
