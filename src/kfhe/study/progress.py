"""The progress display of a study: cells done, rate, time left, and current averages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.progress import Progress
from rich.table import Table

from kfhe.display.progress import columns_with
from kfhe.metrics import METRICS

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from kfhe.study.cells import Result
    from kfhe.study.plan import Plan


class StudyProgress(Progress):
    """A live display on a terminal; in a log file, a line for each tenth of the cells.

    Parameters
    ----------
    plan : Plan
        The study.
    total, done : int
        Number of cells, and number of those that are done already.
    console : Console
        Where to draw.
    """

    def __init__(self, plan: Plan, total: int, done: int, console: Console) -> None:
        self._plan = plan
        self._sums: dict[tuple[str, float], list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._failed = 0
        columns = columns_with("{task.fields[rate]}", "[red]{task.fields[failed]}")
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._cells = self.add_task("cells", total=total, completed=done, rate="", failed="")

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the bar and the current averages."""
        yield from super().get_renderables()
        yield self._averages()

    def add(self, results: Iterable[Result]) -> None:
        """Add results."""
        count = 0
        for result in results:
            count += 1
            value = getattr(result, self._plan.metric)
            self._failed += result.error is not None
            if value is not None:
                sums = self._sums[result.cell.algorithm, result.cell.noise]
                sums[0] += value
                sums[1] += 1
        task = self.tasks[0]
        speed, total, before = task.speed, int(task.total or 0), int(task.completed)
        now = before + count
        if not self.console.is_terminal and total and 10 * before // total < 10 * now // total:
            self.console.print(f"{now:,} of {total:,} cells are done", highlight=False)
        self.update(
            self._cells,
            completed=now,
            rate=f"{speed:.1f}/s" if speed else "",
            failed=f"{self._failed} failed" if self._failed else "",
        )

    def _averages(self) -> Table:
        table = Table(title=f"Mean {METRICS[self._plan.metric]} so far, by {self._plan.level}")
        table.add_column("algorithm")
        for noise in self._plan.noise_levels:
            table.add_column(f"{100 * noise:g}%", justify="right")
        for algorithm in self._plan.algorithms:
            sums = [self._sums.get((algorithm.name, noise)) for noise in self._plan.noise_levels]
            table.add_row(algorithm.name, *(f"{total[0] / total[1]:.3f}" if total else "" for total in sums))
        return table
