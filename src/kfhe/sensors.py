"""Sensors: a sensor trains a component on a sample of the rows and returns its votes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from kfhe.engine.draws import Stream, random_numbers
from kfhe.engine.trees.grower import Grower
from kfhe.engine.trees.grown_tree import GrownTree
from kfhe.engine.trees.leaf_votes import leaf_classes, shrunken_shares
from kfhe.engine.trees.tree_store import TreeStore
from kfhe.ensemble import Ensemble
from kfhe.estimator_ensemble import ClassShares, EstimatorEnsemble
from kfhe.forest import NODE_DTYPE, Forest, leaves_of
from kfhe.measurement import Counts, Votes
from kfhe.rows import TrainingRows
from kfhe.shrinkage import resolve, soft_votes
from kfhe.tables.binned import BinnedTable
from kfhe.tables.columns import SparseRows, some_rows
from kfhe.trace import Trace
from kfhe.tree_settings import TreeSettings

Floats = NDArray[np.float64]


class Sensor(Protocol):
    """The interface of a sensor in the training loop.

    Attributes
    ----------
    shrinkage : float
        How much votes are shrunk now.
    """

    @property
    def shrinkage(self) -> float:
        """How much votes are shrunk now."""

    def initial(self) -> Floats:
        """Train h_0 on all rows and return its class probabilities for them."""

    def read(self, counts: Counts, iteration: int, attempt: int) -> Any:
        """Train a component on a sample and return its votes for all rows.

        Parameters
        ----------
        counts : int32 array
            How often each row is in the sample.
        iteration, attempt : int
            Keys of the component's random numbers. A second attempt (1) replaces the first.
        """

    def keep(self, n_components: int) -> None:
        """Drop all components but the first ones."""

    def harvest(self, trace: Trace, *, resumes: bool) -> Ensemble:
        """Return the ensemble of the components, h_0 first; `resumes`: more may be added later.

        The steps of the components are in the trace.
        """

    def encode(self, X: Any) -> Any:
        """Return other rows in the form that `votes` expects."""

    def votes(self, t: int, encoded: Any) -> Votes:
        """Return the votes of component t for other rows; h_0 always returns scores."""


def one_leaf(rows: TrainingRows) -> GrownTree:
    """Return a tree without splits, which votes by the class shares."""
    return GrownTree.from_arrays(
        np.zeros(1, dtype=NODE_DTYPE).view(np.uint8),
        np.zeros(1),
        rows.class_units.reshape(1, -1),
        np.empty((0, 4), dtype=np.uint64),
        np.zeros_like(rows.labels),
    )


class StoredTrees:
    """The base of sensors of native trees: the trees so far, and how other rows are encoded.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    settings : TreeSettings
        How tables are encoded.
    """

    def __init__(self, rows: TrainingRows, settings: TreeSettings) -> None:
        self.rows = rows
        self._table = rows.table(settings)
        self._trees = TreeStore(len(rows.classes))

    @property
    def table(self) -> BinnedTable:
        """The binned training table."""
        return self._table

    def keep(self, n_components: int) -> None:
        """Drop all trees but the first ones."""
        self._trees.keep(n_components)

    def forest(self, trace: Trace, **settings: Any) -> Forest:
        """Return the trees as a forest."""
        schema, classes = self._table.schema, self.rows.classes
        return Forest.stored_in(self._trees, schema=schema, classes=classes, steps=trace["step"], **settings)

    def encode(self, X: Any) -> Floats | SparseRows:
        """Return other rows as numbers."""
        return self._table.schema.rows(X)

    def leaves(
        self, t: int, encoded: Floats | SparseRows
    ) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32]]:
        """Return the nodes of tree t, the class weights of its leaves, and each row's leaf."""
        nodes, leaf_weights, category_sets = self._trees.tree(t)
        nodes = nodes.view(NODE_DTYPE)
        return nodes, leaf_weights, leaves_of(nodes, category_sets, encoded, self.rows.n_threads)


