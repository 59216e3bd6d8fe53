"""A worker: the process of its own in which one algorithm is measured on one dataset."""

from __future__ import annotations

import os
import pickle
import re
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

ENOUGH = 0.2  # seconds: shorter calls are warmed up, and repeated until they took this long in total
TOO_LONG = 100.0  # seconds: a fit that takes longer is not repeated
BATCH = 100_000  # rows


class Worker:
    """One algorithm on one dataset.

    Parameters
    ----------
    dataset : Path
        File with the dataset, written by joblib.
    algorithm : str
        Name of the algorithm.
    n_components, n_threads : int
        Size of the ensemble, and how many threads it may use.
    """

    def __init__(self, dataset: Path, algorithm: str, n_components: int, n_threads: int) -> None:
        # Read by OpenMP and BLAS when they are loaded, so it comes before the imports.
        os.environ["OMP_NUM_THREADS"] = str(n_threads)
        import joblib

        from kfhe.bench.algorithms import ALGORITHMS, ONE_HOT

        warnings.simplefilter("ignore")
        # Threads, as random forests have them: bagging's own processes would escape the memory figure.
        joblib.parallel_config("threading")
        self.data = joblib.load(dataset)
        if algorithm == ONE_HOT:
            self.data = self.data.one_hot()
        self.algorithm = ALGORITHMS[algorithm]
        self.n_components = n_components
        self.n_threads = n_threads
        self.one_row = self.data.X_test.take([0], axis=0)
        self.batch = self.data.X_test.take([i % len(self.data.y_test) for i in range(BATCH)], axis=0)

    def first_fit(self) -> dict[str, Any]:
        """Fit once, untimed, and return what does not depend on the clock."""
        from sklearn.metrics import f1_score

        # Libraries and threads that come with the first call are no part of the growth.
        some = range(min(1000, len(self.data.y_train)))
        few_rows = self.data.X_train.take(some, axis=0), self.data.y_train[some]
        self.algorithm.build(2, self.n_threads).fit(*few_rows)
        before, _ = _memory(reset_peak=True)
        self.first_seconds = _seconds(self.fit)
        _, peak = _memory()
        predicted = self.predict(self.data.X_test).ravel()
        return {
            "macro_f1": float(f1_score(self.data.y_test, predicted, average="macro", zero_division=0)),
            "memory_growth": peak - before,
            "model_bytes": len(pickle.dumps(self.model)),
            **_size(self.model, self.n_components),
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
        self.model = self.algorithm.build(self.n_components, self.n_threads)
        self.model.fit(self.data.X_train, self.data.y_train)

    def predict(self, X: Any) -> Any:
        """Predict with the ensemble trained last."""
        return self.model.predict(X, **self.algorithm.predict_settings(self.n_threads))


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


def _size(model: Any, n_components: int) -> dict[str, int | None]:
    """Return how many components were trained and, of our trees, how many nodes and leaves they have."""
    trained = getattr(model, "n_iter_", None) or len(getattr(model, "estimators_", ())) or n_components
    if not hasattr(model, "component_weights_"):
        return {"components": int(trained), "nodes": None, "leaves": None}
    trees = model.estimators_
    return {
        "components": int(trained),
        "nodes": sum(len(tree.nodes) for tree in trees),
        "leaves": sum(tree.get_n_leaves() for tree in trees),
    }


def _memory(*, reset_peak: bool = False) -> tuple[int, int]:
    """Return the memory in use and the most that was in use, in bytes."""
    status = Path("/proc/self/status")
    if status.is_file():
        # Linux. Not ru_maxrss: there, it starts with the peak of the process that started this one.
        if reset_peak:
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")
        kilobytes = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+)", status.read_text()))
        return 1024 * int(kilobytes["VmRSS"]), 1024 * int(kilobytes["VmHWM"])
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak, peak
