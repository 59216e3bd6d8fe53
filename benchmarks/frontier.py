"""The frontier: time against quality, of ours by stages of one training, of peers at several settings."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import joblib
from rich.table import Table

from benchmarks import machine
from benchmarks.algorithms import OURS, build, is_installed
from benchmarks.datasets import NOISE, split
from benchmarks.report import busy_lines
from benchmarks.runner import LIBRARIES, Report
from kfhe.study.encoding import Categorical
from kfhe.study.versions import versions_of

STAGES = (5, 10, 20, 40, 60, 100, 150, 200)  # components after which KFHE-e is looked at
SIZES = (10, 20, 25, 30, 35, 40, 60, 100)  # that the robust classifier is trained with
ROBUST = "Robust KFHE"

EXPLANATION = """\
Seconds to fit, medians over the rounds, and macro F1 on the clean labels of held-out rows. The stages of
KFHE-e are of one training: what came before the first component, and the components' seconds in the trace.
The robust classifier decides at the end how its trees vote, so it is trained anew with each number of them.
* is on the frontier: nobody is both faster and better."""


@dataclass(frozen=True)
class Contender:
    """An algorithm with settings.

    Attributes
    ----------
    name, algorithm : str
        What it is called here, and in studies.
    sizes : tuple of int
        Sizes of the ensemble, the largest last.
    settings : dict
        Parameters that are not its defaults.
    """

    name: str
    algorithm: str
    sizes: tuple[int, ...] = (100,)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether it is one of our classifiers."""
        return self.algorithm in (OURS, ROBUST)

    @property
    def staged(self) -> bool:
        """Whether the smaller sizes are stages of the largest."""
        return self.algorithm == OURS


FEWER_ROWS = {"max_samples": "auto"}
FAST = {"max_samples": "auto", "max_features": 0.5}
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
class FrontierRun:
    """All that a run has found; as `Run` has it, with points instead of figures."""

    settings: dict[str, Any]
    versions: dict[str, str | None] = field(default_factory=lambda: versions_of(LIBRARIES))
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_settings(cls, *, rounds: int, n_threads: Sequence[int]) -> FrontierRun:
        """Return a run that has not measured anything yet."""
        noted = {"rounds": rounds, "threads": list(n_threads), "labels_changed": NOISE}
        return cls({**noted, **machine.facts()})

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


class Entrant:
    """A contender in a process of its own, with its data."""

    def __init__(self, dataset: Path, contender: Contender, n_threads: int) -> None:
        os.environ["OMP_NUM_THREADS"] = str(n_threads)  # read when libraries are loaded
        warnings.simplefilter("ignore")
        self.data, self.contender, self.n_threads = joblib.load(dataset), contender, n_threads
        self.scores: dict[int, float] = {}  # by size
        few = slice(1000)
        self._new(2).fit(self.data.X_train[few], self.data.y_train[few])  # loads libraries, starts threads

    def one_round(self) -> list[tuple[int, float, float]]:
        """Fit, and return the components, the seconds and macro F1 of each size."""
        *smaller, largest = self.contender.sizes
        if self.contender.staged:
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
        contender, categorical = self.contender, Categorical.of(self.data.X_train)
        return build(contender.algorithm, categorical, n_components, self.n_threads, **contender.settings)

    def _f1(self, predicted: Any) -> float:
        from kfhe.metrics import metrics_of

        true = self.data.y_test
        return float(metrics_of(true, predicted.ravel(), None, int(true.max()) + 1)["f1_macro"])


_entrants: list[Entrant] = []


def start(dataset: Path, contender: Contender, n_threads: int) -> None:
    """Set up this process's entrant."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _entrants.append(Entrant(dataset, contender, n_threads))


def one_round() -> list[tuple[int, float, float]]:
    """Have this process's entrant do a round."""
    return _entrants[0].one_round()


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
    present = [each for each in contenders if is_installed(each.algorithm)]
    run.left_out.update({each.name: "not installed" for each in contenders if each not in present})
    report(f"{dataset}: making the data")
    data = split(dataset)
    shape = data.X_train.shape
    run.tables[dataset] = {"rows": shape[0], "columns": shape[1], "classes": int(data.y_train.max()) + 1}
    with TemporaryDirectory(prefix="kfhe-bench-") as folder:
        file = Path(folder) / "data"
        joblib.dump(data, file)
        del data
        for n_threads in run.settings["threads"]:
            run.points += _points(run, dataset, file, present, n_threads, report)


def _points(
    run: FrontierRun, dataset: str, file: Path, contenders: list[Contender], n_threads: int, report: Report
) -> list[Point]:
    """Go round so often as the settings say, and gather what each contender shows."""
    found: dict[tuple[str, int], Point] = {}
    with ExitStack() as stack:
        processes = {}
        for each in contenders:
            pool = ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"))
            processes[each.name] = stack.enter_context(pool)
            processes[each.name].submit(start, file, each, n_threads).result()
        for i in range(run.settings["rounds"]):
            for each in contenders:
                report(f"{dataset}, {n_threads} threads: {each.name}, round {i + 1}")
                for components, seconds, score in processes[each.name].submit(one_round).result():
                    point = Point(dataset, each.name, n_threads, components, [], score)
                    found.setdefault((each.name, components), point).seconds.append(seconds)
    return list(found.values())


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
