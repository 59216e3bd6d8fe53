"""The top of a tree: its large nodes, which are split by sums over the rows of all parts.

Whoever knows the sums goes on as everybody else who knows them does: the client, or each worker by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.splitter import child_key
from kfhe.tree_settings import TreeSettings

if TYPE_CHECKING:
    from kfhe.dask.trees import TreeArrays
    from kfhe.engine.trees.splitter import Split

Integers = NDArray[np.int64]
Parting = tuple[int, int, int, NDArray[np.uint8]]  # a node, its left child, its feature, which bins go left
Family = tuple[bool, bool, tuple[int, int]]  # if the smaller child is searched, the larger one; their parent


class Found(NamedTuple):
    """The best split of a node."""

    split: Split
    cut: int
    threshold: float
    goes_left: NDArray[np.uint8]
    gain: float
    left_totals: Integers
    left_count: int


@dataclass
class TopNode:
    """A node of a tree's top."""

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


class Round(NamedTuple):
    """What workers do next: part nodes, keep some, build histograms of some; and what is made of these."""

    partings: list[Parting]
    kept: list[int]
    built: list[int]
    families: list[Family]  # of which each has one of those that are built
    searched: list[int]  # nodes whose splits are searched for in the end


FIRST_ROUND = Round([], [0], [0], [(True, False, (0, 0))], [0])


class Top:
    """The top of a tree, which grows in rounds.

    Parameters
    ----------
    settings : TreeSettings
        How to grow.
    counts : bool
        Whether weights are numbers of rows.
    sent_rows : int
        How many rows a node may have for them to be sent; 0 if none are, and the nodes that gain most are
        split first.

    Attributes
    ----------
    nodes : list of TopNode
        The nodes.
    sent : list of int
        Those whose rows are to be sent to a worker that grows what is below.
    round : Round
        What workers do now.
    n_rounds : int
        How many rounds there were before.
    partings : list of Parting
        Those of all rounds.
    """

    def __init__(self, settings: TreeSettings, counts: bool, sent_rows: int) -> None:
        self.settings, self.counts, self.sent_rows = settings, counts, sent_rows
        self.nodes = [TopNode(1, (), np.empty(0, dtype=np.int64), 0)]
        self.sent: list[int] = []
        self.round, self.n_rounds, self.partings = FIRST_ROUND, 0, list[Parting]()

    def copy(self) -> Top:
        """Return a top that may be changed."""
        after = Top(self.settings, self.counts, self.sent_rows)
        after.nodes = [replace(node) for node in self.nodes]
        after.sent, after.partings = [*self.sent], [*self.partings]
        after.round, after.n_rounds = self.round, self.n_rounds
        return after

    @property
    def from_root(self) -> Round:
        """What workers do now if they begin with the root."""
        return self.round._replace(partings=self.partings)

    @property
    def is_complete(self) -> bool:
        """Whether no more splits are searched for."""
        return not self.round.searched

    def set_root(self, totals: Integers, count: int) -> None:
        """Note the weight of each class, and how many rows there are."""
        self.nodes[0].totals, self.nodes[0].count = totals, count

    def take(self, splits: list[Found | None]) -> None:
        """Note the splits of the nodes that were searched, and what is to be done next."""
        searched = self.round.searched
        for place, (i, found) in enumerate(zip(searched, splits, strict=True)):
            self.nodes[i].histogram, self.nodes[i].found = (self.n_rounds, place), found
        if self.n_rounds == 0 and self._is_terminal(self.nodes[0]):
            self.nodes[0].found = None
        self.n_rounds += 1
        self.round = self._next_level(searched) if self.sent_rows else self._next_best()
        self.partings += self.round.partings

    def _next_level(self, searched: list[int]) -> Round:
        """Split all nodes of more rows than may be sent."""
        if self.nodes[0].count <= self.sent_rows and not self._is_terminal(self.nodes[0]):
            self.nodes[0].found, self.sent = None, [0]
            return self._round([], [], kept=[0])
        split = [i for i in searched if self.nodes[i].found is not None]
        level = list[int]()
        for i in self._part(split):
            if not self._is_terminal(self.nodes[i]):
                (self.sent if self.nodes[i].count <= self.sent_rows else level).append(i)
        return self._round(split, level, kept=[*level, *self.sent])

    def _next_best(self) -> Round:
        """Split the nodes that gain most, until there are as many leaves as are wanted.

        The nodes of a round are those that would be split if their children, of which nothing is known yet,
        gained nothing. A few too many may be split; the last look, at which nothing is missing, tells which.
        """
        chosen = self._best(self.settings.max_leaf_nodes or 2**62)
        split = [i for i in chosen if self.nodes[i].left < 0]
        if not split:
            for i in set(range(len(self.nodes))) - chosen:
                self.nodes[i].found = None
        level = [i for i in self._part(split) if not self._is_terminal(self.nodes[i])]
        waiting = [i for i, node in enumerate(self.nodes) if node.found and node.left < 0]
        return self._round(split, level, kept=[*level, *waiting])

    def _best(self, max_leaves: int) -> set[int]:
        """Return the nodes to split, best first; the first ones are split as far as is known."""
        chosen: set[int] = set()
        heap = [self._priority(0)] if self.nodes[0].found else []
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

    def _round(self, parents: list[int], level: list[int], kept: list[int]) -> Round:
        """Return what parts the parents' rows, and finds the splits of some of the children."""
        nodes, wanted = self.nodes, set(level)
        partings, built, families, searched = list[Parting](), list[int](), list[Family](), list[int]()
        for i in parents:
            found, children = nodes[i].found, (nodes[i].left, nodes[i].left + 1)
            assert found is not None
            partings.append((i, children[0], found.split["feature"], found.goes_left))
            small, large = sorted(children, key=lambda child: nodes[child].count)
            if wanted & {small, large}:  # the larger one's histograms are what the smaller leaves
                built.append(small)
                families.append((small in wanted, large in wanted, nodes[i].histogram))
                searched += [child for child in (small, large) if child in wanted]
        return Round(partings, [*kept, *built], built, families, searched)

    def groups(self, n: int) -> list[list[int]]:
        """Return the nodes whose rows are sent in n groups, of about as many rows each; none too early."""
        groups: list[list[int]] = [[] for _ in range(n)]
        loads = [(0, g) for g in range(n)]
        sent = self.sent if self.is_complete else []
        for i in sorted(sent, key=lambda i: -self.nodes[i].count):
            load, g = heappop(loads)
            groups[g].append(i)
            heappush(loads, (load + self.nodes[i].count, g))
        return groups
