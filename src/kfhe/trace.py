"""The trace: what happened in each iteration of training, as columns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Iteration(NamedTuple):
    """What happened in one iteration: a row of the trace, as callbacks get it.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1.
    measurement_error, prior_variance, posterior_variance, gain, component_error, training_error, \
effective_sample_size, resets, seconds
        As the columns of `Trace`.
    validation_score : float or None
        Score of the ensemble so far for the validation set, if there is one; higher is better.
    """

    iteration: int
    measurement_error: float
    prior_variance: float
    posterior_variance: float
    gain: float
    component_error: float
    training_error: float
    effective_sample_size: float
    resets: int
    seconds: float
    validation_score: float | None


@dataclass
class Trace:
    """What the filters saw and did, one entry per iteration and column.

    Attributes
    ----------
    measurement_error : list of float
        R, the share of training rows that the measurement misclassifies.
    prior_variance, posterior_variance : list of float
        P of the model filter before and after the measurement update.
    gain : list of float
        K, how far the state moved towards the measurement.
    component_error : list of float
        The share of training rows that the component alone misclassifies.
    training_error : list of float
        The share of training rows that the ensemble so far misclassifies.
    effective_sample_size : list of float
        How many equally weighted rows the sampling weights of the iteration are worth.
    resets : list of int
        1 where the component was no better than guessing and the sampling weights were reset.
    seconds : list of float
        Time that the iteration took.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> model = KFHEClassifier(n_estimators=5, random_state=0).fit(*load_iris(return_X_y=True))
    >>> len(model.trace_)
    5
    >>> model.trace_["gain"].shape
    (5,)
    """

    measurement_error: list[float] = field(default_factory=list)
    prior_variance: list[float] = field(default_factory=list)
    posterior_variance: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)
    component_error: list[float] = field(default_factory=list)
    training_error: list[float] = field(default_factory=list)
    effective_sample_size: list[float] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def append(self, **row: float) -> None:
        """Add an iteration: one value for each column."""
        columns = vars(self)
        for name, value in row.items():
            columns[name].append(value)

    def last_row(self, validation_score: float | None) -> Iteration:
        """Return the last iteration, with its score for the validation set."""
        values = {name: column[-1] for name, column in vars(self).items()}
        return Iteration(len(self), **values, validation_score=validation_score)

    def cut(self, n_iter: int) -> None:
        """Keep the first iterations only."""
        for name in self.columns:
            del getattr(self, name)[n_iter:]

    def __len__(self) -> int:
        return len(self.gain)

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column as an array."""
        if column not in self.columns:
            raise KeyError(f"no column {column!r} in the trace; there are {', '.join(self.columns)}")
        return np.asarray(getattr(self, column))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in fields(self)]

    def to_frame(self) -> Any:
        """Return the trace as a pandas DataFrame, indexed by iteration (from 1)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Trace.to_frame() needs pandas: pip install kfhe[frames]") from error
        index = pd.RangeIndex(1, len(self) + 1, name="iteration")
        return pd.DataFrame({name: self[name] for name in self.columns}, index=index)
