"""The training loop: two Kalman filters, a sensor and the trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from time import perf_counter
from typing import NamedTuple

from kfhe.emphasis import Emphasis
from kfhe.kalman import Filter, KalmanFilter
from kfhe.measurement import Measurement
from kfhe.rows import TrainingRows
from kfhe.sensors import Sensor
from kfhe.trace import Iteration, Trace


class Checkpoint(NamedTuple):
    """A state of a run that can be restored."""

    n_iter: int
    model: Filter
    weights: KalmanFilter


class TrainingRun:
    """The state of training.

    Parameters
    ----------
    rows : TrainingRows
        The training rows.
    sensor : Sensor
        Trains the components.
    measurement : Measurement
        Makes measurements of their votes.
    n_measurements : int, default=1
        Number of measurements between two time updates.
    """

    def __init__(
        self, rows: TrainingRows, sensor: Sensor, measurement: Measurement, n_measurements: int = 1
    ) -> None:
        self.rows, self.sensor, self.measurement = rows, sensor, measurement
        self.n_measurements = n_measurements
        self.draws = rows.draws()
        self.trace = Trace()
        self.model = measurement.model_filter(sensor.initial())
        self.weights = measurement.weight_filter()

    def train(
        self, emphasis: Emphasis, n_estimators: int, watch: Callable[[Iteration], bool] = lambda row: False
    ) -> None:
        """Run the filters until there are ``n_estimators`` components, or nothing is left to learn.

        ``watch`` is called with each row of the trace; training ends when it returns True.
        """
        rows, trace, model, measurement = self.rows, self.trace, self.model, self.measurement
        iteration, stopped = len(trace), rows.n_present < 2
        while iteration < n_estimators and model.variance > 0 and not stopped:
            started, iteration = perf_counter(), iteration + 1
            begins = (iteration - 1) % self.n_measurements == 0
            if begins:
                model.predict()
                self.weights.predict()
            for resets in (0, 1):
                counts = self.draws.draw(self.weights.state, iteration, resets)
                votes = self.sensor.read(counts, iteration, resets)
                reading = measurement.take(model.state, votes, counts)
                if not reading.guessed or resets:
                    break
                self.weights = measurement.weight_filter()
            sample_size = rows.effective_sample_size(self.weights.state)
            prior_variance, shrinkage = model.variance, self.sensor.shrinkage
            gain = model.update(reading.state, reading.error)
            ends = iteration % self.n_measurements == 0
            if ends and model.variance > 0:  # a filter without variance needs no more rows
                self.weights.update(emphasis(self.weights.state, reading.missed), reading.error)
                rows.normalise(self.weights)
            row = Iteration(  # positional, because keywords take as long as a filter does
                iteration,
                reading.error,
                prior_variance,
                model.variance,
                gain,
                gain * measurement.fusion,
                measurement.transition if begins else 1.0,
                shrinkage,
                reading.component_error,
                measurement.error(model.state),
                sample_size,
                resets,
                perf_counter() - started,
            )
            trace.append(row)
            del counts, votes, reading  # free large arrays before the next iteration
            stopped = watch(row)

    def checkpoint(self) -> Checkpoint:
        """Return the current state. The rows never change, so they are not copied."""
        model, weights = deepcopy((self.model, self.weights), {id(self.rows): self.rows})
        return Checkpoint(len(self.trace), model, weights)

    def restore(self, point: Checkpoint) -> None:
        """Return to an earlier state, once.

        The state of the model filter is restored in place, because sensor, measurement and emphasis may refer
        to it.
        """
        self.trace.cut(point.n_iter)
        self.sensor.keep(point.n_iter + 1)
        vars(self.model).update(vars(point.model))
        self.weights = point.weights

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """Drop the iterations of a training that fails, so that the run can still be resumed."""
        if not len(self.trace):  # a run that never succeeded is not resumed
            yield
            return
        start = self.checkpoint()
        try:
            yield
        except BaseException:
            self.restore(start)
            raise