class TreeSensor(StoredTrees):
    """Grows native CART trees on bootstrap samples, with one set of settings or several in turn.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    settings : list of TreeSettings
        Settings of the trees, which take turns; h_0 has the first ones. How tables are read and shrinkage
        must be the same in all of them.
    voting : {"hard", "soft"}
        Whether a tree votes for the largest class of a leaf, or by its class shares.
    from_shares : bool, default=False
        Whether h_0 only predicts the class shares.

    Attributes
    ----------
    rows : TrainingRows
        As given.
    shrinkage : float
        How much soft votes are shrunk, as given or found.
    """

    def __init__(
        self, rows: TrainingRows, settings: list[TreeSettings], voting: str, *, from_shares: bool = False
    ) -> None:
        super().__init__(rows, settings[0])
        self._from_shares = from_shares
        self._hard = voting == "hard"
        self._growers = [rows.grower(kind, self._table) for kind in settings]
        self.shrinkage = resolve(settings[0].shrinkage, self._growers, rows, alone=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return growers and trees as plain arrays, which skops and pickle can save."""
        arguments = [grower.__reduce__()[1] for grower in self._growers]
        return {**self.__dict__, "_growers": arguments, "_trees": self._trees.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        growers = [Grower(*arguments) for arguments in state["_growers"]]
        self.__dict__.update(state, _growers=growers, _trees=TreeStore.from_arrays(state["_trees"]))

    def initial(self) -> Floats:
        """Grow h_0 on all rows by weight, or on a sample if samples are smaller."""
        rows, grow = self.rows, self._growers[0].grow
        if self._from_shares:
            tree = one_leaf(rows)
        elif rows.n_samples < rows.n_rows:
            tree = grow(rows.initial_sample(), True, 0)
        else:
            tree = grow(*rows.whole_weights(), 0)
        self._trees.append(tree)
        return soft_votes(tree, self.shrinkage)

    def read(self, counts: Counts, iteration: int, attempt: int) -> Votes:
        """Grow a tree on a sample and return its votes for all rows."""
        self._trees.keep(iteration)  # drops a rejected attempt
        grower = self._growers[(iteration - 1) % len(self._growers)]
        tree = grower.grow(counts, True, 2 * iteration + attempt)
        self._trees.append(tree)
        return tree.class_votes() if self._hard else soft_votes(tree, self.shrinkage)

    def harvest(self, trace: Trace, *, resumes: bool) -> Forest:
        """Return the forest. It takes over the trees' memory unless the run resumes."""
        voting = {"soft": not self._hard, "shrinkage": self.shrinkage}
        return self.forest(trace, copy=resumes, transitions=trace["transition"], **voting)

    def votes(self, t: int, encoded: Floats | SparseRows) -> Votes:
        """Return what tree t votes for other rows."""
        nodes, leaf_weights, leaves = self.leaves(t, encoded)
        if t and self._hard:
            return leaf_classes(leaf_weights)[leaves]
        votes: Floats = shrunken_shares(nodes, leaf_weights, np.array([self.shrinkage]))[0][leaves]
        return votes


class EstimatorSensor:
    """Trains clones of one scikit-learn classifier, or of several in turn, on resampled rows.

    Parameters
    ----------
    rows : TrainingRows
        The training rows; `rows.X` is the user's container.
    estimators : list of classifiers
        The classifiers to clone; h_0 is a clone of the first.
    voting : {"hard", "soft"}
        Whether components vote by `predict` or by `predict_proba`.
    from_shares : bool, default=False
        Whether h_0 only predicts the class shares.

    Attributes
    ----------
    rows, estimators
        As given.
    components : EstimatorEnsemble
        The components so far.
    """

    shrinkage = 0.0

    def __init__(
        self, rows: TrainingRows, estimators: list[Any], voting: str, *, from_shares: bool = False
    ) -> None:
        for estimator in estimators:
            if voting == "soft" and not hasattr(estimator, "predict_proba"):
                name = type(estimator).__name__
                raise ValueError(
                    f"voting='soft' needs an estimator with predict_proba, {name} has none; use voting='hard'"
                )
        self.rows = rows
        self.estimators = estimators
        self._from_shares = from_shares
        self.components = EstimatorEnsemble([], rows.classes, voting)

    def initial(self) -> Floats:
        """Train h_0 on all rows, by weight if it supports weights, or on a sample if samples are smaller."""
        rows = self.rows
        y = rows.classes[rows.labels]
        if self._from_shares:
            component = ClassShares().fit(rows.X, y, sample_weight=rows.base)
        elif rows.n_samples < len(y):
            component = self.trained(rows.initial_sample(), 0, 0)
        elif rows.uniform or rows.n_present == 1:
            component = self._unfitted(y, 0, 0).fit(rows.X, y)
        elif has_fit_parameter(self.estimators[0], "sample_weight"):
            component = self.clone(0, 0).fit(rows.X, y, sample_weight=rows.base * len(y))
        else:
            component = self.trained(rows.initial_sample(), 0, 0)
        self.components.append(component)
        return self.components.scores_of(0, rows.X)

    def read(self, counts: Counts, iteration: int, attempt: int) -> Votes:
        """Train a component on a sample and return its votes for all rows."""
        self.keep(iteration)  # drops a rejected attempt
        try:
            self.components.append(self.trained(counts, iteration, attempt))
            return self.components.votes_of(iteration, self.rows.X)
        except Exception as error:
            if iteration == 1 and self._from_shares:  # as for a trained h_0, the data are the reason
                raise
            name = type(self.estimator_of(iteration)).__name__
            reason = f"component {iteration} ({name}) failed: {type(error).__name__}: {error}"
            raise RuntimeError(reason) from error

    def keep(self, n_components: int) -> None:
        """Drop all components but the first ones."""
        self.components.keep(n_components)

    def harvest(self, trace: Trace, *, resumes: bool) -> EstimatorEnsemble:
        """Return the ensemble of the components so far."""
        return self.components.with_steps(trace["step"], trace["transition"])

    def encode(self, X: Any) -> Any:
        """Return other rows unchanged."""
        return X

    def votes(self, t: int, encoded: Any) -> Votes:
        """Return the votes of component t for other rows."""
        return self.components.votes_of(t, encoded)

    def trained(self, counts: Counts, iteration: int, attempt: int) -> Any:
        """Return a component fitted to a sample. Subclasses can train it differently."""
        rows = self.rows
        sample = np.repeat(np.arange(len(counts)), counts)
        y = rows.classes[rows.labels[sample]]
        return self._unfitted(y, iteration, attempt).fit(some_rows(rows.X, sample), y)

    def clone(self, iteration: int, attempt: int) -> Any:
        """Clone the iteration's estimator, and set each `random_state` in it by the iteration."""
        component = clone(self.estimator_of(iteration))
        names = sorted(name for name in component.get_params() if name.split("__")[-1] == "random_state")
        seeds = {
            name: random_numbers(self.rows.seed, Stream.ESTIMATORS, position, 0, attempt, iteration)[0] >> 33
            for position, name in enumerate(names)
        }
        return component.set_params(**seeds)

    def estimator_of(self, iteration: int) -> Any:
        """Return the estimator whose turn it is."""
        return self.estimators[max(iteration - 1, 0) % len(self.estimators)]

    def _unfitted(self, y: NDArray[Any], iteration: int, attempt: int) -> Any:
        """Return a component to fit; labels of a single class get one that accepts them."""
        return self.clone(iteration, attempt) if (y != y[0]).any() else ClassShares()
