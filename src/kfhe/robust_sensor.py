"""The robust classifier's sensor: trees that alternate between best and random cuts."""

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

COARSE_LEAF = 5  # minimum rows in a leaf once labels are known to be noisy


class RobustSensor(StoredTrees):
    """Grows large trees, alternately with the best cuts of few features and random cuts of more features.

    Sensors with different errors complement each other.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    settings : TreeSettings
        Settings of the trees, except for the features per split and the size of leaves.
    bank : FilterBank
        The bank, which estimates how noisy the labels are.
    """

    def __init__(self, rows: TrainingRows, settings: TreeSettings, bank: FilterBank) -> None:
        super().__init__(rows, settings)
        self.bank = bank
        self._settings = settings
        n_columns = max(1, len(self._table.schema.columns) - len(self._table.schema.left_out))
        self._few, self._more = int(n_columns**0.5), min(n_columns, int(2 * n_columns**0.5))
        self._growers: dict[tuple[str, int, int], Grower] = {}  # by splitter, features and size of leaves
        self._believed: list[float] = []  # the shrinkage when each tree was grown

    def __getstate__(self) -> dict[str, Any]:
        """Return trees as plain arrays; growers are created again when needed."""
        return {**self.__dict__, "_growers": {}, "_trees": self._trees.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _trees=TreeStore.from_arrays(state["_trees"]))

    @property
    def shrinkage(self) -> float:
        """The current shrinkage of the bank."""
        return self.bank.shrinkage

    def initial(self) -> Floats:
        """Create h_0: a tree with a single leaf, which votes by the class shares."""
        leaf = one_leaf(self.rows)
        self._append(leaf)
        return leaf.share_votes()

    def read(self, counts: Counts, iteration: int, attempt: int) -> TreeVotes:
        """Grow a tree on a sample, and return its votes under each shrinkage."""
        self.keep(iteration)
        sample = self.rows.without_copies(counts)
        tree = self._grower(random=iteration % 2 == 0).grow(sample, True, 2 * iteration + attempt)
        self._append(tree)
        return TreeVotes(tree.leaves, self.rows.leaf_votes(tree, SHRINKAGES))

    def keep(self, n_components: int) -> None:
        """Drop all trees but the first ones."""
        super().keep(n_components)
        del self._believed[n_components:]

    def harvest(self, trace: Trace, *, resumes: bool) -> Forest:
        """Return the forest, with the final shrinkage of the bank."""
        shrinkage = float(SHRINKAGES[self.bank.verdict()])
        return self.forest(trace, copy=resumes, soft=True, shrinkage=shrinkage)

    def votes(self, t: int, encoded: Floats | SparseRows) -> Floats:
        """Return the votes of tree t for other rows, under the shrinkage when it was grown.

        So a resumed run scores a validation set like one that was never stopped.
        """
        nodes, leaf_weights, leaves = self.leaves(t, encoded)
        believed = np.array([self._believed[t]])
        votes: Floats = shrunken_shares(nodes, leaf_weights, believed)[0][leaves]
        return votes

    def _append(self, tree: GrownTree) -> None:
        self._trees.append(tree)
        self._believed.append(self.shrinkage)

    def _grower(self, *, random: bool) -> Grower:
        """Return the grower for random or best cuts, and for the size of leaves that the bank chooses.

        While the emphasis makes trees different enough, all splits consider more features.
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
