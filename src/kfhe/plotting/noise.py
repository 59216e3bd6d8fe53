"""Noise charts: how algorithms fare as more labels are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from kfhe.look.palette import PALETTE
from kfhe.plotting.display import MARKERS, Display, legend_beside, legend_width, shortened, thinned


@dataclass(eq=False, repr=False)
class NoiseDisplay(Display):
    """Scores or average ranks of algorithms against the share of wrong labels.

    Parameters
    ----------
    noise_levels : sequence of float
        Shares of the labels that were changed, from 0 to 1.
    values : DataFrame or mapping of str to sequence of float
        One value for each noise level, by algorithm. Gaps are NaN.
    value_name : str, default="average rank"
        What the values are.
    lower_is_better : bool, default=False
        Whether to have low values at the top, as for ranks.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
    lines_ : list of matplotlib Line2D
        The lines, in the order of the algorithms.

    Examples
    --------
    >>> from kfhe.plotting import NoiseDisplay
    >>> scores = {"KFHE-l": [0.94, 0.93, 0.91], "AdaBoost": [0.94, 0.90, 0.81]}
    >>> display = NoiseDisplay([0.0, 0.1, 0.2], scores, value_name="macro F1").plot()
    >>> [line.get_label() for line in display.lines_]
    ['KFHE-l', 'AdaBoost']
    """

    noise_levels: Sequence[float]
    values: Mapping[str, Any]
    _: KW_ONLY
    value_name: str
    lower_is_better: bool = False
    lines_: list[Line2D] = field(init=False)

    def _size(self) -> tuple[float, float]:
        names = list(self.values)
        return 4.3 + legend_width(names), max(3.6, 0.6 + 0.2 * min(len(names), 25))

    def _draw(self, ax: Axes) -> None:
        places = 100 * np.asarray(self.noise_levels)
        self.lines_ = [
            ax.plot(
                places,
                np.asarray(self.values[name]),
                color=PALETTE[position % len(PALETTE)],
                marker=MARKERS[position % len(MARKERS)],
                markersize=5,
                linewidth=1.3,
                label=shortened(name),
            )[0]
            for position, name in enumerate(self.values)
        ]
        shown = thinned(places.tolist(), 0.08 * float(np.ptp(places)))
        ax.set_xticks(shown, [f"{place:g}" for place in shown])
        ax.set(xlabel="training labels changed (%)", ylabel=self.value_name)
        if self.lower_is_better and not ax.yaxis_inverted():
            ax.invert_yaxis()
        ax.grid(alpha=0.3)
        legend_beside(ax, len(self.lines_))
