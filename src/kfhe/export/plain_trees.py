"""Trees for exports: splits are thresholds, and leaves add to the scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from kfhe.base import BaseKFHE
from kfhe.forest import CATEGORICAL, LEAF, MISSING_LEFT, Forest
from kfhe.tree import CARTClassifier

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ThresholdChain:
    """A split as a chain of thresholds.

    Attributes
    ----------
    feature : int
        The column.
    steps : list of (float, bool)
        Thresholds in ascending order, each with a side: left (True) or right. A value goes to the side of the
        first threshold that it does not exceed; if it exceeds all, to the opposite side of the last one.
    missing_left : bool
        Whether missing values and unknown categories go left.
    """

    feature: int
    steps: list[tuple[float, bool]]
    missing_left: bool


@dataclass(frozen=True)
class PlainTrees:
    """The trees of a fitted model, for programs that only support thresholds.

    Attributes
    ----------
    forest : Forest
        The trees.
    """

    forest: Forest

    @classmethod
    def of(cls, model: Any, *, otherwise: str) -> PlainTrees:
        """Create them from a model; ``otherwise`` is advice for other components than native trees."""
        if not isinstance(model, BaseKFHE | CARTClassifier):
            raise TypeError(f"only kfhe's own classifiers can be exported, got {model!r}")
        check_is_fitted(model)
        if isinstance(model, CARTClassifier):
            return cls(model._forest)
        if not isinstance(model.estimators_, Forest):
            raise ValueError(
                f"only native trees (estimator=None, or a CARTClassifier) can be exported; {otherwise}"
            )
        return cls(model.estimators_)

    @property
    def classes(self) -> list[Any]:
        """The class labels as values of Python's own types."""
        labels = self.forest.classes.tolist()
        return [label.item() if isinstance(label, np.generic) else label for label in labels]

    @cached_property
    def votes(self) -> Floats:
        """What each leaf adds to each class's score: its vote times the weight of its tree."""
        weighted = (weight * self.forest.tree_votes(t) for t, weight in enumerate(self.forest.weights))
        return np.concatenate(list(weighted))

    def node_weights(self, t: int) -> Floats:
        """Return the weight of the training rows in each node of tree t."""
        tree = self.forest[t]
        is_leaf, left = tree.nodes["kind"] == LEAF, tree.nodes["left"]
        weights = np.zeros(len(left))
        weights[is_leaf] = tree.leaf_weights.sum(axis=1, dtype=np.float64)[left[is_leaf]]
        for i in np.flatnonzero(~is_leaf)[::-1]:  # children come after their parents
            weights[i] = weights[left[i] : left[i] + 2].sum()
        return weights

    @cached_property
    def positions(self) -> list[NDArray[np.int64] | None]:
        """New numbers for the bins of each categorical column, so that few thresholds make up a set.

        Bins that often go to the same side become neighbours: they are sorted along the first principal
        component of their sides at all splits.
        """
        sets: list[list[Floats]] = [[] for _ in self.forest.schema.names]
        for t, tree in enumerate(self.forest):
            weights = self.node_weights(t)
            for i in np.flatnonzero(tree.nodes["kind"] & CATEGORICAL).tolist():
                sets[tree.nodes["feature"][i]].append(tree.bins_left(i) * weights[i] ** 0.5)
        positions: list[NDArray[np.int64] | None] = [None] * len(sets)
        for j, categories in enumerate(self.forest.schema.categories):
            if categories is None:
                continue
            n_bins = max(categories.values(), default=-1) + 1
            positions[j] = np.arange(n_bins)
            if sets[j]:
                sides = np.array(sets[j])[:, :n_bins]
                sides -= sides.mean(axis=1, keepdims=True)
                main_direction = np.linalg.eigh(sides.T @ sides)[1][:, -1]
                positions[j] = np.argsort(np.argsort(main_direction, kind="stable"))
        return positions

    def splits(self, t: int) -> Iterator[tuple[int, ThresholdChain]]:
        """Yield the number and the split of each node of tree t that is not a leaf."""
        tree = self.forest[t]
        for i in np.flatnonzero(tree.nodes["kind"] != LEAF).tolist():
            node = tree.nodes[i]
            positions = self.positions[node["feature"]]
            if positions is None:
                steps = [(float(node["threshold"]), True)]
            else:
                goes_left = np.empty(len(positions), dtype=bool)
                goes_left[positions] = tree.bins_left(i)[: len(positions)]
                turns = np.flatnonzero(goes_left[1:] != goes_left[:-1]).tolist()
                steps = [(float(code), bool(goes_left[code])) for code in turns]
                if not turns:  # the other side is only for missing values
                    steps = [(np.inf, bool(goes_left[0]))]
            yield i, ThresholdChain(int(node["feature"]), steps, bool(node["kind"] & MISSING_LEFT))


def check_names(names: list[str]) -> None:
    """Raise unless all columns have different names."""
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(f"exported columns need names, all different; the model's are {names}")
