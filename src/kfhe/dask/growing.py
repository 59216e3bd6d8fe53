"""Growing trees on rows that are spread over workers: the same trees as on one machine.

Every decision is made on sums of whole numbers, and these may be added up in any order. Large nodes are split
in rounds: each worker builds the histograms of its own rows, the sums of which are searched for splits. If
there are few parts, each worker does that by itself, and the rounds that are likely needed are sent at once.
Else one task does, and the client sends what that finds. What is below a node of few rows is grown whole, by
a worker that the others send the node's rows to. If only few leaves are wanted, no row is ever sent. If all
rows are in one part, its worker grows the whole tree as one machine would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.dask.nodes import (
    Described,
    advanced,
    built_in,
    completed,
    decided,
    found_ahead,
    grower_of,
    grown_below,
    grown_whole,
    item,
    opened,
    packed_rows,
    parted,
    totals_of,
    with_below,
)
from kfhe.dask.spread import Future, OfParts, Spread
from kfhe.dask.top import FIRST_ROUND, Round, Top
from kfhe.dask.trees import TreeArrays, finished
from kfhe.dask.workers import FEW_PARTS, LOOK_EVERY, Workers, as_is
from kfhe.tables.binned import BinnedTable
from kfhe.tree_settings import TreeSettings

LEAST_SENT = 1024  # rows up to which a node's are sent at once


class Grower:
    """Grows trees on one binned table, as `kfhe.engine.trees.grower.Grower` does on one machine.

    Parameters
    ----------
    workers : Workers
        Where the rows are.
    table : BinnedTable
        The table, of which the bins are spread.
    labels : Spread
        Class of each row.
    n_rows, n_classes : int
        How many there are.
    settings : TreeSettings
        How to grow.
    seed : int
        For `max_features` and random cuts.
    """

    def __init__(
        self,
        workers: Workers,
        table: BinnedTable,
        labels: Spread,
        n_rows: int,
        n_classes: int,
        settings: TreeSettings,
        seed: int,
    ) -> None:
        self._workers, self._codes, self._labels, self._n_rows = workers, table.codes, labels, n_rows
        self._settings = settings
        described = Described(
            table.n_bins, table.categorical, table.low, table.high, n_classes, settings, seed
        )
        self._n_bins, self._n_classes = table.n_bins, n_classes
        self._described = workers.run(as_is, described)
        self._ahead: Spread | None = None  # by which workers find out the leaves of the last tree's rows
        self._whole = workers.each(grower_of, table.codes, labels, self._described)  # for a single part
        self._n_rounds = workers.n_parts.bit_length()  # that the next tree is likely to need
        self._is_hasty = True  # grows trees on samples that may still lack a class, as long as none did
        self._asked, self._known_threads = -LOOK_EVERY, 1  # when it was asked how many threads there are

    def grow(self, weights: Spread, counts: bool, number: int, name: str) -> TreeArrays:
        """Grow a tree on the rows of positive weight; the arguments are those of the local grower.

        The name is another one for each tree; by it, workers remember what they know of its leaves.
        """
        workers = self._workers
        if workers.n_parts == 1:
            tree: TreeArrays
            (tree,) = workers.parts(workers.each(grown_whole, self._whole, weights, counts, number, name))
            return tree
        settings, limited = self._settings, self._limited()
        kept = 0 if limited else settings.max_leaf_nodes or 0, settings.cp
        top = Top(settings, counts, 0 if limited else self._sent_rows())
        described = self._described, self._n_classes
        growth = Growth(workers, self._codes, self._labels, *described, top, number, kept, name)
        if limited or workers.n_parts > FEW_PARTS:
            growth.grow_in_rounds(weights)
        else:
            self._is_hasty &= growth.grow_ahead(weights, self._n_rounds, self._n_threads(), self._is_hasty)
            self._n_rounds = growth.top.n_rounds
        self._ahead = growth.found
        workers.let_go(growth)
        return finished(growth.top.nodes, self._n_classes, *kept)

    def _n_threads(self) -> int:
        """Return how many threads there were a few seconds ago: to ask for each tree would take time."""
        if monotonic() - self._asked > LOOK_EVERY:
            self._asked, self._known_threads = monotonic(), self._workers.n_threads()
        return self._known_threads

    def _sent_rows(self) -> int:
        """Return how many rows a node may have for them to be sent: a part's share of all rows."""
        return max(LEAST_SENT, self._n_rows // self._workers.n_parts)

    def _limited(self) -> bool:
        """Whether so few leaves are wanted that all their histograms are less than the rows are."""
        settings = self._settings
        leaves = min(settings.max_leaf_nodes or 2**62, 2 ** min(settings.max_depth or 62, 62))
        histograms = 2 * leaves * int(self._n_bins.sum()) * self._n_classes * 4
        return histograms <= self._n_rows * (len(self._n_bins) + 6)


@dataclass
class Growth:
    """The growing of one tree."""

    workers: Workers
    codes: Any
    labels: Spread
    described: Future
    n_classes: int
    top: Top  # its root, and then all of it
    number: int
    kept: tuple[int, float]  # how many leaves are kept in the end, and `cp`
    name: str  # by which workers remember what they know of the leaves
    found: Spread | None = None  # as long as somebody holds it, workers find the leaves of their rows

    def _open_root(self, weights: Spread) -> None:
        """Let the workers build the root's histograms."""
        self._rounds: list[Callable[[], Future]] = []  # each starts what completes the round's histograms
        self._tops: Top | Spread = self.top  # as each worker knows it
        self._trees: Spread | None = None  # what is grown below the top, if that was noted
        self._parted: Spread | None = None  # the rows of nodes that are still of use
        self._sums: Spread | None = None  # the histograms of the last round, where each worker has them
        self._open = self.workers.each(opened, weights, self.labels)
        self._built = self._histograms(self._open, FIRST_ROUND)

    def _histograms(self, opened: Spread, now: Round | Spread) -> Spread:
        """Let the workers build the histograms that a round wants."""
        return self.workers.each(built_in, opened, self.codes, self.described, now, self.top.counts)

    def grow_ahead(self, weights: Spread, n_rounds: int, n_groups: int, is_hasty: bool) -> bool:
        """Let the workers grow a tree in so many rounds, and only then ask whether that was enough.

        In haste, it is asked only then what was drawn; return whether that could be.
        """
        if not is_hasty:
            weights.resolved()
        likely = (weights.likely if weights.is_promised else None) or weights.resolved()
        self._begin(likely, n_rounds, n_groups)
        is_right = weights.resolved() is likely
        if not is_right:
            self._begin(weights.resolved(), n_rounds, n_groups)
        self._take_below()
        while not self.top.is_complete:
            self._trees = None
            self.workers.follow(partial(self._note_ahead, 1, n_groups))
            self._take_below()
        return is_right

    def _begin(self, weights: Spread, n_rounds: int, n_groups: int) -> None:
        """Have the root opened, and all else noted with whatever is asked for next."""
        self._open_root(weights)
        self.workers.want(self._built)  # not here, but one task picks all that is small
        self.workers.follow(partial(self._note_ahead, n_rounds, n_groups))

    def _note_ahead(self, n_rounds: int, n_groups: int) -> None:
        """Note rounds, and then what is grown below."""
        self._note_rounds(n_rounds)
        self._note_below(self._tops, n_groups)

    def _note_rounds(self, n: int) -> None:
        """Note rounds in which each worker finds the splits by itself, from the histograms of all parts.

        Rows are parted from the root on each time: were they kept, tasks would have to pick the histograms.
        """
        workers = self.workers
        for _ in range(n):
            self._parted = None  # of the last round: its task need not return them
            if self._sums is None:
                built = workers.everywhere(self._built)
            else:
                built = workers.pieces(self._built, whole=range(workers.n_parts))
            after = workers.each(advanced, self._tops, self._sums, built, self.described, self.number)
            self._tops, now, self._sums = after.items(3)
            self._parted = workers.each(parted, self._open, self.codes, self.described, now)
            self._built = self._histograms(self._parted, now)

    def grow_in_rounds(self, weights: Spread) -> None:
        """Grow a tree by rounds that the client sends; the first begins before it is known what was drawn."""
        workers, likely = self.workers, weights.likely or weights
        self._open_root(likely)
        splits = self._searched()
        n_threads = workers.n_threads()  # asked while they work; new ones help with subtrees
        weights = weights.resolved()
        if weights is not likely:
            self._open_root(weights)
            splits = self._searched()
        self.top.set_root(*self._root_totals(weights))
        while not self.top.is_complete:
            self.top.take(workers.result(splits))
            now = self.top.round
            self._open = self._parted = workers.each(parted, self._open, self.codes, self.described, now)
            if not self.top.is_complete:
                self._built = self._histograms(self._open, now)
                splits = self._searched()
        del self._open  # else it would be kept on the workers,
        if self.top.sent:
            with workers.together():
                self._note_below(self.top, min(n_threads, len(self.top.sent)))
            self._take_below()
        else:
            self._parted = None  # and so would this

    def _root_totals(self, weights: Spread) -> tuple[NDArray[np.int64], int]:
        """Return the weight of each class, and how many rows there are."""
        if weights.sample is not None:
            return weights.sample.class_totals, int(weights.sample.class_totals.sum())
        *sums, n = self.workers.total(totals_of, weights, self.labels, self.n_classes)
        return np.array(sums), int(sum(sums) if self.top.counts else n)

    def _searched(self) -> Future:
        """Let a task complete the histograms that are built now, and search them; return it."""
        workers, now = self.workers, self.top.round
        used = sorted({number for _, with_large, (number, _) in now.families if with_large})
        keys = [self.top.nodes[i].key for i in now.searched]
        with workers.together():
            addends = workers.addends(workers.pieces(self._built))
            histograms = addends, now.families, {i: self._rounds[i]() for i in used}
            self._rounds.append(cache(partial(workers.run, completed, *histograms)))
            return workers.run(decided, *histograms, self.described, self.number, keys)

    def _note_below(self, tops: Top | Spread, n_groups: int) -> None:
        """Send the rows of each small node to one worker, and let it grow what is below.

        Then the leaves of the rows are found, as long as somebody holds what finds them.
        """
        workers = self.workers
        packed, rows = workers.each(packed_rows, self._parted, self.codes, tops, n_groups).items(2)
        self._parted = None  # else they would be kept on the workers
        grown = []
        for g, bundle in enumerate(packed.items(n_groups)):
            bundles = workers.pieces(bundle, whole=[g])  # that of the worker which is to grow stays there
            grown.append(workers.run(grown_below, bundles, self.described, self.number, at=workers.home(g)))
        self._trees = workers.want(Spread([workers.run(item, each, 0) for each in grown]))
        numbered = OfParts(range(workers.n_parts))
        found = workers.each(
            found_ahead, grown, self.described, self.kept, self.codes, rows, self.name, numbered
        )
        self.found = Spread(workers.pieces(found))

    def _take_below(self) -> None:
        """Wait for what is grown below the top."""
        if self._trees is None:
            self.workers.bring()
        assert self._trees is not None
        self.top = with_below(self.workers.parts(self._trees))
