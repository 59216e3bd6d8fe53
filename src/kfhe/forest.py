"""The weighted forest: a fitted ensemble of native trees, stored in a few arrays."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.compact import CompactTrees, compact
from kfhe.engine.trees.leaf_votes import leaf_classes, leaf_shares, shrunken_shares_of_all
from kfhe.engine.trees.predictor import add_trees, apply
from kfhe.engine.trees.tree_store import TreeStore, gains_of_features
from kfhe.ensemble import Ensemble, variance, variance_from
from kfhe.filter_bank import SHRINKAGES
from kfhe.tables.columns import SparseRows, blocks
from kfhe.tables.schema import Schema

Floats = NDArray[np.float64]

LEAF, NUMERIC, CATEGORICAL, MISSING_LEFT = 0, 1, 2, 4
MANY = 1 << 22  # maximum cells of a table of trees and features that is made at once
# Settings of how leaves vote and how scores become probabilities and decisions
SCORE_SETTINGS = ("shrinkage", "sharpness", "class_shares", "prior_power")
DECISIONS: dict[Any, float] = {"balanced": 0.6, "likeliest": 0.0}  # exponents of the class shares
STEPS_OF_SHARPNESS = 8
NO_CLASSES = np.zeros(1, dtype=np.int32)  # of leaves that all vote softly
FEWEST_ROWS = 16  # that walk down compact trees: as many as they take side by side

# The same layout as in compiled code: Node in engine/trees/layout.pxd.
NODE_DTYPE = np.dtype(
    [("threshold", "f8"), ("left", "i4"), ("feature", "u2"), ("kind", "u1"), ("cut", "u1")], align=False
)


@dataclass(frozen=True)
class Forest(Ensemble):
    """A sequence of trees, h_0 first, with their weights.

    Attributes
    ----------
    schema : Schema
        How tables are encoded.
    classes : ndarray
        The class labels.
    soft : bool
        Whether trees vote by the class shares of their leaves; h_0 always does.
    steps : ndarray of shape (n_trees - 1,)
        How far each tree after h_0 moved the state towards its votes.
    transitions : ndarray of shape (n_trees - 1,), or 1.0
        Share of the state that was kept before each step; the rest is that of h_0.
    nodes : structured array
        All nodes. Siblings are neighbours. `left` is relative to the first node of the tree; for a leaf, it
        is the number of the leaf in its tree.
    gains : ndarray
        How much each split lowers the weighted Gini impurity.
    leaf_weights : int32 array of shape (n_leaves, n_classes)
        Weight of the training rows of each class, by leaf.
    category_sets : uint64 array of shape (n_sets, 4)
        Bit sets of the bins that go left at categorical splits.
    tree_nodes, tree_leaves, tree_sets : int64 arrays of shape (n_trees + 1,)
        Offsets of each tree's nodes, leaves and sets, and the total.
    shrinkage : float
        How much votes of leaves are shrunk towards those of their ancestors, if trees vote softly.
    sharpness : float
        Exponent that turns scores into probabilities.
    class_shares : tuple of float
        Class shares; empty: those in h_0.
    prior_power : float
        Exponent of the class shares, by which probabilities are divided for predictions.
    """

    schema: Schema
    classes: NDArray[Any]
    soft: bool
    steps: Floats
    nodes: NDArray[Any]
    gains: Floats
    leaf_weights: NDArray[np.int32]
    category_sets: NDArray[np.uint64]
    tree_nodes: NDArray[np.int64]
    tree_leaves: NDArray[np.int64]
    tree_sets: NDArray[np.int64]
    transitions: Floats | float = 1.0
    shrinkage: float = 0.0
    sharpness: float = 1.0
    class_shares: tuple[float, ...] = ()
    prior_power: float = 0.0

    @classmethod
    def stored_in(cls, trees: TreeStore, *, copy: bool = False, **others: Any) -> Forest:
        """Create a forest from the trees of a store, by reference or copied; other fields by name."""
        arrays: dict[str, Any] = trees.arrays(copy=copy)
        nodes = arrays.pop("nodes").view(NODE_DTYPE)
        return cls(nodes=nodes, **arrays, **others)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only: another thread may be filling the cache."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def __len__(self) -> int:
        return len(self.tree_nodes) - 1

    def __getitem__(self, t: Any) -> Any:
        if isinstance(t, slice):
            return [self[i] for i in range(*t.indices(len(self)))]
        if not -len(self) <= t < len(self):
            raise IndexError(f"there are {len(self)} trees, got {t}")
        return Tree(self, t % len(self))

    @cached_property
    def leaf_classes(self) -> NDArray[np.int32]:
        """Predicted class of each leaf; ties go to the first one."""
        return leaf_classes(self.leaf_weights)

    @property
    def class_counts(self) -> NDArray[np.int64]:
        """Weight of the training rows of each class; without weights, their number."""
        counts: NDArray[np.int64] = self.leaf_weights[: self.tree_leaves[1]].sum(axis=0, dtype=np.int64)
        return counts

    def compact(self, *, gaps: bool = False, n_threads: int = 1) -> CompactTrees | None:
        """Return the compact trees, with or without missing values; None if they can't be built."""
        name = "compact_for_gaps" if gaps else "compact_trees"
        if name not in self.__dict__:
            trees = self.nodes, self.category_sets, self.tree_nodes, self.tree_sets, self.tree_leaves
            self.__dict__[name] = compact(*trees, self.leaf_weights, len(self.schema.names), gaps, n_threads)
        made: CompactTrees | None = self.__dict__[name]
        return made

    def leaf_votes(self, n_threads: int = 1) -> Floats:
        """Return what the leaves of the trees that vote softly vote for: the shares of their classes.

        These are all trees of a soft forest, otherwise h_0 only.
        """
        if "votes" not in self.__dict__:
            if self.shrinkage == 0:
                weights = self.leaf_weights if self.soft else self.leaf_weights[: self.tree_leaves[1]]
                votes = leaf_shares(weights, n_threads)
            else:
                trees = self.nodes, self.leaf_weights, self.tree_nodes, self.tree_leaves
                votes = shrunken_shares_of_all(*trees, self.shrinkage, n_threads)
            self.__dict__["votes"] = votes
        found: Floats = self.__dict__["votes"]
        return found

    @cached_property
    def leaf_squares(self) -> Floats:
        """Squared length of each leaf's vote, as one column; 1 for a hard vote."""
        squares = np.ones((len(self.leaf_weights), 1))
        votes = self.leaf_votes()
        squares[: len(votes), 0] = (votes**2).sum(axis=1)
        return squares

    @cached_property
    def neighbours(self) -> tuple[Forest, ...]:
        """The same trees with the next lower and next higher shrinkage of the bank, if any."""
        lower, higher = SHRINKAGES[self.shrinkage > SHRINKAGES], SHRINKAGES[self.shrinkage < SHRINKAGES]
        return tuple(replace(self, shrinkage=float(each)) for each in (*lower[-1:], *higher[:1]))

    @cached_property
    def class_factors(self) -> Floats:
        """Factors of the scores, by class, before the highest one is predicted."""
        shares = np.array(self.class_shares) if self.class_shares else self.tree_votes(0).mean(axis=0)
        power = -self.prior_power / self.sharpness
        return np.where(shares > 0, np.maximum(shares, np.finfo(np.float64).tiny) ** power, 0.0)

    def decide(self, scores: Floats) -> NDArray[np.intp]:
        """Return the position of the class with the highest score; ties go to the first one."""
        return super().decide(scores * self.class_factors if self.prior_power else scores)

    def decisions(self, X: Any, n_threads: int) -> NDArray[np.intp]:
        """Return the predicted class of each row; trees that can't change it any more are skipped."""
        return self.encoded_decisions(self.encoded(X), n_threads)

    def encoded_decisions(self, rows: Floats | SparseRows, n_threads: int) -> NDArray[np.intp]:
        """Return the same for encoded rows."""
        scores = np.zeros((len(rows), len(self.classes)))
        factors = self.class_factors if self.prior_power else np.ones(len(self.classes))
        self._add_values(
            rows, self.leaf_votes(n_threads), 0, len(self), self.weights, scores, n_threads, factors=factors
        )
        return self.decide(np.minimum(scores, 1.0, out=scores))

    def probabilities(self, scores: Floats) -> Floats:
        """Return probabilities of the true classes, from scores, which are for the given labels.

        `kfhe.calibration` explains why they are powers of the scores.
        """
        return scores if self.sharpness == 1 else sharpened(scores, self.sharpness)

    def tree_votes(self, t: int) -> Floats:
        """Return the votes of the leaves of tree t: a score per class."""
        leaves = slice(*self.tree_leaves[t : t + 2])
        if self.soft or t == 0:
            return self.leaf_votes()[leaves]
        votes: Floats = np.eye(len(self.classes))[self.leaf_classes[leaves]]
        return votes

    def encoded(self, X: Any) -> Floats | SparseRows:
        """Return rows as numbers."""
        return self.schema.rows(X)

    def add(
        self,
        rows: Floats | SparseRows,
        first: int,
        last: int,
        weights: Floats,
        total: Floats | None,
        n_threads: int,
    ) -> Floats:
        """Add the weighted votes of some trees to a sum, or to a new one (None)."""
        total = np.zeros((len(rows), len(self.classes))) if total is None else total
        self._add_values(rows, self.leaf_votes(n_threads), first, last, weights, total, n_threads)
        return total

    def _add_values(
        self,
        rows: Floats | SparseRows,
        values: Floats,
        first: int,
        last: int,
        weights: Floats,
        total: Floats,
        n_threads: int,
        *,
        factors: Floats | None = None,
    ) -> None:
        """Add the values of the rows' leaves; leaves beyond the last value cast a hard vote.

        With factors of the classes, stop when the highest product of score and factor is certain.
        """
        classes = self.leaf_classes if len(values) < len(self.leaf_weights) else NO_CLASSES
        for some, numbers in blocks(rows):
            gaps = bool(np.isnan(numbers.max(initial=0.0)))
            add_trees(
                self.nodes,
                self.category_sets,
                classes,
                values,
                self.tree_nodes,
                self.tree_leaves,
                self.tree_sets,
                weights,
                first,
                last,
                not (gaps or len(self.category_sets)),
                numbers,
                total[some],
                n_threads,
                self._compact_for(len(numbers), last - first, gaps, n_threads),
                factors,
            )

    def _compact_for(self, n_rows: int, n_trees: int, gaps: bool, n_threads: int) -> CompactTrees | None:
        """Return the compact trees if they are faster for this number of rows.

        They are built once more rows have been predicted than the trees have nodes. All values are ranked
        first, so there must be enough trees, too.
        """
        if n_rows < FEWEST_ROWS or n_trees < len(self.schema.names):
            return None
        walks = self.__dict__["walks"] = self.__dict__.get("walks", 0) + n_rows * n_trees
        return self.compact(gaps=gaps, n_threads=n_threads) if walks >= len(self.nodes) else None

    def spread(self, X: Any, n_threads: int) -> Floats:
        """Return how far the trees disagree on each row."""
        rows = self.encoded(X)
        scores = self.add(rows, 0, len(self), self.weights, None, n_threads)
        squares = np.zeros((len(rows), 1))
        self._add_values(rows, self.leaf_squares, 0, len(self), self.weights, squares, n_threads)
        return variance_from(scores, squares[:, 0])

    def bank_spread(self, X: Any, n_threads: int) -> Floats:
        """Return the variance of each row's scores between neighbouring shrinkages."""
        forests = (self, *self.neighbours)
        scores = (forest.scores(X, n_threads) for forest in forests)
        return variance(scores, [1 / len(forests)] * len(forests))

    def leaves(self, X: Any, n_threads: int) -> NDArray[np.int32]:
        """Return the number of each row's leaf, one column per tree."""
        rows = self.encoded(X)
        found = np.empty((len(rows), len(self)), dtype=np.int32)
        for some, numbers in blocks(rows):
            for t, tree in enumerate(self):
                found[some, t] = apply(tree.nodes, tree.category_sets, numbers, n_threads)
        return found

    def importances(self, n_threads: int = 1) -> Floats:
        """Return each column's share of the trees' gains, trees averaged by weight."""
        total = np.zeros(len(self.schema.columns))
        step = max(1, MANY // max(1, len(self.schema.names)))
        for first in range(0, len(self), step):  # many trees at once, fewer if the table is wide
            some = slice(first, first + step)
            for weight, shares in zip(self.weights[some], self.column_shares(some, n_threads), strict=True):
                total += weight * shares
        return total / (total.sum() or 1.0)  # trees without splits have no gain

    def column_shares(self, trees: slice, n_threads: int = 1) -> Floats:
        """Return each column's share of the gains of some trees' splits; all zero for a tree without any."""
        starts = self.tree_nodes[trees.start : trees.stop + 1]
        found = gains_of_features(self.nodes, self.gains, starts, len(self.schema.names), n_threads)
        columns = self.schema.by_column(found)
        totals = columns.sum(axis=1, keepdims=True)
        return np.divide(columns, totals, out=columns, where=totals > 0)

    def digest(self) -> str:
        """Return a hex digest of everything that predictions depend on."""
        trees = hashlib.sha256(repr((self.classes.tolist(), self.soft, self.schema.categories)).encode())
        for column in fields(self):
            value = getattr(self, column.name)
            if isinstance(value, np.ndarray) and column.name not in (
                "classes",
                "gains",
                "steps",
                "transitions",
            ):
                trees.update(f"{column.name}{value.shape}".encode())
                trees.update(value.tobytes())
        if self.schema.rules:
            trees.update(repr(self.schema.rules).encode())
        for encoding in self.schema.encodings.values():
            trees.update(repr(encoding.categories).encode() + encoding.shares.tobytes())
        for setting in SCORE_SETTINGS:
            value = getattr(self, setting)
            if value != getattr(Forest, setting):  # not the default
                numbers = value if isinstance(value, tuple) else (value,)
                trees.update(f"{setting}{','.join(number.hex() for number in numbers)}".encode())
        return hashlib.sha256(trees.hexdigest().encode() + self.weights.tobytes()).hexdigest()


def sharpened(scores: Floats, sharpness: float) -> Floats:
    """Return powers of scores, normalised to sum to 1.

    The exponent is in eighths: roots and products have the same bits on all machines, other powers don't.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.forest import sharpened
    >>> sharpened(np.array([[0.6, 0.2, 0.2]]), 2.0).round(2)
    array([[0.82, 0.09, 0.09]])
    """
    product = times_itself(eighth_root(scores), round(STEPS_OF_SHARPNESS * sharpness))
    product /= product.sum(axis=1, keepdims=True)
    return product


def eighth_root(values: Floats) -> Floats:
    """Return the eighth root of each value."""
    root: Floats = np.sqrt(np.sqrt(np.sqrt(values)))
    return root


def times_itself(factor: Floats, times: int) -> Floats:
    """Return the product of equal factors."""
    product = np.ones_like(factor)
    while times:
        product = product * factor if times % 2 else product
        factor, times = factor * factor, times // 2
    return product


def leaves_of(
    nodes: NDArray[Any], category_sets: NDArray[np.uint64], rows: Floats | SparseRows, n_threads: int = 1
) -> NDArray[np.int32]:
    """Return the number of each row's leaf in a tree."""
    return np.concatenate([apply(nodes, category_sets, numbers, n_threads) for _, numbers in blocks(rows)])


class Tree:
    """One tree of a forest, usable like a fitted scikit-learn classifier.

    Attributes
    ----------
    classes_ : ndarray
        The class labels.
    nodes : structured array
        The tree's nodes, the root first.
    """

    def __init__(self, forest: Forest, t: int) -> None:
        self._forest = forest
        self._t = t

    def __repr__(self) -> str:
        return f"Tree(depth={self.get_depth()}, leaves={self.get_n_leaves()})"

    @property
    def classes_(self) -> NDArray[Any]:
        """The class labels."""
        return self._forest.classes

    @property
    def nodes(self) -> NDArray[Any]:
        """The tree's nodes, the root first."""
        return self._slice("nodes", "tree_nodes")

    @property
    def gains(self) -> Floats:
        """How much each split lowers the weighted Gini impurity."""
        return self._slice("gains", "tree_nodes")

    @property
    def leaf_weights(self) -> NDArray[np.int32]:
        """Weight of the training rows of each class, by leaf."""
        return self._slice("leaf_weights", "tree_leaves")

    @property
    def leaf_classes(self) -> NDArray[np.int32]:
        """Predicted class of each leaf; ties go to the first one."""
        return self._slice("leaf_classes", "tree_leaves")

    @property
    def category_sets(self) -> NDArray[np.uint64]:
        """Bit sets of the bins that go left at categorical splits."""
        return self._slice("category_sets", "tree_sets")

    def _slice(self, array: str, starts: str) -> NDArray[Any]:
        first, end = getattr(self._forest, starts)[self._t : self._t + 2]
        piece: NDArray[Any] = getattr(self._forest, array)[first:end]
        return piece

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the number of each row's leaf."""
        return leaves_of(self.nodes, self.category_sets, self._forest.encoded(X))

    def predict_proba(self, X: Any) -> Floats:
        """Return the class shares of each row's leaf."""
        return leaf_shares(self.leaf_weights)[self.apply(X)]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most frequent class of each row's leaf."""
        classes: NDArray[Any] = self.classes_[self.leaf_classes[self.apply(X)]]
        return classes

    def get_depth(self) -> int:
        """Return the number of splits on the longest path from the root to a leaf."""
        return int(self._depths().max())

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        return len(self.leaf_weights)

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in the tree's gains; zero for a tree without splits."""
        shares: Floats = self._forest.column_shares(slice(self._t, self._t + 1))[0]
        return shares

    def _depths(self) -> NDArray[np.int64]:
        nodes = self.nodes
        depths = np.zeros(len(nodes), dtype=np.int64)
        for i in np.flatnonzero(nodes["kind"] != LEAF):  # children come after their parents
            depths[nodes["left"][i] : nodes["left"][i] + 2] = depths[i] + 1
        return depths

    def bins_left(self, i: int) -> NDArray[np.uint8]:
        """Return for each of 256 bins whether it goes left (1) at node i, a categorical split."""
        words = self.category_sets[int(self.nodes["threshold"][i])].astype("<u8")
        return np.unpackbits(words.view(np.uint8), bitorder="little")

    def export_text(self, *, decimals: int = 2) -> str:
        """Return the tree as indented text, one line per node."""
        lines: list[str] = []
        stack = [(0, "", "")]  # node, indentation, condition
        while stack:
            i, indent, condition = stack.pop()
            is_leaf = self.nodes["kind"][i] == LEAF
            lines.append(f"{indent}{condition}{self._leaf_text(i) if is_leaf else ''}".rstrip())
            if not is_leaf:
                left, right = self._conditions(i, decimals)
                child = int(self.nodes["left"][i])
                deeper = indent + "  " if condition else indent
                stack.append((child + 1, deeper, f"{right}: "))
                stack.append((child, deeper, f"{left}: "))
        return "\n".join(line for line in lines if line)

    def _leaf_text(self, i: int) -> str:
        leaf = self.nodes["left"][i]
        return f"{self.classes_[self.leaf_classes[leaf]]} {self.leaf_weights[leaf].tolist()}"

    def _conditions(self, i: int, decimals: int) -> tuple[str, str]:
        """Return the conditions of the left and the right side of a split."""
        node = self.nodes[i]
        name = self._forest.schema.names[node["feature"]]
        if node["kind"] & CATEGORICAL:
            goes_left = self.bins_left(i)
            categories = self._forest.schema.categories[node["feature"]] or {}
            sides: tuple[list[str], list[str]] = ([], [])
            for category, bin in categories.items():
                sides[1 - goes_left[bin]].append(str(category))
            left, right = (f"{name} in {{{', '.join(side)}}}" for side in sides)
        elif np.isinf(node["threshold"]):
            return f"{name} not missing", f"{name} missing"
        else:
            left, right = (f"{name} {sign} {node['threshold']:.{decimals}f}" for sign in ("<=", ">"))
        if node["kind"] & MISSING_LEFT:
            return f"{left} or missing", right
        return left, f"{right} or missing"
