"""The state-space model: how the state that is estimated moves on, and how components measure it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from kfhe.kalman import Schedule, check_schedule
from kfhe.measurement import FUSION, Measurement, OnTrainingRows, OnUnseenRows
from kfhe.rows import TrainingRows
from kfhe.validation import NamedParameters

MEASUREMENTS = {"training": OnTrainingRows, "out-of-bag": OnUnseenRows}


@dataclass(repr=False, eq=False)
class StateSpace(NamedParameters):
    """The state-space model of a `KFHEClassifier`; the defaults are the paper's.

    It is a parameter of its own, so that its fields can be searched as others: `state_space__fusion`.

    Parameters
    ----------
    measurement : {"training", "out-of-bag"}, default="training"
        Which rows a component is judged by, and moves: all, as in the paper, or those that are not in its
        sample. Out of bag, errors and misses are those of unseen rows, also `training_error` in the trace.
        That is no estimate of the error on new rows: rows with much weight are in nearly every sample, so
        few components judge them (`RobustKFHEClassifier` has an `oob_score_`, which is one). h_0 has
        no more than the shares of the classes then, as any other would have seen all rows.
    fusion : float, default=0.5
        How far a measurement lies from the state (0) to the votes of the component (1).
    process_noise : float, sequence of float or callable, default=0.0
        What each iteration adds to the variance of the model filter. The more, the more the later components
        count; the paper has none, as the state that it estimates does not change. A sequence has a value for
        each iteration, the last of which stays; a function gets the number of the iteration, from 1.
    transition : float, default=1.0
        What each iteration leaves of the state: below 1 it goes back towards the shares of the classes, from
        which it then starts as well: h_0 is a tree of one leaf. Needs `process_noise`.
    n_measurements : int, default=1
        How many components of each estimator an iteration measures and fuses, one after the other. They are
        drawn by the same weights; weights, process noise and transition follow once for all of them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier, StateSpace
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KFHEClassifier(state_space=StateSpace(process_noise=0.01), random_state=0).fit(X, y)
    >>> bool(model.trace_["gain"][-1] > 0.05)
    True
    """

    measurement: str = "training"
    fusion: float = FUSION
    process_noise: Schedule = 0.0
    transition: float = 1.0
    n_measurements: int = 1

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "measurement": [StrOptions(set(MEASUREMENTS))],
        "fusion": [Interval(Real, 0, 1, closed="right")],
        "process_noise": [Interval(Real, 0, None, closed="left"), "array-like", callable],
        "transition": [Interval(Real, 0, 1, closed="right")],
        "n_measurements": [Interval(Integral, 1, None, closed="left")],
    }

    def check(self) -> None:
        """Raise unless the parameters are sound, one by one and together."""
        self._validate_params()
        check_schedule(self.process_noise)
        if self.transition < 1 and not callable(self.process_noise) and not np.any(self.process_noise):
            raise ValueError(
                f"transition={self.transition} needs a process_noise above 0: without it the filter soon "
                "believes no component any more, and the scores end at the shares of the classes"
            )

    @property
    def from_shares(self) -> bool:
        """Whether h_0 is not trained: the state goes back to it, or is to be honest from the start."""
        return self.transition < 1 or self.measurement == "out-of-bag"

    def make_measurement(self, rows: TrainingRows) -> Measurement:
        """Return what measures the components' votes for these rows."""
        return MEASUREMENTS[self.measurement](
            rows, self.fusion, process_noise=self.process_noise, transition=self.transition
        )
