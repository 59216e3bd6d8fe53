"""The state-space model: how the estimated state changes, and how components measure it."""

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
    """The state-space model of a `KFHEClassifier`. The defaults are those of the paper.

    Its parameters can be tuned like any others, as `state_space__fusion` and so on.

    Parameters
    ----------
    measurement : {"training", "out-of-bag"}, default="training"
        Which rows judge a component and are moved by it: all, as in the paper, or those outside its sample.
        Out of bag, the errors and misses are those of unseen rows, including `training_error` in the trace.
        This does not estimate the error on new rows, because rows of high weight are in nearly every sample
        (the `oob_score_` of `RobustKFHEClassifier` does). h_0 then predicts the class shares, because any
        other first component would have seen all rows.
    fusion : float, default=0.5
        Position of a measurement between the state (0) and the votes of the component (1).
    process_noise : float, sequence of float or callable, default=0.0
        Variance that each iteration adds to the model filter. The higher it is, the more the later components
        count. The paper has none, because its state does not change. A sequence has one value per iteration,
        and the last value is repeated; a function gets the number of the iteration, from 1.
    transition : float, default=1.0
        Share of the state that each iteration keeps. Below 1, the state returns to the class shares, where it
        also starts: h_0 is a tree with a single leaf. Requires `process_noise`.
    n_measurements : int, default=1
        Number of components of each estimator in an iteration. They are drawn with the same weights. Weights,
        process noise and transition are applied once per iteration.

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
        """Raise unless the parameters are valid, alone and in combination."""
        self._validate_params()
        check_schedule(self.process_noise)
        if self.transition < 1 and not callable(self.process_noise) and not np.any(self.process_noise):
            raise ValueError(
                f"transition={self.transition} needs a process_noise above 0: without it, the gain falls to "
                "0 and the scores end at the class shares"
            )

    @property
    def from_shares(self) -> bool:
        """Whether h_0 is untrained: because the state returns to it, or to measure out of the bag."""
        return self.transition < 1 or self.measurement == "out-of-bag"

    def make_measurement(self, rows: TrainingRows) -> Measurement:
        """Return the measurement for these rows."""
        return MEASUREMENTS[self.measurement](
            rows, self.fusion, process_noise=self.process_noise, transition=self.transition
        )
