"""Prediction: how long fitted models take for few and for many rows, ours and peers of similar size."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import numpy as np
from rich.table import Table

from benchmarks import machine
from benchmarks.algorithms import OURS, build, is_installed
from benchmarks.datasets import NOISE, split
from benchmarks.frontier import Contender
from benchmarks.goals import Goal
from benchmarks.report import busy_lines
from benchmarks.runner import LIBRARIES, Report
from benchmarks.worker import BATCH, seconds_per_call
from kfhe.study.encoding import Categorical
from kfhe.study.versions import versions_of

DATASETS = ("clusters2", "clusters7")
ROWS = (1, 100, 1_000, 10_000, BATCH)
METHODS = ("predict", "predict_proba")

SMALL = f"{OURS}, 255 leaves"
SMALL_LIGHTGBM = "LightGBM, 255 leaves"
DEEP_XGBOOST = "XGBoost, depth 17"
CONTENDERS = (
    Contender(OURS, OURS),
    Contender(SMALL, OURS, settings={"max_leaf_nodes": 255}),
    Contender("LightGBM", "LightGBM"),
    Contender(SMALL_LIGHTGBM, "LightGBM", settings={"num_leaves": 255}),
    Contender("XGBoost", "XGBoost", settings={"max_depth": 6}),
    Contender(DEEP_XGBOOST, "XGBoost", settings={"max_depth": 17}),
)

EXPLANATION = """\
Milliseconds of a call, medians over the rounds; models of 100 components have been trained before, and have
predicted once. Boosting has a tree for each class in each of them, unless there are two classes. Goals are
about predict, and the smallest ratio from 100 rows on."""


@dataclass
class Timing:
    """How long one contender takes for some rows: the seconds of a call, in each round."""

    dataset: str
    contender: str
    method: str
    rows: int
    seconds: list[float] = field(default_factory=list)

    @property
    def time(self) -> float:
        """The median over the rounds."""
        return median(self.seconds)


@dataclass
class PredictionRun:
    """All that a run has found; as `Run` has it, with timings instead of figures."""

    settings: dict[str, Any]
    versions: dict[str, str | None] = field(default_factory=lambda: versions_of(LIBRARIES))
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    timings: list[Timing] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_settings(cls, *, rounds: int, n_threads: int) -> PredictionRun:
        """Return a run that has not measured anything yet."""
        noted = {"rounds": rounds, "threads": n_threads, "labels_changed": NOISE}
        return cls({**noted, **machine.facts()})

    def of(self, dataset: str, contender: str, method: str) -> dict[int, float]:
        """Return the seconds that a contender takes, by number of rows."""
        wanted = dataset, contender, method
        return {
            each.rows: each.time
            for each in self.timings
            if (each.dataset, each.contender, each.method) == wanted
        }


class Predictor:
    """A contender in a process of its own, trained."""

    def __init__(self, dataset: Path, contender: Contender, n_threads: int) -> None:
        os.environ["OMP_NUM_THREADS"] = str(n_threads)  # read when libraries are loaded
        warnings.simplefilter("ignore")
        data, (n_components,) = joblib.load(dataset), contender.sizes
        self.model = build(
            contender.algorithm, Categorical.of(data.X_train), n_components, n_threads, **contender.settings
        )
        self.model.fit(data.X_train, data.y_train)
        repeated = np.arange(max(ROWS)) % len(data.y_test)
        self.rows = data.X_test[repeated].astype(np.float64)  # what most people's arrays are
        self.model.predict(self.rows)

    def one_round(self) -> list[tuple[str, int, float]]:
        """Return the seconds of a call of each method with each number of rows."""
        return [
            (method, n, seconds_per_call(partial(getattr(self.model, method), self.rows[:n])))
            for method in METHODS
            for n in ROWS
        ]


_predictors: list[Predictor] = []


def start(dataset: Path, contender: Contender, n_threads: int) -> None:
    """Train this process's contender."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _predictors.append(Predictor(dataset, contender, n_threads))


