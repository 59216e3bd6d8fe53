"""How the sampling weights spread: the effective sample size by iteration."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from kfhe.look.palette import BLUE
from kfhe.plotting.display import count_along, marker_for, say_there_are_no_iterations
from kfhe.plotting.trace import OfTrace, mark_resets


class SamplingWeightsDisplay(OfTrace):
    """How the sampling weights spread: how many equally weighted rows they are worth in each iteration.

    Training starts with as many as there are rows (fewer if they have weights). The more the weight gathers
    on rows that are often missed, the fewer they are worth. The exponential emphasis gathers it faster.

    Parameters
    ----------
    trace : Trace or mapping of str to sequence of float
        Has a column `effective_sample_size`, one value for each iteration. Iterations where `resets`, if it
        is there, is 1 get a mark on the axis.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
    line_ : matplotlib Line2D
        The line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> from kfhe.plotting import SamplingWeightsDisplay
    >>> model = KFHEClassifier(n_estimators=20, random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = SamplingWeightsDisplay.from_estimator(model)
    >>> display.ax_.get_ylabel()
    'effective sample size (rows)'
    """

    line_: Line2D

    def _draw(self, ax: Axes) -> None:
        sizes = self.trace["effective_sample_size"]
        iterations = range(1, len(sizes) + 1)
        (self.line_,) = ax.plot(iterations, sizes, color=BLUE, marker=marker_for(len(sizes)))
        ax.fill_between(iterations, sizes, color=BLUE, alpha=0.15, linewidth=0)
        ax.set(xlabel="iteration", ylabel="effective sample size (rows)")
        if not len(sizes):
            say_there_are_no_iterations(ax)
            return
        count_along(ax, 1, len(sizes))
        ax.set_ylim(0, 1.08 * max(sizes))
        if mark_resets(ax, self.trace):
            ax.set_ylim(0, 1.25 * max(sizes))  # room for the legend
            ax.legend(fontsize="small", loc="upper right")
