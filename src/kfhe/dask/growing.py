"""Growing trees on rows that are spread over workers: the same trees as on one machine.

Every decision is made on sums of whole numbers, and these may be added up in any order. Large nodes are split
in rounds: each worker builds the histograms of its own rows, the sums of which are searched for splits by one
task, and what that finds is sent back. What is below a node of few rows is grown whole, by a worker that the
others send the node's rows to. If only few leaves are wanted, no row is ever sent. If all rows are in one
part, its worker grows the whole tree as one machine would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.dask.nodes import (
    Described,
    Found,
    Parting,
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
)
from kfhe.dask.spread import Future, OfParts, Spread
from kfhe.dask.trees import TreeArrays, finished
from kfhe.dask.workers import Workers, as_is
from kfhe.engine.trees.nodes import child_key
from kfhe.table import BinnedTable
from kfhe.tree_settings import TreeSettings

LEAST_SENT = 1024  # rows up to which a node's are sent at once

Integers = NDArray[np.int64]


@dataclass
class TopNode:
    """A node of a tree's top, which the client knows."""

    key: int
    path: tuple[int, ...]  # the sides that lead to it from the root
    totals: Integers  # weight of each class
    count: int  # rows as min_samples counts them
    found: Found | None = None  # its best split
    histogram: tuple[int, int] = (0, 0)  # in which round its histograms were made, and at which place
    left: int = -1  # its left child; the right one is next
    below: TreeArrays | None = None  # what a worker has grown from here

    @property
    def depth(self) -> int:
        """How many splits lead to it."""
        return len(self.path)


