"""Sensors: a sensor turns sampling weights into a component and its votes.

The votes hold a class per training row (int32, hard voting) or a score per row and class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from kfhe.engine.draws import Draws, Stream, random_numbers
from kfhe.engine.trees.growing import made_again
from kfhe.engine.trees.storage import TreeStore
from kfhe.engine.trees.traversal import apply
from kfhe.engine.trees.votes import leaf_classes, leaf_shares
from kfhe.forest import NODE_DTYPE, Forest
from kfhe.table import BinnedTable
from kfhe.tree import make_grower
from kfhe.validation import integer_weights, same_table

Floats = NDArray[np.float64]
Votes = NDArray[np.int32] | Floats


@dataclass(frozen=True)
class TrainingRows:
    """The rows to train on, checked and encoded."""

    X: Any
    labels: NDArray[np.int32]  # positions in classes
    classes: NDArray[Any]
    base: Floats  # base weights: they sum to 1, each is positive
    seed: int
    n_threads: int

    @cached_property
    def n_present(self) -> int:
        """How many of the classes have a row."""
        return len(np.unique(self.labels))

    def draws(self) -> Draws:
        """Return where bootstrap samples of the rows come from."""
        return Draws(self.labels, len(self.classes), self.n_present, self.seed, self.n_threads)

    def differences(self, other: TrainingRows) -> str:
        """Name what is not the same in other rows: "" if all of it is."""
        same = {
            "classes": np.array_equal(self.classes, other.classes),
            "labels": np.array_equal(self.labels, other.labels),
            "weights": np.array_equal(self.base, other.base),
            "values in X": same_table(self.X, other.X),
        }
        return ", ".join(name for name, is_same in same.items() if not is_same)

    @cached_property
    def uniform(self) -> bool:
        """Whether all rows weigh the same."""
        return bool((self.base == self.base[0]).all())


class Sensor(Protocol):
    """What the training loop needs of a sensor."""

    def harvest(self, *, resumes: bool) -> Any:
        """Return the ensemble of the components, h_0 first; `resumes`: more are to be added later."""

    def initial(self) -> Floats:
        """Train h_0 on all rows and return its class probabilities for them."""

    def read(self, weights: Floats, iteration: int, attempt: int) -> Votes:
        """Train a component on rows drawn by weight and return its votes for all rows."""

    def keep(self, n_components: int) -> None:
        """Drop all components but the first ones."""

    def encode(self, X: Any) -> Any:
        """Return other rows in the form that `votes` takes."""

    def votes(self, t: int, encoded: Any) -> Votes:
        """Return what component t votes for other rows; h_0 always gives scores."""


class TreeSensor:
    """Grows native CART trees on bootstrap counts.

    Parameters
    ----------
    settings : KFHEClassifier
        Whose tree settings to use.
    rows : TrainingRows
        The training rows.
    table : BinnedTable
        Their bins.
    """

    def __init__(self, settings: Any, rows: TrainingRows, table: BinnedTable) -> None:
        self._rows = rows
        self._table = table
        self._hard = settings.voting == "hard"
        self._grower = make_grower(settings, table, rows.labels, len(rows.classes), rows.seed, rows.n_threads)
        self._trees = TreeStore(len(rows.classes))
        self._draws = rows.draws()

    def __getstate__(self) -> dict[str, Any]:
        """Give grower and trees as plain arrays, which skops can save as well as pickle."""
        arguments = self._grower.__reduce__()[1]
        return {**self.__dict__, "_grower": arguments, "_trees": self._trees.arrays()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        grower, trees = made_again(*state["_grower"]), TreeStore.from_arrays(state["_trees"])
        self.__dict__.update(state, _grower=grower, _trees=trees)

    def harvest(self, *, resumes: bool) -> Forest:
        """Return the forest; it takes over the trees' memory unless that is still needed."""
        return Forest.stored_in(
            self._trees, self._table.schema, self._rows.classes, soft=not self._hard, copy=resumes
        )

    def initial(self) -> Floats:
        """Grow h_0 on all rows, by weight."""
        weights = np.ones(len(self._rows.labels)) if self._rows.uniform else self._rows.base
        tree = self._grower.grow(*integer_weights(weights), 0)
        self._trees.append(tree)
        return tree.share_votes()

    def read(self, weights: Floats, iteration: int, attempt: int) -> Votes:
        """Grow a tree on rows drawn by weight and return its votes for all rows."""
        self.keep(iteration)  # drops a tree that was given up
        counts = self._draws.draw(weights, iteration, attempt)
        tree = self._grower.grow(counts, True, 2 * iteration + attempt)
        self._trees.append(tree)
        return tree.class_votes() if self._hard else tree.share_votes()

    def keep(self, n_components: int) -> None:
        """Drop all trees but the first ones."""
        self._trees.keep(n_components)

    def encode(self, X: Any) -> Floats:
        """Return other rows as numbers."""
        return self._table.schema.matrix(X)

    def votes(self, t: int, encoded: Floats) -> Votes:
        """Return what tree t votes for other rows."""
        nodes, leaf_weights, category_sets = self._trees.tree(t)
        leaves = apply(nodes.view(NODE_DTYPE), category_sets, encoded, self._rows.n_threads)
        if t and self._hard:
            return leaf_classes(leaf_weights)[leaves]
        return leaf_shares(leaf_weights)[leaves]


