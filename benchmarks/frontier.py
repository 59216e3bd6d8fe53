"""The frontier: time against quality, of ours by stages of one training, of peers at several settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import joblib
from rich.table import Table

from benchmarks.algorithms import OURS, ROBUST
from benchmarks.contenders import Contender, ContenderRun
from benchmarks.report import busy_lines
from benchmarks.runner import Report

STAGES = (5, 10, 20, 40, 60, 100, 150, 200)  # components after which KFHE-e is looked at
SIZES = (10, 20, 25, 30, 35, 40, 60, 100)  # that the robust classifier is trained with

EXPLANATION = """\
Seconds to fit, medians over the rounds, and macro F1 on the clean labels of held-out rows. The stages of
KFHE-e are of one training: what came before the first component, and the components' seconds in the trace.
The robust classifier decides at the end how its trees vote, so it is trained anew with each number of them.
* is on the frontier: nobody is both faster and better."""

FEWER_ROWS = {"max_samples": "auto"}
FAST = {"max_samples": "auto", "estimator__max_features": 0.5}
CONTENDERS = (
    Contender(ROBUST, ROBUST, SIZES),
    Contender(OURS, OURS, STAGES),
    Contender(f"{OURS}, max_samples auto", OURS, STAGES, FEWER_ROWS),
    Contender(f"{OURS}, fast", OURS, STAGES, FAST),
    Contender("LightGBM", "LightGBM"),
    Contender("LightGBM, 255 leaves", "LightGBM", settings={"num_leaves": 255}),
    Contender("LightGBM, 300 x 255 leaves", "LightGBM", (300,), {"num_leaves": 255}),
    Contender("XGBoost", "XGBoost", settings={"max_depth": 6}),
    Contender("XGBoost, depth 10", "XGBoost", settings={"max_depth": 10}),
)


@dataclass
class Point:
    """Time and quality of one contender, or of one of its stages.

    Attributes
    ----------
    dataset, contender : str
        Their names.
    threads, components : int
        How many threads were used, and how many components there were.
    seconds : list of float
        Time to fit, in each round.
    f1_macro : float
        On the clean labels of held-out rows.
    """

    dataset: str
    contender: str
    threads: int
    components: int
    seconds: list[float]
    f1_macro: float

    @property
    def time(self) -> float:
        """The median over the rounds."""
        return median(self.seconds)


@dataclass
class FrontierRun(ContenderRun):
    """All that a run has found."""

    points: list[Point] = field(default_factory=list)

    def of(self, dataset: str, threads: int) -> list[Point]:
        """Return the points for a dataset and a number of threads."""
        return [each for each in self.points if (each.dataset, each.threads) == (dataset, threads)]


def on_frontier(points: Sequence[Point]) -> list[Point]:
    """Return those points than which no other is both faster and better, fastest first."""
    best, kept = float("-inf"), []
    for point in sorted(points, key=lambda point: (point.time, -point.f1_macro)):
        if point.f1_macro > best:
            kept.append(point)
            best = point.f1_macro
    return kept


class Fitting:
    """A contender that is trained anew in each round."""

    def __init__(self, file: Path, contender: Contender, n_threads: int) -> None:
        self.data, self.contender, self.n_threads = joblib.load(file), contender, n_threads
        self.scores: dict[int, float] = {}  # by size
        few = slice(1000)
        self._new(2).fit(self.data.X_train[few], self.data.y_train[few])  # loads libraries, starts threads

    def one_round(self) -> list[tuple[int, float, float]]:
        """Fit, and return the components, the seconds and macro F1 of each size."""
        *smaller, largest = self.contender.sizes
        if self.contender.algorithm == OURS:  # the smaller sizes are stages of the largest
            model, seconds = self._fitted(largest)
            took, n = model.trace_["seconds"].cumsum(), model.n_iter_
            stages = [stage for stage in smaller if stage < n] + [n]
            if not self.scores:
                predicted = enumerate(model.staged_predict(self.data.X_test))
                self.scores = {t: self._f1(labels) for t, labels in predicted if t in stages}
            return [(t, float(seconds - took[-1] + took[t - 1]), self.scores[t]) for t in stages]
        found = []
        for size in self.contender.sizes:
            model, seconds = self._fitted(size)
            if size not in self.scores:
                self.scores[size] = self._f1(model.predict(self.data.X_test))
            found.append((size, seconds, self.scores[size]))
        return found

    def _fitted(self, n_components: int) -> tuple[Any, float]:
        """Return a fitted model, and the seconds that this took."""
        model = self._new(n_components)
        started = perf_counter()
        model.fit(self.data.X_train, self.data.y_train)
        return model, perf_counter() - started

    def _new(self, n_components: int) -> Any:
        return self.contender.new(self.data.X_train, n_components, self.n_threads)

    def _f1(self, predicted: Any) -> float:
        from kfhe.metrics import metrics_of

        true = self.data.y_test
        return float(metrics_of(true, predicted.ravel(), None, int(true.max()) + 1)["f1_macro"])


def measure(
    run: FrontierRun,
    dataset: str,
    contenders: Sequence[Contender],
    *,
    report: Report = lambda message: None,
) -> None:
    """Measure contenders on one dataset, which take turns in each round, and add the points to the run.

    Parameters
    ----------
    run : FrontierRun
        Has the settings, and gets the points.
    dataset : str
        Name of the dataset.
    contenders : sequence of Contender
        Who is measured; those whose package is not installed are left out.
    report : callable, default: does nothing
        Is told what is going on.
    """
    present = run.installed(contenders)
    with run.data(dataset, report) as file:
        for n_threads in run.settings["threads"]:
            found: dict[tuple[str, int], Point] = {}
            where = f"{dataset}, {n_threads} threads"
            for name, shown in run.rounds(where, present, Fitting, file, n_threads, report):
                components, seconds, score = shown
                point = Point(dataset, name, n_threads, components, [], score)
                found.setdefault((name, components), point).seconds.append(seconds)
            run.points += found.values()


def table(run: FrontierRun, dataset: str, threads: int) -> Table:
    """Return the points for a dataset and a number of threads, fastest first."""
    shape, points = run.tables[dataset], run.of(dataset, threads)
    title = (
        f"{dataset}: {shape['rows']:,} x {shape['columns']}, {shape['classes']} classes, {threads} threads"
    )
    result = Table(title=title, title_justify="left")
    result.add_column("algorithm", no_wrap=True)
    for head in ("components", "fit, s", "F1", "*"):
        result.add_column(head, justify="right")
    best = on_frontier(points)
    for point in sorted(points, key=lambda point: point.time):
        figures = f"{point.components}", f"{point.time:.3g}", f"{point.f1_macro:.3f}"
        result.add_row(point.contender, *figures, "*" if point in best else "")
    return result


def beaten_lines(run: FrontierRun) -> Iterator[str]:
    """Yield, for each setting of a peer, our fastest point that is at least as good, as a ratio of times."""
    ours = {each.name for each in CONTENDERS if each.ours}
    for dataset in run.tables:
        for threads in run.settings["threads"]:
            points = run.of(dataset, threads)
            for peer in (point for point in points if point.contender not in ours):
                as_good = [p for p in points if p.contender in ours and p.f1_macro >= peer.f1_macro]
                where = f"{dataset}, {threads} threads, {peer.contender} ({peer.f1_macro:.3f})"
                if not as_good:
                    yield f"{where}: none of ours is as good"
                    continue
                first = min(as_good, key=lambda point: point.time)
                said = f"{first.contender}, {first.components} components ({first.f1_macro:.3f})"
                yield f"{where}: {said} takes {first.time / peer.time:.2f} times as long"


def closing_lines(run: FrontierRun) -> Iterator[str]:
    """Yield how to read the tables, what is not in them and why, and how ours and peers compare."""
    yield EXPLANATION
    yield from busy_lines(run.settings)
    yield from (f"{name}: {reason}" for name, reason in run.left_out.items())
    yield from beaten_lines(run)
