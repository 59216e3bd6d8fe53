"""Scaling: how the cost of a fit grows with threads, rows, classes, columns and categories, one at a time."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from math import log
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from benchmarks import machine
from benchmarks.algorithms import OURS, build, is_installed
from benchmarks.report import busy_lines
from benchmarks.runner import LIBRARIES, Report
from benchmarks.worker import seconds_per_call
from kfhe.study.algorithms import versions_of
from kfhe.study.encoding import Categorical

ALGORITHMS = (OURS, "LightGBM")
COMPONENTS = 10

EXPLANATION = f"""\
Seconds to fit {COMPONENTS} components, medians over the rounds; one property of the table changes at a time.
Growth is the power by which time grows from the line before: 1 is in proportion, 0 not at all, -1 half the
time on twice the threads. A tenth of the labels is changed."""


@dataclass(frozen=True)
class Case:
    """A table to be made, and how many threads are to be used on it.

    Attributes
    ----------
    threads, rows, classes, columns : int
        As many as there are to be.
    levels : int
        Number of categories in each of the columns; 0: they are numbers.
    """

    threads: int = 2
    rows: int = 20_000
    classes: int = 2
    columns: int = 20
    levels: int = 0

    def table(self) -> tuple[Any, Any]:
        """Make the table and its labels."""
        from sklearn.datasets import make_classification

        from kfhe.noise import flip_labels

        X, y = make_classification(
            self.rows,
            n_features=self.columns,
            n_informative=min(self.columns, 10),
            n_redundant=0,
            n_classes=self.classes,
            n_clusters_per_class=1,
            random_state=0,
        )
        y = flip_labels(y, 0.1, random_state=0)
        if not self.levels:
            return X.astype(np.float32), y
        ranks = X.argsort(axis=0).argsort(axis=0) * self.levels // self.rows
        frame = pd.DataFrame(ranks, columns=[f"column {j}" for j in range(self.columns)])
        return frame.astype("category"), y


def powers_of_two(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4, ... and the number itself."""
    return tuple(sorted({2**k for k in range(most.bit_length())} | {most}))


AXES: dict[str, tuple[int, ...]] = {
    "threads": powers_of_two(os.cpu_count() or 1),
    "rows": (1_000, 10_000, 100_000, 1_000_000),
    "classes": (2, 5, 10, 20, 50, 100),
    "columns": (5, 20, 100, 300, 1_000),
    "levels": (2, 10, 50, 200),
}
MANY_ROWS = 200_000  # where threads are compared: few rows give them little to do


def cases(axis: str, usual: Case) -> list[Case]:
    """Return the cases along an axis, all else being usual."""
    if axis == "threads":
        usual = replace(usual, rows=max(usual.rows, MANY_ROWS))
    return [replace(usual, **{axis: value}) for value in AXES[axis]]


@dataclass
class Cost:
    """What one algorithm needed for one case: its seconds, in each round."""

    axis: str
    value: int
    algorithm: str
    seconds: list[float]

    @property
    def time(self) -> float:
        """The median over the rounds."""
        return median(self.seconds)


@dataclass
class ScalingRun:
    """All that a run has found; as `Run` has it, with costs instead of figures."""

    settings: dict[str, Any]
    versions: dict[str, str | None] = field(default_factory=lambda: versions_of(LIBRARIES))
    costs: list[Cost] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_settings(cls, *, rounds: int, n_threads: int) -> ScalingRun:
        """Return a run that has not measured anything yet."""
        noted = {"rounds": rounds, "threads": n_threads, "components": COMPONENTS}
        return cls({**noted, **machine.facts()})

    def of(self, axis: str, algorithm: str) -> list[Cost]:
        """Return what an algorithm needed along an axis."""
        return [each for each in self.costs if (each.axis, each.algorithm) == (axis, algorithm)]


def measure(
    run: ScalingRun,
    axis: str,
    usual: Case | None = None,
    *,
    algorithms: Sequence[str] = ALGORITHMS,
    report: Report = lambda message: None,
) -> None:
    """Measure the cases along one axis, and add the costs to the run.

    Parameters
    ----------
    run : ScalingRun
        Has the settings, and gets the costs.
    axis : str
        One of `AXES`.
    usual : Case, default=None
        What the other properties are; None: those of `Case`, with the run's threads.
    algorithms : sequence of str
        Who is measured; those whose package is not installed are left out.
    report : callable, default: does nothing
        Is told what is going on.
    """
    present = [name for name in algorithms if is_installed(name)]
    run.left_out.update({name: "not installed" for name in algorithms if name not in present})
    for case in cases(axis, usual or Case(threads=run.settings["threads"])):
        value = getattr(case, axis)
        for name in present:
            report(f"{axis} {value:,}: {name}")
            # A process of its own: threads are set before libraries are loaded.
            with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
                seconds = process.submit(fit_seconds, case, name, run.settings["rounds"]).result()
            run.costs.append(Cost(axis, value, name, seconds))


def fit_seconds(case: Case, algorithm: str, rounds: int) -> list[float]:
    """Return how long an algorithm takes to fit a case, in each round."""
    os.environ["OMP_NUM_THREADS"] = str(case.threads)
    warnings.simplefilter("ignore")
    X, y = case.table()
    categorical = Categorical.of(X)
    build(algorithm, categorical, 2, case.threads).fit(X[:1000], y[:1000])
    model = build(algorithm, categorical, COMPONENTS, case.threads)
    return [seconds_per_call(lambda: model.fit(X, y)) for _ in range(rounds)]


def growth(before: Cost, after: Cost) -> float:
    """Return the power of the axis by which time grows from one cost to the next."""
    return log(after.time / before.time) / log(after.value / before.value)


def table(run: ScalingRun, axis: str) -> Table:
    """Return the costs along an axis: a row for each value, two columns for each algorithm."""
    by_algorithm = {name: run.of(axis, name) for name in dict.fromkeys(each.algorithm for each in run.costs)}
    result = Table(title=f"By {axis}", title_justify="left")
    result.add_column(axis, justify="right")
    for name in by_algorithm:
        result.add_column(f"{name}, s", justify="right")
        result.add_column("growth", justify="right")
    for place, value in enumerate(AXES[axis]):
        cells = [f"{value:,}"]
        for costs in by_algorithm.values():
            grown = f"{growth(costs[place - 1], costs[place]):.2f}" if place else ""
            cells += [f"{costs[place].time:.3g}", grown]
        result.add_row(*cells)
    return result


def closing_lines(run: ScalingRun) -> Iterator[str]:
    """Yield how to read the tables, and what is not in them and why."""
    yield EXPLANATION
    yield from busy_lines(run.settings)
    yield from (f"{name}: {reason}" for name, reason in run.left_out.items())