class OnlyClass(DummyClassifier):
    """Stands in for a component whose sample has one class: there is nothing to learn from it."""

    @property
    def feature_importances_(self) -> Floats:
        """No feature matters."""
        return np.zeros(self.n_features_in_)


class EstimatorSensor:
    """Trains clones of a scikit-learn classifier on resampled rows.

    Parameters
    ----------
    estimator : classifier
        What to clone for each component.
    rows : TrainingRows
        The training rows; `rows.X` is the user's own container.
    voting : {"hard", "soft"}
        Whether components vote by `predict` or by `predict_proba`.
    """

    def __init__(self, estimator: Any, rows: TrainingRows, voting: str) -> None:
        if voting == "soft" and not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"voting='soft' needs an estimator with predict_proba, {type(estimator).__name__} has none; "
                "use voting='hard'"
            )
        self.components = EstimatorEnsemble([], rows.classes, voting)
        self._estimator = estimator
        self._rows = rows
        self._draws = rows.draws()

    def harvest(self, *, resumes: bool) -> EstimatorEnsemble:
        """Return the ensemble of the components; if more are to be added, not the growing one."""
        return self.components.copy() if resumes else self.components

    def initial(self) -> Floats:
        """Train h_0 on all rows, by weight where it can be weighted."""
        rows = self._rows
        y = rows.classes[rows.labels]
        if rows.uniform or rows.n_present == 1:
            component = self._unfitted(y, 0, 0).fit(rows.X, y)
        elif has_fit_parameter(self._estimator, "sample_weight"):
            component = self._clone(0, 0).fit(rows.X, y, sample_weight=rows.base * len(y))
        else:
            component = self._fit_on(self._draws.draw(rows.base, 0, 0), 0, 0)
        self.components.append(component)
        return self.components.scores_of(0, rows.X)

    def read(self, weights: Floats, iteration: int, attempt: int) -> Votes:
        """Train a component on rows drawn by weight and return its votes for all rows."""
        self.keep(iteration)  # drops a component that was given up
        try:
            counts = self._draws.draw(weights, iteration, attempt)
            self.components.append(self._fit_on(counts, iteration, attempt))
            return self.components.votes_of(iteration, self._rows.X)
        except Exception as error:
            name = type(self._estimator).__name__
            reason = f"component {iteration} ({name}) failed: {type(error).__name__}: {error}"
            raise RuntimeError(reason) from error

    def keep(self, n_components: int) -> None:
        """Drop all components but the first ones."""
        self.components.keep(n_components)

    def encode(self, X: Any) -> Any:
        """Return other rows as they are."""
        return X

    def votes(self, t: int, encoded: Any) -> Votes:
        """Return what component t votes for other rows."""
        return self.components.votes_of(t, encoded) if t else self.components.scores_of(0, encoded)

    def _fit_on(self, counts: NDArray[np.int32], iteration: int, attempt: int) -> Any:
        rows = self._rows
        sample = np.repeat(np.arange(len(counts)), counts)
        y = rows.classes[rows.labels[sample]]
        return self._unfitted(y, iteration, attempt).fit(_safe_indexing(rows.X, sample), y)

    def _unfitted(self, y: NDArray[Any], iteration: int, attempt: int) -> Any:
        """Return a component to fit to y; many classifiers refuse labels of one class."""
        return self._clone(iteration, attempt) if (y != y[0]).any() else OnlyClass()

    def _clone(self, iteration: int, attempt: int) -> Any:
        """Clone the estimator and seed each `random_state` in it by the iteration."""
        component = clone(self._estimator)
        names = sorted(name for name in component.get_params() if name.split("__")[-1] == "random_state")
        seeds = {
            name: random_numbers(self._rows.seed, Stream.ESTIMATORS, position, 0, attempt, iteration)[0] >> 33
            for position, name in enumerate(names)
        }
        return component.set_params(**seeds)


