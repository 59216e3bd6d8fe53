"""The training rows: what the loop knows of a table, its labels and its weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.draws import Draws
from kfhe.validation import same_table

Floats = NDArray[np.float64]


AUTO_ROWS = 50_000  # up to which "auto" draws as many rows as there are


def sample_size(max_samples: int | float | str | None, n_rows: int) -> int:
    """Return how many rows a component's sample has.

    Parameters
    ----------
    max_samples : int, float, "auto" or None
        The number; a share of the rows; None for as many as there are; or "auto": so too up to 50,000
        rows, beyond that the geometric mean of 50,000 and their number.
    n_rows : int
        How many there are.

    Returns
    -------
    int
        At least 1, and at most `n_rows`.

    Examples
    --------
    >>> from kfhe.rows import sample_size
    >>> [sample_size(wanted, 200_000) for wanted in (None, 1000, 0.25, "auto")]
    [200000, 1000, 50000, 100000]
    """
    if max_samples is None:
        return n_rows
    if isinstance(max_samples, str):
        wanted = (min(n_rows, AUTO_ROWS) * n_rows) ** 0.5
    elif isinstance(max_samples, Integral):
        wanted = int(max_samples)
    else:
        wanted = max_samples * n_rows
    return max(1, min(n_rows, round(wanted)))


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
    max_samples : int, float, "auto" or None, default=None
        How many of the rows a sample has, as `sample_size` takes it.
    """

    X: Any
    labels: NDArray[np.int32]
    classes: NDArray[Any]
    base: Floats
    seed: int
    n_threads: int
    max_samples: int | float | str | None = None

    @cached_property
    def n_present(self) -> int:
        """How many of the classes have a row."""
        return len(np.unique(self.labels))

    @cached_property
    def uniform(self) -> bool:
        """Whether all rows weigh the same."""
        return bool((self.base == self.base[0]).all())

    @cached_property
    def n_samples(self) -> int:
        """How many rows a sample has, with repetitions."""
        n_samples = sample_size(self.max_samples, len(self.labels))
        if n_samples < self.n_present:
            raise ValueError(
                f"max_samples={self.max_samples!r} makes samples of {n_samples} rows: too few to have one of "
                f"each of the {self.n_present} classes; raise it, or use None for as many rows as there are"
            )
        return n_samples

    def draws(self) -> Draws:
        """Return where bootstrap samples of the rows come from."""
        return Draws(
            self.labels, len(self.classes), self.n_present, self.seed, self.n_threads, self.n_samples
        )

    def initial_sample(self) -> NDArray[np.int32]:
        """Return how often each row is in the sample for h_0, where that is not trained on all of them."""
        return self.draws().draw(self.base, 0, 0)

    def differences(self, other: TrainingRows) -> str:
        """Name what is not the same in other rows: "" if all of it is."""
        same = {
            "classes": np.array_equal(self.classes, other.classes),
            "labels": np.array_equal(self.labels, other.labels),
            "weights": np.array_equal(self.base, other.base),
            "values in X": same_table(self.X, other.X),
        }
        return ", ".join(name for name, is_same in same.items() if not is_same)
