"""The training rows: what the loop knows of a table, its labels and its weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.draws import Draws
from kfhe.validation import same_table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingRows:
    """The rows to train on, checked and encoded.

    Attributes
    ----------
    X : array, data frame or sparse matrix
        The rows, in the user's own container.
    labels : int32 array
        Position of each row's label in `classes`.
    classes : ndarray
        The class labels, sorted.
    base : ndarray
        Base weights: they sum to 1, each is positive.
    seed : int
        What all randomness follows from.
    n_threads : int
        Threads that may be used.
    """

    X: Any
    labels: NDArray[np.int32]
    classes: NDArray[Any]
    base: Floats
    seed: int
    n_threads: int

    @cached_property
    def n_present(self) -> int:
        """How many of the classes have a row."""
        return len(np.unique(self.labels))

    @cached_property
    def uniform(self) -> bool:
        """Whether all rows weigh the same."""
        return bool((self.base == self.base[0]).all())

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
