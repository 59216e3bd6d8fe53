"""Export to shap: trees that the package explains exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import shap
from numpy.typing import NDArray

from kfhe.export.plain_trees import PlainTrees, ThresholdChain
from kfhe.forest import LEAF
from kfhe.validation import check_table

Floats = NDArray[np.float64]

MAX_NODES = 2**15 - 1  # shap stores numbers of nodes with 16 bits
COLUMNS = (
    "children_left",
    "children_right",
    "children_default",
    "features",
    "thresholds",
    "node_sample_weight",
)
Range = tuple[float, float]  # exclusive lower bound, inclusive upper bound


class ForestExplainer(shap.TreeExplainer):
    """A `shap.TreeExplainer` for the same tables as the model; `kfhe.export.to_shap` creates it."""

    def __init__(self, model: Any, background: Any = None) -> None:
        self._classifier = model
        self._plain = PlainTrees.of(
            model, otherwise="shap.Explainer(model.predict_proba, X) explains any other model"
        )
        self._thresholds = _thresholds(self._plain)
        trees = [_unfold(self._plain, t, self._thresholds) for t in range(len(self._plain.forest))]
        masker = None
        if background is not None:
            matrix = self._matrix(background)
            masker = shap.maskers.Independent(matrix, max_samples=len(matrix))
        super().__init__({"trees": trees}, masker, feature_names=self._plain.forest.schema.names)

    def __call__(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the SHAP values with their rows, as a `shap.Explanation`."""
        explanation = super().__call__(X, *args, **kwargs)
        explanation.data = np.asarray(X)  # plots need an array
        schema = self._plain.forest.schema
        if schema.rules:  # values of several features are added up for a date
            explanation.data, explanation.feature_names = schema.matrix(X), schema.names
        return explanation

    def shap_values(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the SHAP values, of shape (n_samples, n_features, n_classes)."""
        return super().shap_values(self._matrix(X), *args, **kwargs)

    def shap_interaction_values(self, X: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the interaction values, of shape (n_samples, n_features, n_features, n_classes)."""
        return super().shap_interaction_values(self._matrix(X), *args, **kwargs)

    def _matrix(self, X: Any) -> Floats:
        """Return a table as numbers for the unfolded trees: ranks of values, positions of bins."""
        matrix = self._plain.forest.schema.matrix(check_table(self._classifier, X, reset=False)).copy()
        for j, positions in enumerate(self._plain.positions):
            present = ~np.isnan(matrix[:, j])
            values = matrix[present, j]
            matrix[present, j] = (
                np.searchsorted(self._thresholds[j], values)
                if positions is None
                else positions[values.astype(np.intp)]
            )
        return matrix


def _thresholds(plain: PlainTrees) -> list[Floats]:
    """Return the thresholds of each column, in ascending order.

    shap compares in single precision. Positions of thresholds are exact there, so they replace values.
    """
    nodes = plain.forest.nodes[plain.forest.nodes["kind"] != LEAF]
    columns = range(len(plain.forest.schema.names))
    return [np.unique(nodes["threshold"][nodes["feature"] == j]) for j in columns]


def _unfold(plain: PlainTrees, t: int, thresholds: list[Floats]) -> dict[str, NDArray[Any]]:
    """Return a tree in shap's format, where a split has one threshold and a node has one parent.

    A set of categories becomes a chain of thresholds on the same column. Each threshold leads to its own
    child, so the two children are copied. The copies share the weight of the child, so that averages over
    both sides of a split stay the same.
    """
    tree, splits, weights = plain.forest[t], dict(plain.splits(t)), plain.node_weights(t)
    votes = plain.votes[plain.forest.tree_leaves[t] :]
    no_vote = np.zeros(votes.shape[1])
    rows: list[tuple[float, ...]] = [()]
    # To be copied: a node, its row, the copy's share of the weight, and the range of numbers of the
    # categories that reach it.
    stack: list[tuple[int, int, float, dict[int, Range]]] = [(0, 0, 1.0, {})]
    while stack:
        i, row, share, ranges = stack.pop()
        first_child, weight = int(tree.nodes["left"][i]), share * weights[i]
        if i not in splits:
            rows[row] = (-1, -1, -1, -1, 0.0, weight, *votes[first_child])
            continue
        split = splits[i]
        is_numeric = plain.positions[split.feature] is None
        pieces = _pieces(split, ranges.get(split.feature, (-np.inf, np.inf)))
        for k, (left, (low, high)) in enumerate(pieces):
            child = first_child + (not left)
            child_share = share / sum(side == left for side, _ in pieces)
            inner = ranges if is_numeric else ranges | {split.feature: (low, high)}
            if k == len(pieces) - 1:
                stack.append((child, row, child_share, inner))
                break
            here, other = len(rows), len(rows) + 1
            threshold = float(np.searchsorted(thresholds[split.feature], high)) if is_numeric else high
            default = here if left == split.missing_left else other
            rows[row] = (here, other, default, split.feature, threshold, weight, *no_vote)
            rows += [(), ()]
            stack.append((child, here, child_share, inner))
            row, weight = other, weight - child_share * weights[child]
        if len(rows) > MAX_NODES:
            raise ValueError(
                f"tree {t} has too many sets of categories for shap, which takes up to {MAX_NODES} nodes; "
                "a smaller max_depth or max_leaf_nodes makes smaller trees"
            )
    table = np.array(rows)
    columns = dict(zip(COLUMNS, table.T.copy(), strict=False))
    return columns | {"values": table[:, len(COLUMNS) :].copy()}


def _pieces(split: ThresholdChain, reached: Range) -> list[tuple[bool, Range]]:
    """Split a range into pieces that go left (True) or right in turn.

    Each side has a piece, even if only for missing values or for shap's averages.
    """
    low, high = reached
    pieces = []
    for threshold, left in [*split.steps, (np.inf, not split.steps[-1][1])]:
        if threshold > low:
            pieces.append((left, (low, min(threshold, high))))
            low = threshold
        if threshold >= high:
            break
    return pieces if len(pieces) > 1 else [*pieces, (not pieces[0][0], reached)]
