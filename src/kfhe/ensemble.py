"""Ensembles: components, their steps, and the resulting scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.kalman import component_weights, stages

Floats = NDArray[np.float64]

ROUNDING = 1e-12  # disagreement up to this is a rounding error


class Ensemble(Sequence[Any]):
    """Fitted components, h_0 first. All scores are computed here from their votes.

    Attributes
    ----------
    steps : ndarray of shape (n_components - 1,)
        How far each component after h_0 moved the state towards its votes.
    transitions : ndarray of shape (n_components - 1,), or 1.0
        Share of the state that was kept before each step; the rest is that of h_0.
    """

    steps: Floats
    transitions: Floats | float

    @cached_property
    def weights(self) -> Floats:
        """How much each component contributes to the scores; they sum to 1."""
        return component_weights(self.steps, self.transitions)

    @abstractmethod
    def encoded(self, X: Any) -> Any:
        """Return rows in the form that `add` expects."""

    @abstractmethod
    def add(
        self, rows: Any, first: int, last: int, weights: Floats, total: Floats | None, n_threads: int
    ) -> Floats:
        """Add the weighted votes of some components to a sum, or to a new one (None)."""

    @abstractmethod
    def spread(self, X: Any, n_threads: int) -> Floats:
        """Return how far the components disagree on each row: the weighted variance of their votes."""

    @abstractmethod
    def importances(self) -> Floats:
        """Return the components' feature importances, averaged by weight."""

    def scores(self, X: Any, n_threads: int) -> Floats:
        """Return the class scores of each row, which sum to 1."""
        return self.encoded_scores(self.encoded(X), n_threads)

    def encoded_scores(self, rows: Any, n_threads: int) -> Floats:
        """Return the class scores of encoded rows."""
        scores = self.add(rows, 0, len(self), self.weights, None, n_threads)
        return np.minimum(scores, 1.0, out=scores)  # the log loss rejects values above 1

    def probabilities(self, scores: Floats) -> Floats:
        """Return class probabilities: here, the scores themselves."""
        return scores

    def decide(self, scores: Floats) -> NDArray[np.intp]:
        """Return the position of the class with the highest score; ties go to the first one."""
        return scores.argmax(axis=1)

    def decisions(self, X: Any, n_threads: int) -> NDArray[np.intp]:
        """Return the position of the predicted class of each row."""
        return self.decide(self.scores(X, n_threads))

    def staged_scores(self, X: Any, n_threads: int) -> Iterator[Floats]:
        """Yield the scores after h_0 alone, then after each further component."""
        rows, total = self.encoded(X), None
        scales, weights, returns, shares = stages(self.steps, self.transitions)
        for t in range(len(self)):
            if total is not None and scales[t] != 1:
                total *= scales[t]
            total = self.add(rows, t, t + 1, weights, total, n_threads)
            if returns[t] > 0:
                total = self.add(rows, 0, 1, returns[t : t + 1], total, n_threads)
            yield np.minimum(total / shares[t], 1.0)


def variance(votes: Iterable[Floats], weights: Iterable[float]) -> Floats:
    """Return the variance of votes for each row, summed over the classes; the weights sum to 1."""
    mean: Floats | float = 0.0
    squares: Floats | float = 0.0
    for each, weight in zip(votes, weights, strict=True):
        mean += weight * each
        squares += weight * (each**2).sum(axis=1)
    return variance_from(np.asarray(mean), np.asarray(squares))


def variance_from(mean: Floats, squares: Floats) -> Floats:
    """Return this variance, from the mean votes and the mean of their squared lengths."""
    found = squares - (mean**2).sum(axis=1)
    return np.where(found > ROUNDING, found, 0.0)