class EstimatorEnsemble(Sequence[Any]):
    """Fitted scikit-learn classifiers, h_0 first, as one ensemble."""

    def __init__(self, components: list[Any], classes: NDArray[Any], voting: str) -> None:
        self._components = components
        self._classes = classes
        self._voting = voting

    def __len__(self) -> int:
        return len(self._components)

    def __getitem__(self, t: Any) -> Any:
        return self._components[t]

    def append(self, component: Any) -> None:
        """Add a component."""
        self._components.append(component)

    def keep(self, n_components: int) -> None:
        """Drop all components but the first ones."""
        del self._components[n_components:]

    def copy(self) -> EstimatorEnsemble:
        """Return an ensemble of the same components that can grow on its own."""
        return EstimatorEnsemble(self._components.copy(), self._classes, self._voting)

    def scores_of(self, t: int, X: Any) -> Floats:
        """Return the n x c scores that component t adds to the ensemble's."""
        if (t == 0 or self._voting == "soft") and hasattr(self[t], "predict_proba"):
            probabilities = np.asarray(self[t].predict_proba(X), dtype=np.float64)
            columns = self._positions(np.asarray(self[t].classes_))
            _check_shape(probabilities, (_num_samples(X), len(columns)), "predict_proba")
            if not np.isfinite(probabilities).all():
                raise ValueError("a component's predict_proba gave NaN or infinite values, expected 0 to 1")
            scores = np.zeros((len(probabilities), len(self._classes)))
            scores[:, columns] = probabilities
            return scores
        return np.eye(len(self._classes))[self._predicted(t, X)]

    def votes_of(self, t: int, X: Any) -> Votes:
        """Return what component t votes for: classes, or scores under soft voting."""
        return self._predicted(t, X) if self._voting == "hard" else self.scores_of(t, X)

    def scores(self, X: Any, weights: Floats, n_threads: int) -> Floats:
        """Return the weighted sum of the components' scores."""
        *_, total = self.staged_sums(X, weights, n_threads)
        return total

    def staged_sums(self, X: Any, weights: Floats, n_threads: int) -> Iterator[Floats]:
        """Yield the running weighted sum after each component, always in the same array."""
        total = weights[0] * self.scores_of(0, X)
        yield total
        for t in range(1, len(self)):
            total += weights[t] * self.scores_of(t, X)
            yield total

    def importances(self, weights: Floats) -> Floats:
        """Return the components' feature importances, averaged by weight."""
        return np.average([component.feature_importances_ for component in self], axis=0, weights=weights)

    def _predicted(self, t: int, X: Any) -> NDArray[np.int32]:
        labels = np.asarray(self[t].predict(X))
        _check_shape(labels, (_num_samples(X),), "predict")
        return self._positions(labels)

    def _positions(self, labels: NDArray[Any]) -> NDArray[np.int32]:
        positions = np.searchsorted(self._classes, labels).clip(max=len(self._classes) - 1)
        unknown = labels[self._classes[positions] != labels]
        if len(unknown):
            raise ValueError(
                f"a component predicts {unknown.tolist()[0]!r}; y has the classes {self._classes.tolist()}"
            )
        return positions.astype(np.int32)


def _check_shape(found: NDArray[Any], expected: tuple[int, ...], method: str) -> None:
    if found.shape != expected:
        raise ValueError(f"a component's {method} gave shape {found.shape}, expected {expected}")
