"""Ensembles whose components are scikit-learn classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.utils.validation import _num_samples

from kfhe.ensemble import Ensemble, variance
from kfhe.measurement import Votes

Floats = NDArray[np.float64]


class EstimatorEnsemble(Ensemble):
    """Fitted scikit-learn classifiers, h_0 first.

    Parameters
    ----------
    components : list of classifiers
        The classifiers.
    classes : ndarray
        The class labels.
    voting : {"hard", "soft"}
        Whether they vote by `predict` or by `predict_proba`.
    steps : sequence of float, default=()
        How far each component after h_0 moved the state towards its votes.
    transitions : ndarray, default=1.0
        Share of the state that was kept before each step; the rest is that of h_0.
    """

    def __init__(
        self,
        components: list[Any],
        classes: NDArray[Any],
        voting: str,
        steps: Floats | tuple[()] = (),
        transitions: Floats | float = 1.0,
    ) -> None:
        self.steps = np.asarray(steps, dtype=np.float64)
        self.transitions = transitions
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

    def with_steps(self, steps: Floats, transitions: Floats) -> EstimatorEnsemble:
        """Return an ensemble of the current components that does not change any more."""
        return EstimatorEnsemble(self._components.copy(), self._classes, self._voting, steps, transitions)

    def scores_of(self, t: int, X: Any) -> Floats:
        """Return the votes of component t as n x c scores."""
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
        """Return the votes of component t: classes, or scores for h_0 and with soft voting."""
        return self._predicted(t, X) if t and self._voting == "hard" else self.scores_of(t, X)

    def encoded(self, X: Any) -> Any:
        """Return rows as they are."""
        return X

    def add(
        self, rows: Any, first: int, last: int, weights: Floats, total: Floats | None, n_threads: int
    ) -> Floats:
        """Add the weighted votes of some components to a sum, or to a new one (None)."""
        for t in range(first, last):
            votes = weights[t] * self.scores_of(t, rows)
            total = votes if total is None else np.add(total, votes, out=total)
        assert total is not None
        return total

    def spread(self, X: Any, n_threads: int) -> Floats:
        """Return how far the components disagree on each row."""
        return variance((self.scores_of(t, X) for t in range(len(self))), self.weights)

    def importances(self) -> Floats:
        """Return the components' feature importances, averaged by weight."""
        return np.average(
            [component.feature_importances_ for component in self], axis=0, weights=self.weights
        )

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


class ClassShares(DummyClassifier):
    """Votes by class shares, for an untrained h_0 or a sample of one class."""

    @property
    def feature_importances_(self) -> Floats:
        """All features have importance zero."""
        return np.zeros(self.n_features_in_)


def _check_shape(found: NDArray[Any], expected: tuple[int, ...], method: str) -> None:
    if found.shape != expected:
        raise ValueError(f"a component's {method} gave shape {found.shape}, expected {expected}")