def one_round() -> list[tuple[str, int, float]]:
    """Have this process's contender do a round."""
    return _predictors[0].one_round()


def measure(
    run: PredictionRun,
    dataset: str,
    contenders: Sequence[Contender],
    *,
    report: Report = lambda message: None,
) -> None:
    """Train contenders on one dataset, let them take turns at predicting, and add the timings to the run.

    Parameters
    ----------
    run : PredictionRun
        Has the settings, and gets the timings.
    dataset : str
        Name of the dataset.
    contenders : sequence of Contender
        Who is measured; those whose package is not installed are left out.
    report : callable, default: does nothing
        Is told what is going on.
    """
    present = [each for each in contenders if is_installed(each.algorithm)]
    run.left_out.update({each.name: "not installed" for each in contenders if each not in present})
    report(f"{dataset}: making the data")
    data = split(dataset)
    shape = data.X_train.shape
    run.tables[dataset] = {"rows": shape[0], "columns": shape[1], "classes": int(data.y_train.max()) + 1}
    found: dict[tuple[str, str, int], Timing] = {}
    with TemporaryDirectory(prefix="kfhe-bench-") as folder, ExitStack() as stack:
        file, processes = Path(folder) / "data", {}
        joblib.dump(data, file)
        for each in present:
            report(f"{dataset}: training {each.name}")
            pool = ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"))
            processes[each.name] = stack.enter_context(pool)
            processes[each.name].submit(start, file, each, run.settings["threads"]).result()
        for i in range(run.settings["rounds"]):
            for name, process in processes.items():
                report(f"{dataset}: {name}, round {i + 1}")
                for method, n, seconds in process.submit(one_round).result():
                    timing = found.setdefault((name, method, n), Timing(dataset, name, method, n))
                    timing.seconds.append(seconds)
    run.timings += found.values()


def least_ratio(run: PredictionRun, dataset: str, ours: str, rival: str) -> float | None:
    """Return how many times faster than a rival ours predicts classes where it does least, of many rows."""
    own, theirs = (run.of(dataset, name, "predict") for name in (ours, rival))
    return min((theirs[n] / own[n] for n in own if n in theirs and n > 1), default=None)


def _faster(dataset: str, ours: str, rival: str, bound: float) -> Goal:
    figure = f"{ours}, times faster than {rival}"
    return Goal(
        dataset, figure, "at least", bound, partial(least_ratio, dataset=dataset, ours=ours, rival=rival)
    )


GOALS = [
    goal
    for dataset in DATASETS
    for goal in (
        _faster(dataset, OURS, DEEP_XGBOOST, 2),
        _faster(dataset, SMALL, SMALL_LIGHTGBM, 4),
        _faster(dataset, SMALL, "XGBoost", 1),
    )
]


def table(run: PredictionRun, dataset: str, method: str) -> Table:
    """Return the times of a method: a row for each contender, a column for each number of rows."""
    shape = run.tables[dataset]
    title = f"{method}, {dataset}: {shape['rows']:,} x {shape['columns']}, {shape['classes']} classes"
    result = Table(title=title, title_justify="left")
    result.add_column("model", no_wrap=True)
    for n in ROWS:
        result.add_column(f"{n:,} {'row' if n == 1 else 'rows'}, ms", justify="right")
    for name in dict.fromkeys(each.contender for each in run.timings if each.dataset == dataset):
        times = run.of(dataset, name, method)
        result.add_row(name, *(f"{1000 * times[n]:.3g}" for n in ROWS))
    return result


def closing_lines(run: PredictionRun) -> Iterator[str]:
    """Yield how to read the tables, what is not in them and why, and a line for each goal."""
    yield EXPLANATION
    yield from busy_lines(run.settings)
    yield from (f"{name}: {reason}" for name, reason in run.left_out.items())
    yield from (goal.describe(goal.measure(run)) for goal in GOALS if goal.dataset in run.tables)
