"""The progress bar of a training run."""

from __future__ import annotations

from types import TracebackType


class ProgressBar:
    """A bar on standard error with the iteration, R, P and K; nothing at all unless it is shown."""

    def __init__(self, total: int, done: int, *, shown: bool) -> None:
        self._progress = None
        if shown:
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
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self, measurement_error: float, variance: float, gain: float) -> None:
        """Show one more finished iteration."""
        if self._progress is not None:
            self._progress.update(self._task, advance=1, R=measurement_error, P=variance, K=gain)
