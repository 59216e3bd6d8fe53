"""The display of a running study: cells done, rate, time left, and running averages per algorithm."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from rich.console import Console

    from kfhe.study.cells import Result
    from kfhe.study.plan import Plan


class StudyProgress:
    """A live display on a terminal; elsewhere, as in a log file, a line for each tenth that is done.

    Parameters
    ----------
    plan : Plan
        The study.
    total, done : int
        Number of cells, and how many of them are there already.
    console : Console
        Where to draw.
    """

    def __init__(self, plan: Plan, total: int, done: int, console: Console) -> None:
        from rich.live import Live
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self._plan = plan
        self._sums: dict[tuple[str, float], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._failed = 0
        self._bar = Progress(
            "cells",
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[failed]}", style="red"),
        )
        self._task = self._bar.add_task("", total=total, completed=done, rate="", failed="")
        self._live = Live(get_renderable=self._drawn, console=console, refresh_per_second=4, transient=True)
        self._console = console
        self._shown = console.is_terminal

    def __enter__(self) -> StudyProgress:
        if self._shown:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._live.stop()

    def add(self, results: Iterable[Result]) -> None:
        """Count results in."""
        count = 0
        for result in results:
            count += 1
            value = getattr(result, self._plan.metric)
            self._failed += result.error is not None
            if value is not None:
                sums = self._sums[result.cell.algorithm, result.cell.noise]
                sums[0] += value
                sums[1] += 1
        task = self._bar.tasks[0]
        speed, total = task.speed, int(task.total or 0)
        before, now = int(task.completed), int(task.completed) + count
        if not self._shown and total and 10 * before // total < 10 * now // total:
            self._console.print(f"{now:,} of {total:,} cells are done", highlight=False)
        self._bar.update(
            self._task,
            advance=count,
            rate=f"{speed:.1f}/s" if speed else "",
            failed=f"{self._failed} failed" if self._failed else "",
        )

    def _drawn(self) -> Any:
        from rich.console import Group
        from rich.table import Table

        from kfhe.metrics import METRICS

        table = Table(title=f"Mean {METRICS[self._plan.metric]} so far, by {self._plan.level}")
        table.add_column("algorithm")
        for noise in self._plan.noise_levels:
            table.add_column(f"{100 * noise:g}%", justify="right")
        for algorithm in self._plan.algorithms:
            sums = [self._sums.get((algorithm.name, noise)) for noise in self._plan.noise_levels]
            table.add_row(algorithm.name, *(f"{total[0] / total[1]:.3f}" if total else "" for total in sums))
        return Group(self._bar, table)
