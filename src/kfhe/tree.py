"""CARTClassifier: a native tree as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils.validation import check_is_fitted

from kfhe.cuda.rows import placed
from kfhe.engine.arrays import exact_sum
from kfhe.engine.threads import thread_count
from kfhe.engine.trees.tree_store import TreeStore
from kfhe.forest import Forest, Tree
from kfhe.rows import TrainingRows
from kfhe.shrinkage import resolve
from kfhe.tables.columns import some_rows
from kfhe.tree_settings import TreeSettings
from kfhe.validation import (
    COMMON_CONSTRAINTS,
    NamedParameters,
    check_same_length,
    check_table,
    encode_labels,
    integer_weights,
    row_weights,
    seed_from,
    unchanged_on_error,
)

Floats = NDArray[np.float64]


class CARTClassifier(ClassifierMixin, NamedParameters):
    """A CART decision tree: Gini, native categories and missing values, rpart's pruning.

    Parameters
    ----------
    max_depth : int or None, default=30
        Maximum depth of the tree.
    min_samples_split : int, default=20
        Minimum number of rows in a node to split it.
    min_samples_leaf : int, default=7
        Minimum number of rows in a leaf.
    max_leaf_nodes : int or None, default=None
        Grow the tree best-first, up to this number of leaves.
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Number (or share) of features to consider at each split. None: all.
    splitter : {"best", "random"}, default="best"
        Whether a split uses the best cut of a numeric feature, or a random one between the lowest and the
        highest bin in the node. Either way, the best of the considered features is used.
    cp : float, default=0.0
        Complexity parameter, as in rpart: a subtree is pruned if it saves less than `cp` times the
        misclassified weight of the root per additional leaf. 0: no pruning.
    shrinkage : float or "auto", default=0.0
        How much leaves are shrunken towards their ancestors. A filter runs down the tree: the estimate in a
        node is that of its parent, moved towards the class shares in the node by the gain
        N / (N + `shrinkage`), where N is the number of rows in the parent. 0: the class shares of the leaves.
        "auto": one of 0, 1, 3, 10, 30 and 100, whichever has the lowest Brier score on the out-of-bag rows of
        additional trees; this takes the time of 20 trees.
    max_bins : int, default=255
        Maximum number of bins of a numeric feature, and of distinct categories of a categorical one.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Additional categorical columns: positions, names or a mask. Columns of strings or categories are
        always categorical, except with None, which treats no column as categorical.
    honest_categories : bool, default=False
        Whether columns of many categories are encoded by the class shares among the other rows of a category
        (cross-fitted target encoding), or ignored if they say nothing. Otherwise, trees split sets of
        categories, which fits the training rows well even if the categories mean nothing.
    class_weight : dict, "balanced" or None, default=None
        Class weights. They are multiplied with `sample_weight`.
    random_state : int, Generator, RandomState or None, default=None
        Seed. It matters only with `max_features`, random cuts and honest categories.
    n_jobs : int or None, default=None
        Number of threads. The tree does not depend on it.
    device : {"cpu", "cuda"}, default="cpu"
        Where the tree is grown: "cuda" uses an Nvidia GPU and needs `pip install "kfhe[cuda]"`. The tree
        does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    shrinkage_ : float
        The shrinkage that was given or chosen.
    tree_ : Tree
        The tree, with its nodes, depth and leaves; `export_text` prints it.
    feature_importances_ : ndarray of shape (n_features,)
        Share of each feature in the decrease of the Gini impurity.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import CARTClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = CARTClassifier(cp=0.01).fit(X, y)
    >>> print(tree.tree_.export_text())
    petal length (cm) <= 2.45: 0 [50, 0, 0]
    petal length (cm) > 2.45 or missing:
      petal width (cm) <= 1.75 or missing: 1 [0, 49, 5]
      petal width (cm) > 1.75: 2 [0, 1, 45]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TreeSettings.constraints(),
        **COMMON_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        max_depth: int | None = 30,
        min_samples_split: int = 20,
        min_samples_leaf: int = 7,
        max_leaf_nodes: int | None = None,
        max_features: int | float | str | None = None,
        splitter: str = "best",
        cp: float = 0.0,
        shrinkage: float | str = 0.0,
        max_bins: int = 255,
        categorical_features: Any = "from_dtype",
        honest_categories: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str = "cpu",
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features = max_features
        self.splitter = splitter
        self.cp = cp
        self.shrinkage = shrinkage
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.honest_categories = honest_categories
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CARTClassifier:
        """Grow the tree.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
            Their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row with weight zero is ignored.
        """
        with unchanged_on_error(self):
            X = check_table(self, X, reset=True)
            classes, labels = encode_labels(y, self)
            check_same_length(X, labels)
            weights = row_weights(sample_weight, self.class_weight, classes, labels)
            present = np.flatnonzero(weights)
            if len(present) < len(weights):  # ignored rows don't affect the bins either
                X, labels, weights = some_rows(X, present), labels[present], weights[present]
            units, counts = integer_weights(weights)
            n_threads = thread_count(self.n_jobs)
            settings = TreeSettings.of(self)
            settled = self.max_features is None and self.splitter == "best" and not self.honest_categories
            seed = 0 if settled else seed_from(self.random_state)
            rows = TrainingRows(X, labels, classes, weights / exact_sum(weights), seed, n_threads)
            rows = placed(rows, self.device)
            table = rows.table(settings)
            grower = rows.grower(settings, table)
            trees = TreeStore(len(classes))
            trees.append(grower.grow(units, counts, 0))
            self.classes_ = classes
            self._forest = Forest.stored_in(
                trees,
                schema=table.schema,
                classes=classes,
                steps=np.empty(0),
                soft=True,
                shrinkage=resolve(self.shrinkage, [grower], rows, alone=True),
            )
        return self

    @property
    def tree_(self) -> Tree:
        """The tree: text and Graphviz export, depth, leaves, nodes."""
        check_is_fitted(self)
        return self._forest[0]

    @property
    def shrinkage_(self) -> float:
        """The shrinkage that was given or chosen."""
        check_is_fitted(self)
        return self._forest.shrinkage

    @property
    def feature_importances_(self) -> Floats:
        """Share of each feature in the decrease of the Gini impurity."""
        return self.tree_.feature_importances_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the largest share in each row's leaf; ties go to the first one."""
        positions = self.predict_proba(X).argmax(axis=1)
        classes: NDArray[Any] = self.classes_[positions]
        return classes

    def predict_proba(self, X: Any) -> Floats:
        """Return the class shares in each row's leaf, shrunk by `shrinkage_`."""
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        return self._forest.scores(X, thread_count(self.n_jobs))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the class probabilities."""
        with np.errstate(divide="ignore"):
            logarithms: Floats = np.log(self.predict_proba(X))
        return logarithms

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the number of each row's leaf, from 0, as in `tree_`."""
        check_is_fitted(self)
        X = check_table(self, X, reset=False)
        return self._forest.leaves(X, thread_count(self.n_jobs))[:, 0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_forest")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags
