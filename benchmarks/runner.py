"""A run: the algorithms on dataset after dataset, round by round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import joblib

from benchmarks import machine, worker
from benchmarks.algorithms import OURS, is_installed
from benchmarks.datasets import DATASETS, NOISE, split
from kfhe.study.algorithms import versions_of
from kfhe.study.errors import StudyError

LIBRARIES = ("kfhe", "numpy", "scipy", "scikit-learn", "pandas", "lightgbm", "xgboost", "catboost")

Report = Callable[[str], None]


@dataclass
class Figures:
    """What one algorithm did on one dataset.

    Attributes
    ----------
    dataset, algorithm : str
        Their names.
    fit_seconds, batch_seconds, row_seconds : list of float
        Time to fit, to predict the batch and to predict one row, in each round.
    f1_macro : float
        On the clean labels of held-out rows.
    memory_growth : int or None
        Bytes by which the process grew at most during a fit; None where that can't be told.
    model_bytes : int
        Size of the pickled model.
    components, nodes, leaves : int
        Number of components trained; nodes and leaves in our own trees.
    error : str or None
        Why there are no figures.
    """

    dataset: str
    algorithm: str
    fit_seconds: list[float] = field(default_factory=list)
    batch_seconds: list[float] = field(default_factory=list)
    row_seconds: list[float] = field(default_factory=list)
    f1_macro: float = 0.0
    memory_growth: int | None = None
    model_bytes: int = 0
    components: int = 0
    nodes: int | None = None
    leaves: int | None = None
    error: str | None = None

    def median(self, seconds: str) -> float:
        """Return the median over the rounds of one of the three timings."""
        return median(getattr(self, seconds))


@dataclass
class Run:
    """All that a run has found.

    Attributes
    ----------
    settings : dict
        How it was made: rounds, threads, components, share of labels changed, where, and how
        busy the machine was.
    versions : dict
        Versions of the libraries, None for those that are not installed.
    tables : dict
        For each dataset its number of rows, columns and classes, and its size in float32.
    results : list of Figures
        The figures.
    left_out : dict
        Datasets and algorithms that were asked for, and why there are no figures.
    """

    settings: dict[str, Any]
    versions: dict[str, str | None] = field(default_factory=lambda: versions_of(LIBRARIES))
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    results: list[Figures] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_settings(cls, *, rounds: int, n_threads: int, n_components: int = 100) -> Run:
        """Return a run that has not measured anything yet."""
        return cls(
            {
                "rounds": rounds,
                "threads": n_threads,
                "components": n_components,
                "labels_changed": NOISE,
                "batch_rows": worker.BATCH,
                **machine.facts(),
            }
        )

    def find(self, dataset: str, algorithm: str) -> Figures | None:
        """Return the figures of an algorithm on a dataset, if there are any."""
        for result in self.results:
            if (result.dataset, result.algorithm) == (dataset, algorithm) and result.error is None:
                return result
        return None


def measure(
    run: Run, dataset: str, algorithms: Sequence[str] = (), *, report: Report = lambda message: None
) -> None:
    """Measure ours and its peers on one dataset, and add the figures to the run.

    Parameters
    ----------
    run : Run
        Has the settings, and gets the figures.
    dataset : str
        Name of the dataset.
    algorithms : sequence of str, default=()
        Names of the peers; ours is always there. None given: those that are usual for the dataset.
    report : callable, default: does nothing
        Is told what is going on.
    """
    names = _usable(run, dataset, algorithms)
    report(f"{dataset}: making the data")
    try:
        data = split(dataset)
    except StudyError as error:
        run.left_out[dataset] = str(error)
        return
    run.tables[dataset] = {
        "rows": data.X_train.shape[0],
        "columns": data.X_train.shape[1],
        "classes": int(data.y_train.max()) + 1,
        "float32_bytes": data.float32_bytes,
    }
    with TemporaryDirectory(prefix="kfhe-bench-") as folder:
        file = Path(folder) / "data"
        joblib.dump(data, file)
        del data
        results = [Figures(dataset, name) for name in names]
        run.results.extend(results)
        _take_turns(results, run.settings, file, report)


def _usable(run: Run, dataset: str, wanted: Sequence[str]) -> list[str]:
    """Choose the algorithms for a dataset, ours first, and note those that are not installed."""
    names = list(dict.fromkeys([OURS, *(wanted or DATASETS[dataset].algorithms)]))
    missing = [name for name in names if not is_installed(name)]
    run.left_out.update(dict.fromkeys(missing, "not installed"))
    return [name for name in names if name not in missing]


def _take_turns(results: list[Figures], settings: dict[str, Any], file: Path, report: Report) -> None:
    """Start a process for each algorithm, then go round."""
    with ExitStack() as stack:
        processes = {
            result.algorithm: stack.enter_context(
                ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"))
            )
            for result in results
        }
        for result in results:
            report(f"{result.dataset}: {result.algorithm}, first fit")
            args = file, result.algorithm, settings["components"], settings["threads"]
            for key, value in _ask(result, processes, worker.start, *args):
                setattr(result, key, value)
        for i in range(settings["rounds"]):
            for result in results:
                report(f"{result.dataset}: {result.algorithm}, round {i + 1}")
                for key, value in _ask(result, processes, worker.one_round):
                    getattr(result, key).append(value)


def _ask(
    result: Figures,
    processes: dict[str, ProcessPoolExecutor],
    task: Callable[..., dict[str, Any]],
    *args: Any,
) -> Iterator[tuple[str, Any]]:
    """Have an algorithm's process do a task; if it fails, that is noted and it is not asked again."""
    if result.error is not None:
        return
    try:
        yield from processes[result.algorithm].submit(task, *args).result().items()
    except Exception as error:  # a peer's failure must not end the run
        result.error = f"{type(error).__name__}: {error}".splitlines()[0]
