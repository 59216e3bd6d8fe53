"""Training rows that live on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import ldexp
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from kfhe.dask.growing import Grower
from kfhe.dask.nodes import leaves_in
from kfhe.dask.rooms import Rooms
from kfhe.dask.spread import OfParts, Sample, Shared, Spread
from kfhe.dask.trees import TreeArrays, WalkedTree
from kfhe.dask.workers import Workers, added_up
from kfhe.engine.arrays import Measurer, class_totals, correct, highest, sum_of_units, unit_of
from kfhe.engine.bank import HonestBank
from kfhe.engine.draws import REDRAWS, ROWS_OF_BLOCK, block_totals, draw_rows, draws_of_blocks
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.votes import leaf_classes, leaf_shares
from kfhe.forest import NODE_DTYPE
from kfhe.kalman import KalmanFilter
from kfhe.rows import TrainingRows
from kfhe.table import BinnedTable
from kfhe.tree_settings import TreeSettings
from kfhe.validation import MAX_WEIGHT

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]

UNITS_TRIED = 3  # in which a part sums up values before the highest of all is known
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

        def divide() -> None:
            total = self.map(likely_total, workers.everywhere(sums), n)
            likely.append(self.map(divided, self.rooms, state, total))
            likely[0].blocks = workers.everywhere(self.map(block_totals, likely[0]))

        def normalised() -> Spread:
            parts = workers.parts(sums)
            total, top = _total_and_top(workers, state, parts, n)
            self.check_total(total)
            is_likely = total == likely_total(parts, n)
            after = likely.pop() if is_likely else self.map(divided, self.rooms, state, total)
            after.top = top / total
            return after

        workers.follow(divide)
        weights.state = Spread.promised(normalised)  # type: ignore[assignment]

    def effective_sample_size(self, weights: Any) -> float:
        """Return how many equal weights the sampling weights, which sum to 1, are worth."""
        sums, unit = weights.resolved().squares  # rows have been drawn by them
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
        return SpreadDraws(self)

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
        return self.X.binned(settings)

    def grower(self, settings: TreeSettings, table: BinnedTable) -> Any:
        """Return what grows trees on the rows."""
        return SpreadGrower(self, settings, table)

    def tree(self, nodes: Any, gains: Any, leaf_weights: Any, category_sets: Any, leaves: Any) -> GrownTree:
        """Return a tree as growers do, of what its attributes show."""
        arrays = TreeArrays(nodes.view(NODE_DTYPE), gains, leaf_weights, category_sets)
        return SpreadTree.spread(self, arrays, self.workers.shared(arrays.walked), leaves)

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


class SpreadDraws:
    """Bootstrap samples: blocks of rows are drawn first, then rows, where these are."""

    def __init__(self, rows: SpreadRows) -> None:
        self._rows = rows

    def draw(self, weights: Any, iteration: int, attempt: int, redraws: int = REDRAWS) -> Spread:
        """Return how often each row is in the sample; redrawn while a class is missing, but not for ever.

        Whether one is missing is looked at when somebody needs to know.
        """
        rows, workers = self._rows, self._rows.workers
        weights = weights.resolved()
        if weights.top is None:
            weights.top = max(workers.parts(rows.map(highest, weights)))
        totals = weights.blocks or workers.everywhere(rows.map(block_totals, weights))
        # Asked for later, but found out by the task that draws
        unit = unit_of(weights.top * weights.top, rows.n_rows)
        weights.squares = workers.want(rows.map(square_units, weights, unit)), unit
        first = attempt * (REDRAWS + 1)
        likely, likely_totals = self._drawn(weights, totals, (rows.seed, iteration, first))

        def complete() -> Spread:
            counts, of_classes = likely, likely_totals
            for redraw in range(first, first + redraws + 1):
                if redraw > first:
                    counts, of_classes = self._drawn(weights, totals, (rows.seed, iteration, redraw))
                counts.sample = Sample(iteration, redraw, added_up(workers.parts(of_classes)))
                if (counts.sample.class_totals > 0).sum() == rows.n_present:
                    break
            workers.let_go(totals)
            return counts

        promised = Spread.promised(complete)
        promised.likely = likely
        return promised

    def _drawn(self, weights: Spread, totals: Any, keyed: tuple[int, int, int]) -> tuple[Spread, Spread]:
        """Return how often each row is drawn, and how many rows of each class are in each part."""
        rows, spans = self._rows, OfParts([*pairwise(self._rows.first_blocks)])
        counts = rows.map(drawn, weights, self._chosen(totals, keyed), spans, keyed)
        of_classes = rows.map(class_totals, rows.labels, counts, len(rows.classes))
        return counts, rows.workers.want(of_classes)

    def _chosen(self, totals: Any, keyed: tuple[int, int, int]) -> Any:
        """Return how many draws fall into each block: by tasks, unless each part finds out sooner itself."""
        rows, workers, n = self._rows, self._rows.workers, self._rows.n_samples
        if workers.n_parts == 1 or n <= DRAWS_OF_TASK:
            return rows.map(chosen_blocks, totals, 0, n, keyed)
        starts = range(0, n, DRAWS_OF_TASK)
        return workers.sum(
            [workers.run(chosen_blocks, totals, i, min(i + DRAWS_OF_TASK, n), keyed) for i in starts]
        )


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
        self._rows, self._settings, self._table = rows, settings, table
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
        rows, name, own = self._rows, uuid4().hex, (repr(self._settings), number)
        arrays = None
        if any(key[:2] == own for key in rows.grown):  # else it need not be known yet what was drawn
            arrays = rows.grown.get((*own, weights.resolved().drawn_as))
        if arrays is None:
            arrays = self._grower.grow(weights, counts, number, name)
            rows.grown[*own, weights.resolved().drawn_as] = arrays
        walked, parts = rows.workers.shared(arrays.walked), OfParts(range(rows.workers.n_parts))
        leaves = rows.map(leaves_in, walked, self._table.codes, self._table.n_bins, name, parts)
        return SpreadTree.spread(rows, arrays, walked, leaves)


def exact_total(workers: Workers, values: Spread, n: int) -> float:
    """Return the sum of n non-negative values, to the bit that one machine gets; NaN if one is not."""
    return _total_and_top(workers, values, workers.parts(workers.each(unit_sums, values, n)), n)[0]


def _total_and_top(workers: Workers, values: Spread, sums: list[UnitSums], n: int) -> tuple[float, float]:
    """Return the exact sum of n non-negative values, and the highest of them; NaN if one is not.

    ``sums`` is what the parts sum up to, in the units that are likely by what each knows.
    """
    top, total = float(np.max([top for top, _ in sums])), likely_total(sums, n)
    if total is None:
        unit = unit_of(top, n)
        total = in_ones(workers.parts(workers.each(sum_of_units, values, unit)), unit)
    return total, top


def in_ones(sums: list[int], unit: int) -> float:
    """Return the sum of what parts sum to in units."""
    return ldexp(float(sum(sums)), -unit)


# ---------------------------------------------------------------- what workers do


UnitSums = tuple[float, dict[int, int]]  # the highest of some values, and their sum by the unit that it is in


def unit_sums(values: Floats, n: int) -> UnitSums:
    """Return the highest of values, of n in all, and their sum in the units that fit it or one a bit higher.

    The unit is that of the highest value of all parts, most often one of these.
    """
    top = highest(values)
    if np.isnan(top):
        return top, {}
    unit = unit_of(top, n)
    return top, {coarser: sum_of_units(values, coarser) for coarser in range(unit, unit - UNITS_TRIED, -1)}


def likely_total(sums: list[UnitSums], n: int) -> float | None:
    """Return the sum of all values, of n in all; NaN if one is, None if a part has not tried the unit."""
    top = float(np.max([top for top, _ in sums]))
    if np.isnan(top):
        return top
    unit = unit_of(top, n)
    tried = [some.get(unit) for _, some in sums]
    return None if None in tried else in_ones(tried, unit)  # type: ignore[arg-type]


def of_all(function: Callable[[Any], Any], parts: list[Any]) -> Any:
    """Return what a function gives for all parts together."""
    return function(np.concatenate(parts))


def square_units(values: Floats, unit: int) -> int:
    """Return the sum of the squares of values, in units."""
    starts = range(0, len(values), ROWS_OF_BLOCK)  # by blocks, as memory for all squares would take longer
    return sum(sum_of_units(np.square(values[i : i + ROWS_OF_BLOCK]), unit) for i in starts)


def chosen_blocks(
    totals: list[NDArray[np.uint64]], start: int, stop: int, keyed: tuple[int, int, int]
) -> NDArray[np.int64]:
    """Return how many of some draws fall into each block, by the weights of the blocks of each part."""
    return draws_of_blocks(np.concatenate(totals), start, stop, *keyed)


def drawn(
    weights: Floats, chosen: NDArray[np.int64], span: tuple[int, int], keyed: tuple[int, int, int]
) -> Labels:
    """Return how often each row of a span of blocks is drawn."""
    return draw_rows(weights, span[0], chosen[slice(*span)], *keyed)


def corrected(rooms: Rooms, state: Floats, measurement: Floats, gain: float) -> Floats:
    """Return a state that has moved towards a measurement."""
    after = rooms.empty(state.shape)
    np.copyto(after, state)
    correct(after.ravel(), measurement.ravel(), gain)
    return after


def divided(rooms: Rooms, weights: Floats, total: float | None) -> Floats:
    """Return weights divided by their sum; if that is of no use, anything."""
    return np.divide(weights, total or 1.0, out=rooms.empty(weights.shape))


def returned(state: Floats, transition: float, prior: Floats | float) -> Floats:
    """Return a state that has moved back towards the prior."""
    return state * transition + (1 - transition) * prior


def least_of(weights: Floats) -> float:
    """Return the lowest weight."""
    return float(weights.min(initial=np.inf))


def are_multiples(weights: Floats, least: float) -> bool:
    """Return whether weights are multiples of the lowest."""
    multiples = weights / least
    return bool(np.allclose(multiples, np.rint(multiples), rtol=1e-12, atol=0))


def multiples_of(weights: Floats, least: float) -> Labels:
    """Return how many times the lowest weight each is."""
    return np.rint(weights / least).astype(np.int32)


def scaled_by(weights: Floats, factor: float) -> Labels:
    """Return weights as whole numbers; none becomes 0."""
    return np.maximum(np.rint(weights * factor), 1).astype(np.int32)


def whole_weight(labels: Labels, base: Floats, n_classes: int) -> int:
    """Return the weight of all rows, in a measurer's units."""
    return int((base * 2.0**60 + 0.5).astype(np.int64).sum())


