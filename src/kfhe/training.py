"""The training loop: two Kalman filters, a sensor that feeds them, and the trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from time import perf_counter
from typing import NamedTuple

from kfhe.callbacks import Callback
from kfhe.early_stopping import ValidationSet
from kfhe.emphasis import Emphasis
from kfhe.engine.arrays import Measurer, effective_sample_size, normalise
from kfhe.kalman import KalmanFilter
from kfhe.sensors import Sensor, TrainingRows
from kfhe.trace import Trace


class Checkpoint(NamedTuple):
    """A point of a run that it can go back to."""

    n_iter: int
    model: KalmanFilter
    weights: KalmanFilter


class TrainingRun:
    """The state of training.

    Parameters
    ----------
    sensor : Sensor
        Trains the components.
    rows : TrainingRows
        The training rows.
    """

    def __init__(self, sensor: Sensor, rows: TrainingRows) -> None:
        self.sensor = sensor
        self.rows = rows
        self.trace = Trace()
        self.model = KalmanFilter(sensor.initial(), 1.0, n_threads=rows.n_threads)
        self.weights = self._uninformed_weights()
        self.measurer = Measurer(rows.labels, rows.base, len(rows.classes), rows.n_threads)

    def train(
        self,
        emphasis: Emphasis,
        n_estimators: int,
        callbacks: Sequence[Callback] = (),
        validation: ValidationSet | None = None,
    ) -> None:
        """Run the filters until there are ``n_estimators`` components, or nothing is left to learn."""
        rows, trace, model, measurer = self.rows, self.trace, self.model, self.measurer
        guessing = 1 - 1 / rows.n_present
        stopped = False
        while len(trace) < n_estimators and model.variance > 0 and rows.n_present > 1 and not stopped:
            started = perf_counter()
            model.predict()
            self.weights.predict()
            for resets in (0, 1):
                votes = self.sensor.read(self.weights.state, len(trace) + 1, resets)
                error, component_error = measurer.measure(model.state, votes)
                if component_error < guessing or resets:
                    break
                self.weights = self._uninformed_weights()
            sample_size = effective_sample_size(self.weights.state)
            prior_variance = model.variance
            gain = model.update(measurer.measurement, error)
            if model.variance > 0:  # else this was the last iteration
                self.weights.update(emphasis(self.weights.state, measurer.missed), error)
                if not normalise(self.weights.state, rows.n_threads) > 0:
                    raise ValueError("emphasis left no row with a positive weight to sample from")
            trace.append(
                measurement_error=error,
                prior_variance=prior_variance,
                posterior_variance=model.variance,
                gain=gain,
                component_error=component_error,
                training_error=measurer.error(model.state),
                effective_sample_size=sample_size,
                resets=resets,
                seconds=perf_counter() - started,
            )
            score = None if validation is None else validation.follow(self.sensor, gain)
            if callbacks:
                row = trace.last_row(score)
                stopped = True in [bool(callback(row)) for callback in callbacks]

    def checkpoint(self) -> Checkpoint:
        """Return the point where the run is."""
        return Checkpoint(len(self.trace), deepcopy(self.model), deepcopy(self.weights))

    def restore(self, point: Checkpoint) -> None:
        """Go back to an earlier point."""
        self.trace.cut(point.n_iter)
        self.sensor.keep(point.n_iter + 1)
        self.model, self.weights = point.model, point.weights

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Forget the iterations of a training that fails, so that the run can still be resumed."""
        if not len(self.trace):  # nobody resumes a run that has never succeeded
            yield
            return
        start = self.checkpoint()
        try:
            yield
        except BaseException:
            self.restore(start)
            raise

    def _uninformed_weights(self) -> KalmanFilter:
        return KalmanFilter(self.rows.base, 1.0, n_threads=self.rows.n_threads)
