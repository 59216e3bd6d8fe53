"""The trace: what happened in each iteration of training, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Iteration(NamedTuple):
    """What happened in one iteration: a row of the trace, as callbacks get it.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1.
    measurement_error : float
        R, the share of training rows that the measurement misclassifies.
    prior_variance, posterior_variance : float
        P of the model filter before and after the measurement update.
    gain : float
        K, how far the state moved towards the measurement.
    step : float
        How far the state moved towards the component's votes: half the gain, as the paper's measurement
        lies half way between the two.
    shrinkage : float
        How much the component's votes were shrunken; 0 in the paper's variants.
    component_error : float
        The share of training rows that the component alone misclassifies.
    training_error : float
        The share of training rows that the ensemble so far misclassifies.
    effective_sample_size : float
        How many equally weighted rows the sampling weights of the iteration are worth.
    resets : int
        1 if the component was no better than guessing and the sampling weights were reset.
    seconds : float
        Time that the iteration took.
    validation_score : float or None
        Score of the ensemble so far for the validation set, if there is one; higher is better.
    """

    iteration: int
    measurement_error: float
    prior_variance: float
    posterior_variance: float
    gain: float
    step: float
    shrinkage: float
    component_error: float
    training_error: float
    effective_sample_size: float
    resets: int
    seconds: float
    validation_score: float | None = None


# The columns of a trace; validation scores have a place of their own
COLUMNS = tuple(name for name in Iteration._fields if name not in ("iteration", "validation_score"))


class Trace:
    """What the filters saw and did: columns with an entry per iteration, as `Iteration` describes them.

    Parameters
    ----------
    columns : mapping of str to sequence, default=None
        The columns of a training that was; None: a trace of no iterations.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> model = KFHEClassifier(n_estimators=5, random_state=0).fit(*load_iris(return_X_y=True))
    >>> len(model.trace_)
    5
    >>> model.trace_["gain"].shape
    (5,)
    >>> model.trace_.columns[:3]
    ['measurement_error', 'prior_variance', 'posterior_variance']
    """

    def __init__(self, columns: Mapping[str, Sequence[float]] | None = None) -> None:
        given = dict.fromkeys(COLUMNS, ()) if columns is None else columns
        self._columns = {name: list(values) for name, values in given.items()}

    def append(self, row: Iteration) -> None:
        """Add an iteration."""
        for name, column in self._columns.items():
            column.append(getattr(row, name))

    def cut(self, n_iter: int) -> None:
        """Keep the first iterations only."""
        for column in self._columns.values():
            del column[n_iter:]

    def __len__(self) -> int:
        return len(self._columns["gain"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self._columns == other._columns

    __hash__ = None  # type: ignore[assignment]  # it can grow

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column as an array."""
        if column not in self._columns:
            raise KeyError(f"no column {column!r} in the trace; there are {', '.join(self.columns)}")
        return np.asarray(self._columns[column])

    @property
    def columns(self) -> list[str]:
        """Names of the columns: of a model that an earlier version saved, those that it knew."""
        return list(self._columns)

    def to_frame(self) -> Any:
        """Return the trace as a pandas DataFrame, indexed by iteration (from 1)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Trace.to_frame() needs pandas: pip install kfhe[frames]") from error
        index = pd.RangeIndex(1, len(self) + 1, name="iteration")
        return pd.DataFrame({name: self[name] for name in self.columns}, index=index)