class Grower:
    """Grows trees on one binned table, as `kfhe.engine.trees.growing.Grower` does on one machine.

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
        growth = Growth(workers, self._codes, self._described, settings, self._n_classes, counts, number)
        growth.begin(weights, self._labels)
        kept = 0 if limited else settings.max_leaf_nodes or 0, settings.cp
        if limited:
            growth.grow_best_first(settings.max_leaf_nodes or 2**62)
        else:
            sent = growth.grow_levels(self._sent_rows())
            self._ahead = growth.send(sent, kept, name) if sent else None
            workers.let_go(growth)
        return finished(growth.nodes, self._n_classes, *kept)

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
    described: Future
    settings: TreeSettings
    n_classes: int
    counts: bool  # weights are numbers of rows
    number: int
    nodes: list[TopNode] = field(default_factory=list)

    def begin(self, weights: Spread, labels: Spread) -> None:
        """Start with the root, whose split is searched for before it is known how many rows it has."""
        likely = weights.likely or weights
        self._search_root(likely, labels)
        self._n_threads = self.workers.n_threads()  # asked while they work; new ones help with subtrees
        weights = weights.resolved()
        if weights is not likely:
            self._search_root(weights, labels)
        root = self.nodes[0]
        if weights.sample is not None:
            root.totals, root.count = weights.sample.class_totals, int(weights.sample.class_totals.sum())
        else:
            *sums, n = self.workers.total(totals_of, weights, labels, self.n_classes)
            root.totals, root.count = np.array(sums), int(sum(sums) if self.counts else n)

    def _search_root(self, weights: Spread, labels: Spread) -> None:
        """Let the workers build the root's histograms and search them."""
        self.nodes = [TopNode(1, (), np.empty(0, dtype=np.int64), 0)]
        self._rounds: list[Callable[[], Future]] = []  # each starts what completes the round's histograms
        self._open = self.workers.each(opened, weights, labels)
        self._root_split = self._started([], [0], [0], [(True, False, (0, 0))], [0])

    def grow_levels(self, sent_rows: int) -> list[int]:
        """Split all nodes of more rows than that, level by level; return those whose rows are to be sent."""
        sent, level = self._parted_by_size([0], sent_rows)
        if level:
            self._take(self._root_split, [0])
        while level:
            split = [i for i in level if self.nodes[i].found is not None]
            children = self._part(split)
            more, level = self._parted_by_size(children, sent_rows)
            sent += more
            self._search(split, level, keep=[*level, *sent])
        return sent

    def grow_best_first(self, max_leaves: int) -> None:
        """Split the nodes that gain most, until there are so many leaves.

        The nodes of a round are those that would be split if their children, of which nothing is known yet,
        gained nothing. A few too many may be split; the last look, at which nothing is missing, tells which.
        """
        if self._is_terminal(self.nodes[0]):
            return
        self._take(self._root_split, [0])
        while True:
            chosen = self._best(max_leaves)
            split = [i for i in chosen if self.nodes[i].left < 0]
            if not split:
                break
            children = self._part(split)
            level = [i for i in children if not self._is_terminal(self.nodes[i])]
            waiting = [i for i, node in enumerate(self.nodes) if node.found and node.left < 0]
            self._search(split, level, keep=[*level, *waiting])
        for i in set(range(len(self.nodes))) - chosen:
            self.nodes[i].found = None

    def _best(self, max_leaves: int) -> set[int]:
        """Return the nodes to split, best first; the first ones are split as far as is known."""
        chosen: set[int] = set()
        heap = [self._priority(0)] if self.nodes[0].found else []
        heapify(heap)
        while heap and len(chosen) + 1 < max_leaves:
            i = heappop(heap)[-1]
            chosen.add(i)
            left = self.nodes[i].left
            for child in (left, left + 1) if left >= 0 else ():
                if self.nodes[child].found is not None:
                    heappush(heap, self._priority(child))
        return chosen

    def _priority(self, i: int) -> tuple[Any, ...]:
        """Return what is least for the node to split first: it gains most, or its parent is further left."""
        node = self.nodes[i]
        assert node.found is not None
        return -node.found.gain, node.path[:-1], node.path[-1:], i

    def _is_terminal(self, node: TopNode) -> bool:
        settings = self.settings
        return (
            node.depth >= (settings.max_depth or 2**30)
            or node.count < max(settings.min_samples_split, 2 * settings.min_samples_leaf)
            or int((node.totals > 0).sum()) < 2
        )

    def _parted_by_size(self, some: list[int], sent_rows: int) -> tuple[list[int], list[int]]:
        """Return which nodes' rows are to be sent and which nodes to be split here; the others are leaves."""
        going_on = [i for i in some if not self._is_terminal(self.nodes[i])]
        small = {i for i in going_on if self.nodes[i].count <= sent_rows}
        return sorted(small), [i for i in going_on if i not in small]

    def _part(self, some: list[int]) -> list[int]:
        """Part the rows of nodes between two children each; return these."""
        children = []
        for i in some:
            node = self.nodes[i]
            assert node.found is not None
            node.left = len(self.nodes)
            totals = [node.found.left_totals, node.totals - node.found.left_totals]
            counts = [node.found.left_count, node.count - node.found.left_count]
            for side in (0, 1):
                children.append(len(self.nodes))
                self.nodes.append(
                    TopNode(child_key(node.key, side), (*node.path, side), totals[side], counts[side])
                )
        return children

    def _search(self, parents: list[int], some: list[int], keep: list[int]) -> None:
        """Let the workers part the parents' rows, and find the splits of some of the children."""
        nodes, searched = self.nodes, set(some)
        partings = []
        for i in parents:
            found = nodes[i].found
            assert found is not None
            partings.append((i, nodes[i].left, found.split["feature"], found.goes_left))
        families = []  # of which histograms are made: the smaller child, the larger one, their parent
        for i in parents:
            small, large = sorted((nodes[i].left, nodes[i].left + 1), key=lambda child: nodes[child].count)
            if searched & {small, large}:
                families.append((small, large, i))
        plan = [(small in searched, large in searched, nodes[i].histogram) for small, large, i in families]
        order = [child for small, large, _ in families for child in (small, large) if child in searched]
        splits = self._started(partings, keep, [small for small, _, _ in families], plan, order)
        self._take(splits, order)

    def _started(
        self,
        partings: list[Parting],
        keep: list[int],
        made: list[int],
        plan: list[tuple[bool, bool, tuple[int, int]]],
        order: list[int],
    ) -> Future | None:
        """Part nodes, build some histograms, complete them by the plan, and search them; return the task."""
        workers = self.workers
        after = workers.each(
            parted, self._open, self.codes, self.described, partings, [*keep, *made], made, self.counts
        )
        self._open, built = after.items(2)
        if not made:
            return None
        used = sorted({number for _, with_large, (number, _) in plan if with_large})
        keys = [self.nodes[i].key for i in order]
        with workers.together():
            histograms = workers.addends(workers.pieces(built)), plan, {i: self._rounds[i]() for i in used}
            self._rounds.append(cache(partial(workers.run, completed, *histograms)))
            return workers.run(decided, *histograms, self.described, self.number, keys)

    def _take(self, splits: Future | None, order: list[int]) -> None:
        """Note the splits of nodes, which the last round has found, if it had any to find."""
        if splits is None:
            return
        for place, (i, each) in enumerate(zip(order, self.workers.result(splits), strict=True)):
            self.nodes[i].histogram, self.nodes[i].found = (len(self._rounds) - 1, place), each

    def send(self, some: list[int], kept: tuple[int, float], name: str) -> Spread:
        """Send the rows of each node to one worker, and let it grow what is below.

        Meanwhile the leaves of the rows are found, as long as somebody holds what is returned.
        """
        workers = self.workers
        n_groups = min(self._n_threads, len(some))
        loads, groups = [(0, g) for g in range(n_groups)], [[] for _ in range(n_groups)]  # type: ignore[var-annotated]
        for i in sorted(some, key=lambda i: -self.nodes[i].count):
            load, g = heappop(loads)
            groups[g].append(i)
            heappush(loads, (load + self.nodes[i].count, g))
        below = [*chain(*groups)]
        packed, rows = workers.each(packed_rows, self._open, self.codes, groups).items(2)
        del self._open  # else it would be kept on the workers
        grown: list[Future] = []
        numbered = OfParts(range(workers.n_parts))
        with workers.together():
            for group, bundle in zip(groups, packed.items(n_groups), strict=True):
                roots = [(self.nodes[i].key, self.nodes[i].depth) for i in group]
                arguments = roots, workers.pieces(bundle), self.described, self.counts, self.number
                grown.append(workers.run(grown_below, *arguments))
            trees = [workers.run(item, each, 0) for each in grown]
            ahead = workers.each(
                found_ahead, self.nodes, below, grown, self.described, kept, self.codes, rows, name, numbered
            )
            ahead = Spread(workers.pieces(ahead))
        for i, tree in zip(below, chain(*workers.result(trees)), strict=True):
            self.nodes[i].below = tree
        return ahead
