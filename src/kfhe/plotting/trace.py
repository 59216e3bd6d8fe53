"""The filter's trace: measurement error, variance, gain and training error by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from kfhe.look.trace_lines import TRACE_LINES
from kfhe.plotting.display import (
    Display,
    check_ensemble,
    count_along,
    marker_for,
    say_there_are_no_iterations,
)
from kfhe.trace import Trace


@dataclass(eq=False, repr=False)
class OfTrace(Display):
    """What is drawn of a trace."""

    trace: Trace | Mapping[str, Any]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the trace of a fitted `KFHEClassifier`.

        Parameters
        ----------
        estimator : KFHEClassifier
            A fitted one.
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.

        Returns
        -------
        Display
            The display.
        """
        check_ensemble(estimator)
        return cls(estimator.trace_).plot(ax)


class TraceDisplay(OfTrace):
    """How training went: R, P, K and the training error by iteration, as in the paper's figures.

    Parameters
    ----------
    trace : Trace or mapping of str to sequence of float
        Columns `measurement_error`, `posterior_variance`, `gain` and `training_error`, one value for each
        iteration. Iterations where `resets`, if it is there, is 1 get a mark on the axis.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
    lines_ : list of matplotlib Line2D
        The lines, in the order of the columns above.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> from kfhe.plotting import TraceDisplay
    >>> model = KFHEClassifier(n_estimators=20, random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = TraceDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'iteration'
    """

    lines_: list[Line2D]

    def _draw(self, ax: Axes) -> None:
        n_iter = len(self.trace["gain"])
        iterations = range(1, n_iter + 1)
        self.lines_ = [
            ax.plot(
                iterations,
                self.trace[line.column],
                color=line.colour,
                linestyle=line.dashes,
                marker=marker_for(n_iter),
                label=line.label,
            )[0]
            for line in TRACE_LINES
        ]
        ax.set(xlabel="iteration", ylim=(0, 1))
        if not n_iter:
            say_there_are_no_iterations(ax)
            return
        count_along(ax, 1, n_iter)
        mark_resets(ax, self.trace)
        ax.legend(fontsize="small")


def mark_resets(ax: Axes, trace: Trace | Mapping[str, Any]) -> bool:
    """Mark the iterations in which the sampling weights were reset, on the axis; return whether there are."""
    try:
        resets = trace["resets"]
    except KeyError:
        return False
    places = [iteration for iteration, reset in enumerate(resets, start=1) if reset]
    if places:
        ax.plot(
            places,
            [0.0] * len(places),
            transform=ax.get_xaxis_transform(),
            color="0.5",
            linestyle="",
            marker="^",
            clip_on=False,
            label="weights reset",
        )
    return bool(places)
