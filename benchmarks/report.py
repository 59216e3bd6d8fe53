"""The report: a run as tables, as lines about the goals, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from rich.table import Table

from benchmarks.algorithms import OURS
from benchmarks.goals import GOALS, Goal
from benchmarks.runner import Figures, Run

MEGABYTE = 1e6

EXPLANATION = """\
Medians over the rounds; the figure after a time says how many times faster ours is. Macro F1 is on the
clean labels of held-out rows. Memory is by how much a process of its own grew at most during a fit; the
model, as it is pickled, is a part of that."""

TIMINGS = (("fit_seconds", 1), ("batch_seconds", 1), ("row_seconds", 1000))


def table(run: Run, dataset: str) -> Table:
    """Return the figures for a dataset: one row for each algorithm, ours first.

    Parameters
    ----------
    run : Run
        What was measured.
    dataset : str
        Name of the dataset.
    """
    shape = run.tables[dataset]
    title = f"{dataset}: {shape['rows']:,} x {shape['columns']}, {shape['classes']} classes"
    table = Table(title=title, title_justify="left")
    table.add_column("algorithm", no_wrap=True)
    times = ["fit, s", "x", f"{run.settings['batch_rows']:,} rows, s", "x", "1 row, ms", "x"]
    for head in [*times, "F1", "memory, MB", "model, MB", "components", "nodes", "leaves"]:
        table.add_column(head, justify="right")
    ours = run.find(dataset, OURS)
    for result in run.results:
        if result.dataset == dataset:
            table.add_row(*_cells(result, ours))
    return table


def closing_lines(run: Run) -> Iterator[str]:
    """Yield how to read the tables, what is not in them and why, and a line for each of their goals."""
    yield EXPLANATION
    yield from busy_lines(run.settings)
    yield from (f"{name}: {reason}" for name, reason in run.left_out.items())
    yield from (f"{each.dataset}, {each.algorithm}: {each.error}" for each in run.results if each.error)
    yield from (goal.describe(goal.measure(run)) for goal in GOALS if goal.dataset in run.tables)


def busy_lines(settings: dict[str, Any]) -> Iterator[str]:
    """Yield a warning if the machine had other things to do."""
    load, cpus = settings["load"], settings["cpus"]
    if load is not None and load > cpus / 2:
        yield f"The machine was busy before (load {load:.1f}, {cpus} CPUs): don't trust these times."


def as_json(run: Any, aims: Iterable[Goal] = GOALS) -> str:
    """Return everything as JSON: a run, and which goals it has reached."""
    goals = []
    for goal in aims:
        measured = goal.measure(run)
        goals.append(
            {
                "dataset": goal.dataset,
                "figure": goal.figure,
                "goal": f"{goal.relation} {goal.bound:g}",
                "measured": measured,
                "reached": None if measured is None else goal.is_reached(measured),
            }
        )
    return json.dumps(asdict(run) | {"goals": goals}, indent=2) + "\n"


def _cells(result: Figures, ours: Figures | None) -> list[str]:
    if result.error is not None:
        return [result.algorithm, "failed"]
    cells = [result.algorithm]
    for seconds, unit in TIMINGS:
        value = result.median(seconds)
        cells.append(_short(value * unit))
        cells.append("" if ours is None or ours is result else _short(value / ours.median(seconds)))
    cells.append(f"{result.f1_macro:.3f}")
    sizes = (result.memory_growth, result.model_bytes)
    cells += ["" if size is None else _short(size / MEGABYTE) for size in sizes]
    counts = (result.components, result.nodes, result.leaves)
    return cells + ["" if count is None else f"{count:,}" for count in counts]


def _short(value: float) -> str:
    """Return three digits, or all that are before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
