"""A worker: the process of its own in which one algorithm is measured on one dataset.

It imports little, and late: what was loaded and freed before a fit would hide some of its memory.
"""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.machine import memory

ENOUGH = 0.2  # seconds: shorter calls are warmed up, and repeated until they took this long in total
TOO_LONG = 100.0  # seconds: a fit that takes longer is not repeated
BATCH = 100_000  # rows


@dataclass(frozen=True)
class Split:
    """Training rows with noisy labels, and held-out rows with clean ones."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any

    @property
    def float32_bytes(self) -> int:
        """Size of the training table in float32."""
        n_rows, n_columns = self.X_train.shape
        return 4 * int(n_rows * n_columns)


class Worker:
    """One algorithm on one dataset.

    Parameters
    ----------
    dataset : Path
        File with the split dataset, written by joblib.
    algorithm : str
        Name of the algorithm.
    n_components, n_threads : int
        Size of the ensemble, and how many threads it may use.
    """

    def __init__(self, dataset: Path, algorithm: str, n_components: int, n_threads: int) -> None:
        # Read by OpenMP and BLAS when they are loaded, so it comes before the imports.
        os.environ["OMP_NUM_THREADS"] = str(n_threads)
        import joblib

        from benchmarks.algorithms import build, encode, predict_settings
        from kfhe.study.encoding import Categorical

        warnings.simplefilter("ignore")
        # Threads, as random forests have them: bagging's own processes would escape the memory figure.
        joblib.parallel_config("threading")
        data = joblib.load(dataset)
        self.build = partial(build, algorithm, Categorical.of(data.X_train), n_threads=n_threads)
        self.predict_settings = predict_settings(algorithm, n_threads)
        X_train, X_test = encode(algorithm, data.X_train, data.X_test)
        self.data = replace(data, X_train=X_train, X_test=X_test)
        self.n_components = n_components
        self.one_row = self.data.X_test.take([0], axis=0)
        self.batch = self.data.X_test.take([i % len(self.data.y_test) for i in range(BATCH)], axis=0)

    def first_fit(self) -> dict[str, Any]:
        """Fit once, untimed, and return what does not depend on the clock."""
        from kfhe.metrics import metrics_of

        # Libraries and threads that come with the first call are no part of the growth.
        some = range(min(1000, len(self.data.y_train)))
        few_rows = self.data.X_train.take(some, axis=0), self.data.y_train[some]
        self.build(n_components=2).fit(*few_rows)
        before = memory(reset_peak=True)
        self.first_seconds = _seconds(self.fit)
        after = memory()
        predicted, true = self.predict(self.data.X_test).ravel(), self.data.y_test
        return {
            "f1_macro": metrics_of(true, predicted, None, int(true.max()) + 1)["f1_macro"],
            "memory_growth": after[1] - before[0] if before and after else None,
            "model_bytes": len(pickle.dumps(self.model)),
            **size_of(self.model, self.n_components),
        }

    def one_round(self) -> dict[str, float]:
        """Return the seconds that fitting, and predicting a batch and one row, take now."""
        too_long = self.first_seconds > TOO_LONG
        return {
            "fit_seconds": self.first_seconds if too_long else seconds_per_call(self.fit),
            "batch_seconds": seconds_per_call(lambda: self.predict(self.batch)),
            "row_seconds": seconds_per_call(lambda: self.predict(self.one_row)),
        }

    def fit(self) -> None:
        """Train the ensemble."""
        self.model = self.build(n_components=self.n_components)
        self.model.fit(self.data.X_train, self.data.y_train)

    def predict(self, X: Any) -> Any:
        """Predict with the ensemble trained last."""
        return self.model.predict(X, **self.predict_settings)


_workers: list[Worker] = []


def start(dataset: Path, algorithm: str, n_components: int, n_threads: int) -> dict[str, Any]:
    """Set up this process's worker, and return what its first fit showed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C ends it at once, without a traceback
    _workers.append(Worker(dataset, algorithm, n_components, n_threads))
    return _workers[0].first_fit()


def one_round() -> dict[str, float]:
    """Have this process's worker do a round."""
    return _workers[0].one_round()


def seconds_per_call(call: Callable[[], object]) -> float:
    """Return how long a call takes: once, or the median of several after a warm-up if it is a short one.

    Parameters
    ----------
    call : callable
        What to time.

    Returns
    -------
    float
        Seconds.
    """
    first = _seconds(call)
    if first >= ENOUGH:
        return first
    times: list[float] = []
    while sum(times) < ENOUGH:
        times.append(_seconds(call))
    return median(times)


def _seconds(call: Callable[[], object]) -> float:
    started = perf_counter()
    call()
    return perf_counter() - started


def size_of(model: Any, n_components: int) -> dict[str, int | None]:
    """Return how many components were trained and, of our trees, how many nodes and leaves they have."""
    from kfhe.study.algorithms import components_of

    trained = components_of(model) or n_components
    if not hasattr(model, "component_weights_"):
        return {"components": trained, "nodes": None, "leaves": None}
    trees = model.estimators_
    return {
        "components": trained,
        "nodes": sum(len(tree.nodes) for tree in trees),
        "leaves": sum(tree.get_n_leaves() for tree in trees),
    }
