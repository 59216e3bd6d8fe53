"""Ensembles: components and the steps by which they moved the state; together they give scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.kalman import component_weights, remaining

Floats = NDArray[np.float64]


class Ensemble(Sequence[Any]):
    """Fitted components, h_0 first. The only place where their votes become scores.

    Attributes
    ----------
    steps : ndarray of shape (n_components - 1,)
        How far each component after h_0 moved the state towards its votes.
    """

    steps: Floats

    @cached_property
    def weights(self) -> Floats:
        """How much each component contributes to the scores; they sum to 1."""
        return component_weights(self.steps)

    @abstractmethod
    def sums(self, X: Any, n_threads: int) -> Floats:
        """Return the weighted sum of all components' votes."""

    @abstractmethod
    def staged_sums(self, X: Any, n_threads: int) -> Iterator[Floats]:
        """Yield the running weighted sum after each component, always in the same array."""

    @abstractmethod
    def importances(self) -> Floats:
        """Return the components' feature importances, averaged by weight."""

    def scores(self, X: Any, n_threads: int) -> Floats:
        """Return the scores of the classes for each row: they sum to 1."""
        scores = self.sums(X, n_threads)
        return np.minimum(scores, 1.0, out=scores)  # a rounding error above 1 is too much for a log loss

    def decide(self, scores: Floats) -> NDArray[np.intp]:
        """Return the position of the class that each row's scores speak for; ties go to the first one."""
        return scores.argmax(axis=1)

    def staged_scores(self, X: Any, n_threads: int) -> Iterator[Floats]:
        """Yield the scores after h_0 alone, then after each further component."""
        for total, left in zip(self.staged_sums(X, n_threads), remaining(self.steps), strict=True):
            yield np.minimum(total / left, 1.0)
