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
    """A point of a run that it can go back to."""

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
        How many are fused, one after the other, between two time updates.
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

        ``watch`` gets each row of the trace; training ends when it returns True.
        """
        rows, trace, model, measurement = self.rows, self.trace, self.model, self.measurement
        stopped = False
        while len(trace) < n_estimators and model.variance > 0 and rows.n_present > 1 and not stopped:
            started, iteration = perf_counter(), len(trace) + 1
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
            if ends and model.variance > 0:  # a filter that is certain draws no more rows
                self.weights.update(emphasis(self.weights.state, reading.missed), reading.error)
                rows.normalise(self.weights)
            row = Iteration(  # in the order of its fields: by name it would take as long as a filter does
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
            del counts, votes, reading  # what is large makes room for the next
            stopped = watch(row)

    def checkpoint(self) -> Checkpoint:
        """Return the point where the run is; of the rows, which never change, there is no copy."""
        model, weights = deepcopy((self.model, self.weights), {id(self.rows): self.rows})
        return Checkpoint(len(self.trace), model, weights)

    def restore(self, point: Checkpoint) -> None:
        """Go back to an earlier point, once.

        What the model filter knew is put back into the filter itself: sensor, measurement and emphasis may
        hold it as well.
        """
        self.trace.cut(point.n_iter)
        self.sensor.keep(point.n_iter + 1)
        vars(self.model).update(vars(point.model))
        self.weights = point.weights

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
