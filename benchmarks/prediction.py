"""Prediction: how long fitted models take for few and for many rows, ours and peers of similar size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import joblib
import numpy as np
from rich.table import Table

from benchmarks.algorithms import OURS
from benchmarks.contenders import Contender, ContenderRun
from benchmarks.goals import Goal
from benchmarks.report import busy_lines
from benchmarks.runner import Report
from benchmarks.worker import BATCH, seconds_per_call

DATASETS = ("clusters2", "clusters7")
ROWS = (1, 100, 1_000, 10_000, BATCH)
METHODS = ("predict", "predict_proba")

SMALL = f"{OURS}, 255 leaves"
SMALL_LIGHTGBM = "LightGBM, 255 leaves"
DEEP_XGBOOST = "XGBoost, depth 17"
CONTENDERS = (
    Contender(OURS, OURS),
    Contender(SMALL, OURS, settings={"estimator__max_leaf_nodes": 255}),
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
class PredictionRun(ContenderRun):
    """All that a run has found."""

    timings: list[Timing] = field(default_factory=list)

    def of(self, dataset: str, contender: str, method: str) -> dict[int, float]:
        """Return the seconds that a contender takes, by number of rows."""
        wanted = dataset, contender, method
        return {
            each.rows: each.time
            for each in self.timings
            if (each.dataset, each.contender, each.method) == wanted
        }


class Predictor:
    """A contender that has been trained."""

    def __init__(self, file: Path, contender: Contender, n_threads: int) -> None:
        data, (n_components,) = joblib.load(file), contender.sizes
        self.model = contender.new(data.X_train, n_components, n_threads)
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
    present, found = run.installed(contenders), dict[tuple[str, str, int], Timing]()
    with run.data(dataset, report) as file:
        turns = run.rounds(dataset, present, Predictor, file, run.settings["threads"], report)
        for name, (method, n, seconds) in turns:
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
