"""Goals: what a run should show, and whether it does."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.algorithms import ONE_HOT, OURS
from benchmarks.runner import Figures, Run

Measure = Callable[[Any], float | None]  # takes a run

TASKS = {
    "fit": "fit_seconds",
    "predict 100,000 rows": "batch_seconds",
    "predict one row": "row_seconds",
}
RELATIONS = {
    "at least": operator.ge,
    "more than": operator.gt,
    "at most": operator.le,
    "less than": operator.lt,
}


@dataclass(frozen=True)
class Goal:
    """One figure that a run should show.

    Attributes
    ----------
    dataset, figure : str
        What it is about.
    relation : str
        One of `RELATIONS`.
    bound : float
        What the figure is compared with.
    measure : callable
        Takes a run and returns the figure, or None if the run did not measure it.
    """

    dataset: str
    figure: str
    relation: str
    bound: float
    measure: Measure

    def is_reached(self, measured: float) -> bool:
        """Whether the figure is as it should be."""
        return bool(RELATIONS[self.relation](measured, self.bound))

    def describe(self, measured: float | None) -> str:
        """Return one line: the figure, the goal, and whether it is reached."""
        subject, goal = f"{self.dataset}, {self.figure}", f"(goal: {self.relation} {self.bound:g})"
        if measured is None:
            return f"{subject} {goal}: not measured"
        return f"{subject}: {measured:.3g} {goal}: {'' if self.is_reached(measured) else 'not '}reached"


def _pair(dataset: str, rival: str, compare: Callable[[Figures, Figures], float | None]) -> Measure:
    """Return a measure that compares our result with a rival's, if there are both."""

    def measure(run: Run) -> float | None:
        ours, theirs = run.find(dataset, OURS), run.find(dataset, rival)
        return None if ours is None or theirs is None else compare(ours, theirs)

    return measure


def _times_faster(dataset: str, task: str, rival: str, relation: str, bound: float) -> Goal:
    """Return a goal for how many times faster we are."""

    def ratio(ours: Figures, theirs: Figures) -> float:
        return theirs.median(TASKS[task]) / ours.median(TASKS[task])

    return Goal(dataset, f"{task}, times faster than {rival}", relation, bound, _pair(dataset, rival, ratio))


def _f1_above(dataset: str, rival: str) -> Goal:
    """Return a goal for how far our macro F1 is above a rival's."""
    measure = _pair(dataset, rival, lambda ours, theirs: ours.f1_macro - theirs.f1_macro)
    return Goal(dataset, f"macro F1 above that of {rival}", "at least", 0, measure)


def _fewer_nodes(dataset: str) -> Goal:
    """Return a goal for how many times the nodes of native categories one-hot columns need."""

    def ratio(ours: Figures, theirs: Figures) -> float | None:
        return theirs.nodes / ours.nodes if ours.nodes and theirs.nodes else None

    return Goal(dataset, f"nodes of {ONE_HOT} / ours", "more than", 1, _pair(dataset, ONE_HOT, ratio))


def _memory_per_table(run: Run) -> float | None:
    ours = run.find("million", OURS)
    if ours is None or ours.memory_growth is None:
        return None
    return (ours.memory_growth - ours.model_bytes) / run.tables["million"]["float32_bytes"]


def _time_per_row(run: Run) -> float | None:
    many, few = run.find("million", OURS), run.find("wide2", OURS)
    if many is None or few is None:
        return None
    rows = run.tables["million"]["rows"] / run.tables["wide2"]["rows"]
    return many.median("fit_seconds") / few.median("fit_seconds") / rows


GOALS = [
    _times_faster("iris", "fit", "scikit-learn AdaBoost", "at least", 40),
    _times_faster("digits", "fit", "scikit-learn AdaBoost", "at least", 10),
    _times_faster("digits", "fit", "LightGBM", "at least", 3),
    _times_faster("digits", "fit", "random forest", "at least", 1.5),
    _times_faster("wide7", "fit", "random forest", "at least", 4),
    _times_faster("wide7", "fit", "LightGBM", "at least", 0.7),
    _times_faster("wide7", "fit", "LightGBM", "at least", 1),
    _f1_above("wide7", "LightGBM"),
    Goal("million", "memory besides the model / table in float32", "less than", 3, _memory_per_table),
    Goal("million", "time per row / that of wide2", "at most", 1.5, _time_per_row),
    *(
        _times_faster(dataset, task, rival, "more than", 1)
        for dataset in ("digits", "wide7")
        for task in ("predict 100,000 rows", "predict one row")
        for rival in ("LightGBM", "XGBoost", "random forest")
    ),
    *(
        goal
        for dataset in ("mushroom", "car_eval", "levels50")
        for goal in (
            _f1_above(dataset, ONE_HOT),
            _times_faster(dataset, "fit", ONE_HOT, "at least", 1),
            _fewer_nodes(dataset),
        )
    ),
]
