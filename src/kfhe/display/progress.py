"""Progress bars, drawn by rich."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from kfhe.trace import Iteration

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

FILTERS = "R {task.fields[R]:.4f}  P {task.fields[P]:.2e}  K {task.fields[K]:.4f}"


@contextmanager
def bar(
    what: str, total: float | None, *columns: str, done: int = 0, transient: bool = False, **fields: Any
) -> Iterator[Callable[..., None]]:
    """Show a progress bar on standard error.

    Parameters
    ----------
    what : str
        A description in a word or two.
    total : float or None
        Amount of work; None if it is unknown.
    *columns : str
        Additional columns, in rich's notation.
    done : int
        Amount of work that is done already.
    transient : bool
        Whether the bar is removed when the work is done.
    **fields
        Initial values of the additional columns.

    Yields
    ------
    callable
        Takes changes, like `rich.progress.Progress.update`; can be called from any thread.
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    transient = transient and console.is_terminal
    with Progress(*columns_with(*columns), console=console, transient=transient) as shown:
        yield partial(shown.update, shown.add_task(what, total=total, completed=done, **fields))


def columns_with(*more: str) -> tuple[str | ProgressColumn, ...]:
    """Return the columns of a bar: work done, time elapsed, time left, and others."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn

    done = ("{task.description}", BarColumn(), MofNCompleteColumn())
    return (*done, *more, TimeElapsedColumn(), TimeRemainingColumn(), "left")


@contextmanager
def training_bar(total: int, done: int) -> Iterator[Callable[[Iteration], None]]:
    """Yield a callback that shows a bar with the iteration, R, P and K."""
    with bar("KFHE", total, FILTERS, done=done, R=1.0, P=1.0, K=1.0) as update:
        yield lambda row: update(
            completed=row.iteration, R=row.measurement_error, P=row.posterior_variance, K=row.gain
        )