def measure(
    rooms: Rooms, labels: Labels, base: Floats, n_classes: int, state: Floats, votes: Any, fusion: float
) -> tuple[Floats, NDArray[np.bool_], tuple[int, int]]:
    """Return a measurement, the rows that it misses, and the weight of what it and the votes alone miss."""
    measurer = Measurer(labels, base, n_classes, measurement=rooms.empty((len(labels), n_classes)))
    sums = measurer.measure(state, votes, fusion)
    return measurer.measurement, measurer.missed, sums


def misses(labels: Labels, base: Floats, n_classes: int, state: Floats) -> int:
    """Return the weight of the rows that a state misses."""
    return Measurer(labels, base, n_classes).misses(state)


def empty_bank(labels: Labels, base: Floats, prior: Floats, n_filters: int) -> HonestBank:
    """Return a bank that has read no component."""
    return HonestBank(labels, base, prior, n_filters)


def moved(bank: HonestBank, leaves: Labels, votes: Floats, counts: Labels) -> HonestBank:
    """Return a bank that has read one component more."""
    after = bank.copy()
    after.update(leaves, votes, counts)
    return after


def n_read_of(bank: HonestBank) -> Labels:
    """Return how many components have not seen each row."""
    return bank.n_read


def state_of(bank: HonestBank, b: int) -> Floats:
    """Return the state of one filter."""
    return bank.state(b)


def brier_scores(bank: HonestBank) -> Floats:
    """Return the Brier score of each filter, as far as these rows go."""
    return bank.brier_scores()


def bank_misses(
    bank: HonestBank, leaves: Labels, votes: Floats, counts: Labels
) -> tuple[NDArray[np.bool_], tuple[float, float]]:
    """Return which rows a component misses, of those that it has not seen, and what they weigh."""
    missed, wrong, unseen = bank.misses(leaves, votes, counts)
    return missed, (wrong, unseen)


def votes_of_leaves(vote: Callable[[Labels], Any], tree: WalkedTree, leaves: Labels) -> Any:
    """Return the votes of the leaves that rows are in, by what is in the leaves."""
    return vote(tree.leaf_weights)[leaves]


def taken(leaf_votes: Any, leaves: Labels) -> Any:
    """Return the votes of the leaves that rows are in."""
    return leaf_votes[leaves]
