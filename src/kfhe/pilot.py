"""The robust classifier's sensor: its first trees find out which ones to go on with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.bank import SHRINKAGES, FilterBank, TreeVotes
from kfhe.engine.trees.growing import Grower
from kfhe.engine.trees.shrinkage import shrunken_shares
from kfhe.engine.trees.storage import TreeStore
from kfhe.forest import NODE_DTYPE, Forest, leaves_of
from kfhe.measurement import Counts
from kfhe.rows import TrainingRows
from kfhe.sensors import one_leaf
from kfhe.sparse import SparseRows
from kfhe.trace import Trace
from kfhe.tree_settings import TreeSettings

Floats = NDArray[np.float64]

COARSE_LEAF = 5  # rows in a leaf, once labels are known to be noisy


class PilotSensor:
    """Grows large trees, of two kinds at first, on the same samples, until the bank has chosen one.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    settings : TreeSettings
        How to grow trees, apart from the features per split and the size of leaves.
    features : dict
        How many features a split looks at, for each kind of tree.
    bank : FilterBank
        Chooses kind and size.
    """

    def __init__(
        self, rows: TrainingRows, settings: TreeSettings, features: dict[str, int], bank: FilterBank
    ) -> None:
        self.rows, self.bank = rows, bank
        self._settings, self._features = settings, features
        self._table = rows.table(settings)
        self._trees = {kind: TreeStore(len(rows.classes)) for kind in bank.kinds}
        self._growers: dict[tuple[int, int], Grower] = {}  # by features per split and size of leaves

    def __getstate__(self) -> dict[str, Any]:
        """Give trees as plain arrays; growers are made again when they are needed."""
        return {
            **self.__dict__,
            "_growers": {},
            "_trees": {kind: trees.arrays() for kind, trees in self._trees.items()},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        trees = {kind: TreeStore.from_arrays(arrays) for kind, arrays in state["_trees"].items()}
        self.__dict__.update(state, _trees=trees)

    @property
    def kind(self) -> str:
        """The kind of trees that the bank believes in."""
        return self.bank.kind

    @property
    def shrinkage(self) -> float:
        """The shrinkage that the bank believes in."""
        return self.bank.shrinkage

    def initial(self) -> Floats:
        """Make h_0: a tree of one leaf, whose votes are the shares of the classes."""
        leaf = one_leaf(self.rows)
        for trees in self._trees.values():
            trees.append(leaf)
        return leaf.share_votes()

    def read(self, counts: Counts, iteration: int, attempt: int) -> dict[str, TreeVotes]:
        """Grow a tree of each kind on a sample, and return its votes under each shrinkage."""
        self.keep(iteration)
        votes = {}
        for kind in self.bank.kinds:
            tree = self._grower(kind).grow(counts, True, 2 * iteration + attempt)
            self._trees[kind].append(tree)
            shares = shrunken_shares(tree.nodes.view(NODE_DTYPE), tree.leaf_weights, SHRINKAGES)
            votes[kind] = TreeVotes(tree.leaves, shares)
        return votes

    def keep(self, n_components: int) -> None:
        """Drop all trees but the first ones."""
        for trees in self._trees.values():
            trees.keep(n_components)

    def harvest(self, trace: Trace, *, resumes: bool) -> Forest:
        """Return the forest of the kind that was chosen, with the shrinkage that the bank ends at."""
        return Forest.stored_in(
            self._trees[self.bank.kind],
            self._table.schema,
            self.rows.classes,
            trace["step"],
            soft=True,
            copy=resumes,
            shrinkage=float(SHRINKAGES[self.bank.verdict()]),
        )

    def encode(self, X: Any) -> Floats | SparseRows:
        """Return other rows as numbers."""
        return self._table.schema.rows(X)

    def votes(self, t: int, encoded: Floats | SparseRows) -> Floats:
        """Return what tree t votes for other rows, under the shrinkage that is believed in now."""
        nodes, leaf_weights, category_sets = self._trees[self.bank.kind].tree(t)
        nodes = nodes.view(NODE_DTYPE)
        leaves = leaves_of(nodes, category_sets, encoded, self.rows.n_threads)
        shrinkage = SHRINKAGES[self.bank.chosen : self.bank.chosen + 1]
        votes: Floats = shrunken_shares(nodes, leaf_weights, shrinkage)[0][leaves]
        return votes

    def _grower(self, kind: str) -> Grower:
        """Return what grows trees of a kind, with leaves as large as the bank wants them.

        Emphasis makes trees differ enough: while there is some, splits look at more features.
        """
        rows, bank = self.rows, self.bank
        most = max(self._features.values())
        key = most if bank.clean else self._features[kind], COARSE_LEAF if bank.coarse else 1
        if key not in self._growers:
            of_use = {most, *(self._features[kind] for kind in bank.kinds)}
            self._growers = {old: its for old, its in self._growers.items() if old[0] in of_use}
            settings = replace(self._settings, max_features=key[0], min_samples_leaf=key[1])
            self._growers[key] = rows.grower(settings, self._table)
        return self._growers[key]
