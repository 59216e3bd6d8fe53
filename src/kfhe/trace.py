"""The trace: what happened in each iteration of training, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Iteration(NamedTuple):
    """What happened in one iteration: a row of the trace, as callbacks get it.

    Attributes
    ----------
    iteration : int
        Number of the iteration, from 1; of the measurement, if an iteration takes several.
    measurement_error : float
        R, the share of training rows that the measurement misclassifies; out of bag, of those that the
        component has not seen.
    prior_variance, posterior_variance : float
        P of the model filter before and after the measurement update.
    gain : float
        K, how far the state moved towards the measurement.
    step : float
        How far the state moved towards the component's votes: the gain times the `fusion`, which in the paper
        is a half.
    transition : float
        The share of itself that the state kept before that, the rest being h_0's; 1 in the paper's variants.
    shrinkage : float
        How much the component's votes were shrunken; 0 in the paper's variants.
    component_error : float
        The share of the same rows that the component alone misclassifies.
    training_error : float
        The share of training rows that the ensemble so far misclassifies.
    effective_sample_size : float
        How many equally weighted rows the sampling weights of the iteration are worth.
    resets : int
        1 if the component was no better than guessing and the sampling weights were reset.
    seconds : float
        Time that the iteration took. It tells nothing of the model: model files don't hold it.
    validation_score : float or None
        Score of the ensemble so far for the validation set, if there is one; higher is better.
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


# The columns of a trace: all between the number of a row and its validation score
COLUMNS = Iteration._fields[1:-1]
TIME = "seconds"  # the one that is different each time


class Trace:
    """What the filters saw and did: columns with an entry per iteration, as `Iteration` describes them.

    Traces are equal if all columns but `seconds` are.

    Parameters
    ----------
    columns : mapping of str to sequence, default=None
        The columns of a training that was; None: a trace of no iterations.

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
        self.columns = list(given)  # without seconds, if it comes from a file
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

    __hash__ = None  # type: ignore[assignment]  # it can grow

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column as an array."""
        if column not in self.columns:
            raise KeyError(f"no column {column!r} in the trace; there are {', '.join(self.columns)}")
        place = COLUMNS.index(column)
        return np.array([row[place] for row in self._rows])

    def lasting(self) -> dict[str, list[float]]:
        """Return the columns that are the same for the same training: all but the seconds."""
        return {name: self[name].tolist() for name in self.columns if name != TIME}

    def to_frame(self) -> Any:
        """Return the trace as a pandas DataFrame, indexed by iteration (from 1)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("Trace.to_frame() needs pandas: pip install pandas") from error
        index = pd.RangeIndex(1, len(self) + 1, name="iteration")
        return pd.DataFrame({name: self[name] for name in self.columns}, index=index)
