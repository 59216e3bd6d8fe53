"""Noise charts: how algorithms fare as more labels are wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from kfhe.look.palette import PALETTE
from kfhe.plotting.display import LINE, MARKERS, Display, shortened, thinned, width_of


@dataclass(eq=False, repr=False)
class NoiseDisplay(Display):
    """Scores or average ranks of algorithms against the share of wrong labels, named where the lines end.

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
    marked : collection of str, default=None
        The algorithms to draw in colour; all others are grey. None: all of them.

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
    marked: Collection[str] | None = None
    lines_: list[Line2D] = field(init=False)

    def _size(self) -> tuple[float, float]:
        names = list(self.values)
        return 4.9 + width_of(names), max(3.6, 0.8 + 1.3 * LINE * len(names))

    def _draw(self, ax: Axes) -> None:
        places, names = 100 * np.asarray(self.noise_levels), list(self.values)
        marked = names if self.marked is None else [name for name in names if name in self.marked]
        colours = {name: PALETTE[position % len(PALETTE)] for position, name in enumerate(marked)}
        self.lines_ = [
            ax.plot(
                places,
                np.asarray(self.values[name]),
                color=colours.get(name, "0.55"),
                marker=MARKERS[position % len(MARKERS)],
                markersize=5 if name in colours else 3,
                linewidth=1.5 if name in colours else 0.9,
                zorder=2.5 if name in colours else 2,
                label=shortened(name),
            )[0]
            for position, name in enumerate(names)
        ]
        shown = thinned(places.tolist(), 0.08 * float(np.ptp(places)))
        ax.set_xticks(shown, [f"{place:g}" for place in shown])
        ax.set(xlabel="training labels changed (%)", ylabel=self.value_name)
        if self.lower_is_better and not ax.yaxis_inverted():
            ax.invert_yaxis()
        ax.grid(alpha=0.3)
        _name_at_ends(ax, self.lines_)


def _name_at_ends(ax: Axes, lines: Sequence[Line2D]) -> None:
    """Write the names of lines where they end, moved apart until none is on another."""
    bottom, top = ax.get_ylim()
    ends = []
    for line in lines:
        points = np.column_stack(line.get_data())
        points = points[np.isfinite(points).all(axis=1)]
        if len(points):
            ends.append(((points[-1, 1] - bottom) / (top - bottom), tuple(points[-1]), line))
    ends.sort(key=lambda end: end[0])
    heights, room = np.array([height for height, _, _ in ends]), ax.get_window_extent().height / ax.figure.dpi
    under = np.arange(len(ends)) * min(1.2 * LINE / room, 1 / max(1, len(ends) - 1))  # what lower ones take
    pushed_up = np.maximum.accumulate(heights - under)
    pushed_down = np.minimum.accumulate((heights - under)[::-1])[::-1]
    places = under + np.clip((pushed_up + pushed_down) / 2, 0, 1 - under.max(initial=0))
    for place, (_, end, line) in zip(places, ends, strict=True):
        look: dict[str, Any] = {"color": line.get_color()}
        ax.text(
            1.05, place, str(line.get_label()), transform=ax.transAxes, va="center", fontsize="small", **look
        )
        lead = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0, **look}
        ax.annotate(
            "", end, (1.04, place), textcoords="axes fraction", arrowprops=lead, annotation_clip=False
        )
