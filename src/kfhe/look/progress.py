"""Progress bars: of a training run, and of other long work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from kfhe.trace import Iteration

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Bar:
    """A bar on standard error: how much is done, the time that took, and how much is left.

    Parameters
    ----------
    what : str
        What is going on, in a word or two.
    total : float or None
        How much there is to do; None if nobody knows.
    done : int
        How much of it is done already.
    transient : bool
        Whether the bar leaves the terminal when the work is done.
    console : Console, optional
        Where to draw; default: on standard error.
    disable : bool
        Whether nothing is drawn.
    below : callable, optional
        Returns what to draw below the bar.
    columns
        What else to show, as rich writes it.
    fields
        First values of what these columns show.
    """

    def __init__(
        self,
        what: str,
        total: float | None,
        *columns: str,
        done: int = 0,
        transient: bool = False,
        console: Console | None = None,
        disable: bool = False,
        below: Callable[[], RenderableType] | None = None,
        **fields: Any,
    ) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        class Shown(Progress):
            def get_renderables(self) -> Iterable[RenderableType]:
                yield from super().get_renderables()
                if below is not None:
                    yield below()

        console = console or Console(stderr=True)
        self._progress = Shown(
            what,
            BarColumn(),
            MofNCompleteColumn(),
            *map(TextColumn, columns),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            "left",
            console=console,
            transient=transient and console.is_terminal,
            disable=disable,
        )
        self._task = self._progress.add_task("", total=total, completed=done, **fields)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def advance(self, amount: int = 1) -> None:
        """Show that some more is done; any thread may say so."""
        self._progress.advance(self._task, amount)

    def reach(self, done: int, **fields: Any) -> None:
        """Show how much is done by now."""
        self._progress.update(self._task, completed=done, **fields)


class ProgressBar(Bar):
    """A callback that shows a bar with the iteration, R, P and K."""

    def __init__(self, total: int, done: int) -> None:
        filters = "R {task.fields[R]:.4f}  P {task.fields[P]:.2e}  K {task.fields[K]:.4f}"
        super().__init__("KFHE", total, filters, done=done, R=1.0, P=1.0, K=1.0)

    def __call__(self, row: Iteration) -> None:
        """Show one more finished iteration."""
        self.reach(row.iteration, R=row.measurement_error, P=row.posterior_variance, K=row.gain)
