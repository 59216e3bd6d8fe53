"""The trace: what happened in each iteration of training, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Iteration(NamedTuple):
    """One iteration: a row of the trace, which callbacks get.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1; of the measurement, if an iteration makes several.
    measurement_error : float
        R, the share of training rows that the measurement misclassifies; out of bag, among the rows that the
        component has not seen.
    prior_variance, posterior_variance : float
        P of the model filter before and after the measurement update.
    gain : float
        K, how far the state moved towards the measurement.
    step : float
        How far the state moved towards the component's votes: the gain times `fusion`, which is one half in
        the paper.
    transition : float
        Share of the state that was kept before the step; the rest is that of h_0. 1 in the paper.
    shrinkage : float
        How much the component's votes were shrunk; 0 in the paper.
    component_error : float
        The share of the same rows that the component alone misclassifies.
    training_error : float
        The share of training rows that the ensemble misclassifies.
    effective_sample_size : float
        Effective sample size of the sampling weights.
    resets : int
        1 if the component was no better than guessing and the sampling weights were reset.
    seconds : float
        Duration of the iteration. It is not saved in model files.
    validation_score : float or None
        Score of the ensemble on the validation set, if there is one; higher is better.
    """

    iteration: int
    measurement_error: float
    prior_variance: float
    posterior_variance: float
    gain: float
    step: float
    transition: float
    shrinkage: float
    component_error: float
    training_error: float
    effective_sample_size: float
    resets: int
    seconds: float
    validation_score: float | None = None


# The columns of a trace
COLUMNS = Iteration._fields[1:-1]
TIME = "seconds"  # the only column that differs between equal runs


class Trace:
    """The history of the filters: columns with one value per iteration, as described in `Iteration`.

    Traces are equal if all columns except `seconds` are equal.

    Parameters
    ----------
    columns : mapping of str to sequence, default=None
        The columns of an earlier training; None: no iterations.

    Attributes
    ----------
    columns : list of str
        Names of the columns.

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
        self.columns = list(given)  # without seconds if loaded from a file
        self._rows = list(zip(*(given.get(name, repeat(nan)) for name in COLUMNS), strict=False))

    def append(self, row: Iteration) -> None:
        """Add an iteration."""
        self._rows.append(row[1:-1])

    def cut(self, n_iter: int) -> None:
        """Keep the first iterations only."""
        del self._rows[n_iter:]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self.lasting() == other.lasting()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column as an array."""
        if column not in self.columns:
            raise KeyError(f"no column {column!r} in the trace; there are {', '.join(self.columns)}")
        place = COLUMNS.index(column)
        return np.array([row[place] for row in self._rows])

    def lasting(self) -> dict[str, list[float]]:
        """Return the columns that are the same for each run: all except the seconds."""
        return {name: self[name].tolist() for name in self.columns if name != TIME}

    def to_frame(self) -> Any:
        """Return the trace as a pandas DataFrame, indexed by iteration (from 1)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Trace.to_frame() needs pandas: pip install pandas") from error
        index = pd.RangeIndex(1, len(self) + 1, name="iteration")
        return pd.DataFrame({name: self[name] for name in self.columns}, index=index)
