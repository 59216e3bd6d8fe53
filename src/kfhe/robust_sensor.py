"""The robust classifier's sensor: trees with the best cuts and with random cuts in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.grower import Grower
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.leaf_votes import shrunken_shares
from kfhe.engine.trees.tree_store import TreeStore
from kfhe.filter_bank import SHRINKAGES, FilterBank, TreeVotes
from kfhe.forest import Forest
from kfhe.measurement import Counts
from kfhe.rows import TrainingRows
from kfhe.sensors import StoredTrees, one_leaf
from kfhe.tables.columns import SparseRows
from kfhe.trace import Trace
from kfhe.tree_settings import TreeSettings

Floats = NDArray[np.float64]

COARSE_LEAF = 5  # rows in a leaf, once labels are known to be noisy


class RobustSensor(StoredTrees):
    """Grows large trees, in turn with the best cuts of few features and with random cuts of more.

    Sensors that err in different ways are worth more together than any of them.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    settings : TreeSettings
        How to grow trees, apart from the features per split; leaves may have to be larger.
    bank : FilterBank
        Says how noisy the labels look.
    """

    def __init__(self, rows: TrainingRows, settings: TreeSettings, bank: FilterBank) -> None:
        super().__init__(rows, settings)
        self.bank = bank
        self._settings = settings
        n_columns = max(1, len(self._table.schema.columns) - len(self._table.schema.left_out))
        self._few, self._more = int(n_columns**0.5), min(n_columns, int(2 * n_columns**0.5))
        self._growers: dict[tuple[str, int, int], Grower] = {}  # by splitter, features, size of leaves
        self._believed: list[float] = []  # the shrinkage that each tree was grown under

    def __getstate__(self) -> dict[str, Any]:
        """Give trees as plain arrays; growers are made again when they are needed."""
        return {**self.__dict__, "_growers": {}, "_trees": self._trees.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _trees=TreeStore.from_arrays(state["_trees"]))

    @property
    def shrinkage(self) -> float:
        """The shrinkage that the bank believes in."""
        return self.bank.shrinkage

    def initial(self) -> Floats:
        """Make h_0: a tree of one leaf, whose votes are the shares of the classes."""
        leaf = one_leaf(self.rows)
        self._append(leaf)
        return leaf.share_votes()

    def read(self, counts: Counts, iteration: int, attempt: int) -> TreeVotes:
        """Grow a tree on a sample, and return its votes under each shrinkage."""
        self.keep(iteration)
        sample = self.rows.without_copies(counts)
        tree = self._grower(random=iteration % 2 == 0).grow(sample, True, 2 * iteration + attempt)
        self._append(tree)
        shares = shrunken_shares(tree.nodes, tree.leaf_weights, SHRINKAGES, self.rows.n_threads)
        return TreeVotes(tree.leaves, shares)

    def keep(self, n_components: int) -> None:
        """Drop all trees but the first ones."""
        super().keep(n_components)
        del self._believed[n_components:]

    def harvest(self, trace: Trace, *, resumes: bool) -> Forest:
        """Return the forest, with the shrinkage that the bank ends at."""
        shrinkage = float(SHRINKAGES[self.bank.verdict()])
        return self.forest(trace, copy=resumes, soft=True, shrinkage=shrinkage)

    def votes(self, t: int, encoded: Floats | SparseRows) -> Floats:
        """Return what tree t votes for other rows, under the shrinkage that was believed in as it grew.

        So a run that goes on scores a validation set as one that was never stopped.
        """
        nodes, leaf_weights, leaves = self.leaves(t, encoded)
        believed = np.array([self._believed[t]])
        votes: Floats = shrunken_shares(nodes, leaf_weights, believed)[0][leaves]
        return votes

    def _append(self, tree: GrownTree) -> None:
        self._trees.append(tree)
        self._believed.append(self.shrinkage)

    def _grower(self, *, random: bool) -> Grower:
        """Return what grows trees with random or the best cuts, and with leaves as large as the bank wants.

        Emphasis makes trees differ enough: while there is some, all splits look at more features.
        """
        splitter, features = "random" if random else "best", self._few
        if random or self.bank.clean:
            features = self._more
        smallest = max(self._settings.min_samples_leaf, COARSE_LEAF if self.bank.coarse else 1)
        key = splitter, features, smallest
        if key not in self._growers:
            self._growers = {old: its for old, its in self._growers.items() if old[-1] == key[-1]}
            settings = replace(
                self._settings, splitter=splitter, max_features=features, min_samples_leaf=key[-1]
            )
            self._growers[key] = self.rows.grower(settings, self._table)
        return self._growers[key]
