"""The progress bar of a training run."""

from __future__ import annotations

from types import TracebackType

from kfhe.trace import Iteration


class ProgressBar:
    """A callback that shows a bar on standard error, with the iteration, R, P and K."""

    def __init__(self, total: int, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        filters = TextColumn("R {task.fields[R]:.4f}  P {task.fields[P]:.2e}  K {task.fields[K]:.4f}")
        self._progress = Progress(
            "KFHE",
            BarColumn(),
            MofNCompleteColumn(),
            filters,
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("", total=total, completed=done, R=1.0, P=1.0, K=1.0)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, row: Iteration) -> None:
        """Show one more finished iteration."""
        R, P, K = row.measurement_error, row.posterior_variance, row.gain
        self._progress.update(self._task, completed=row.iteration, R=R, P=P, K=K)
