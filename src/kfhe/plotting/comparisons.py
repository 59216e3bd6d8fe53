"""Plots of comparisons: average ranks, and scores against noise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from kfhe import stats
from kfhe.display.palette import PALETTE
from kfhe.plotting.base import LINE, MARKERS, Display, ink, shortened, thinned, width_of

ROW, BAR = 0.2, 0.12  # heights of a name and of a bar, in inches


class RankDisplay(Display):
    """Plot of average ranks, with bars over groups of algorithms without a significant difference.

    Parameters
    ----------
    ranks : Series or mapping of str to float
        The average rank of each algorithm; 1 is the best.
    groups : sequence of sequences of str, default=()
        Groups of names to join by bars.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.

    Examples
    --------
    >>> from kfhe.plotting import RankDisplay
    >>> display = RankDisplay({"KFHE-l": 1.6, "AdaBoost": 2.9, "bagging": 1.9}, [["KFHE-l", "bagging"]])
    >>> [text.get_text() for text in display.plot().ax_.texts]
    ['KFHE-l  1.60', 'bagging  1.90', 'AdaBoost  2.90']
    """

    def __init__(self, ranks: Mapping[str, float], groups: Sequence[Sequence[str]] = ()) -> None:
        self.ranks = ranks
        self.groups = groups

    @classmethod
    def from_scores(cls, scores: Any, *, alpha: float = 0.05, ax: Axes | None = None) -> RankDisplay:
        """Rank algorithms by their scores on many datasets, test their differences, and plot the result.

        Parameters
        ----------
        scores : DataFrame of shape (n_datasets, n_algorithms)
            Higher is better.
        alpha : float, default=0.05
            Two algorithms differ if the p-value of the aligned-rank post-hoc test, adjusted by
            Finner's method, is below it.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        RankDisplay
            The display.
        """
        ranks: Any = stats.average_ranks(scores)
        groups = stats.groups_alike(ranks, stats.aligned_ranks_posthoc(scores), alpha=alpha)
        return cls(ranks, groups).plot(ax)

    def _size(self) -> tuple[float, float]:
        rows = (len(self.ranks) + 1) // 2
        return 4.6 + 2.2 * width_of(dict(self.ranks)), 0.6 + ROW * (rows + 1) + BAR * len(self.groups)

    def _draw(self, ax: Axes) -> None:
        names = sorted(dict(self.ranks), key=lambda name: self.ranks[name])
        last = len(names)
        if last < 2 or not np.isfinite([self.ranks[name] for name in names]).all():
            raise ValueError(f"a rank plot needs the ranks of two algorithms or more, got {dict(self.ranks)}")
        # Measured downwards from the axis, in inches: first the bars, then the names
        first_row = BAR * (len(self.groups) + 1) + ROW / 2
        left = (last + 1) // 2
        ax.set(xlim=(1, last), ylim=(first_row + ROW * (left - 0.5), 0), yticks=[])
        ax.set_xticks(range(1, last + 1), minor=True)
        ax.set_xticks(thinned(range(1, last + 1), last / 18))
        ax.xaxis.tick_top()
        ax.spines[["left", "right", "bottom"]].set_visible(False)
        ax.spines["top"].set(visible=True, color=ink())
        ax.patch.set_visible(False)
        ax.grid(False)
        margin = 0.012 * (last - 1)
        for position, group in enumerate(self.groups, start=1):
            ends = [self.ranks[name] for name in group]
            ax.plot(
                [min(ends) - margin, max(ends) + margin],
                [BAR * position] * 2,
                color=ink(),
                linewidth=3,
                solid_capstyle="butt",
                clip_on=False,
            )
        for position, name in enumerate(names):
            rank, is_left = self.ranks[name], position < left
            row = first_row + ROW * (position if is_left else last - 1 - position)
            end = 1 - 2 * margin if is_left else last + 2 * margin
            ax.plot([rank, rank, end], [0, row, row], color="0.5", linewidth=0.9, clip_on=False, zorder=1)
            side = "right" if is_left else "left"
            place = end - margin if is_left else end + margin
            ax.text(place, row, f"{shortened(name)}  {rank:.2f}", ha=side, va="center")


@dataclass(eq=False, repr=False)
class NoiseDisplay(Display):
    """Plot of scores or average ranks against noise, with names at the ends of the lines.

    Parameters
    ----------
    noise_levels : sequence of float
        Shares of changed labels, from 0 to 1.
    values : DataFrame or mapping of str to sequence of float
        One value per noise level, by algorithm. NaN is a gap.
    value_name : str, default="average rank"
        Name of the values.
    lower_is_better : bool, default=False
        Whether low values are at the top, as for ranks.
    marked : collection of str, default=None
        The algorithms in colour; all others are grey. None: all.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
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
    """Write names at the ends of lines, moved apart so that they don't overlap."""
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
