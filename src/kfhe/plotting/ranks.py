"""Rank plots: algorithms by average rank, bars over those that don't differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from kfhe import stats
from kfhe.plotting.display import Display, ink, shortened, thinned, width_of

ROW, BAR = 0.2, 0.12  # heights of a name and of a bar, in inches


class RankDisplay(Display):
    """Algorithms along an axis of average ranks, with a bar over each group that doesn't differ.

    Parameters
    ----------
    ranks : Series or mapping of str to float
        The average rank of each algorithm; 1 is the best.
    groups : sequence of sequences of str, default=()
        Names that a bar joins.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.

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
        """Rank algorithms by their scores on many datasets, test which differ, and draw it.

        Parameters
        ----------
        scores : DataFrame of shape (n_datasets, n_algorithms)
            Higher is better.
        alpha : float, default=0.05
            Two algorithms differ if the p-value of the aligned-rank post-hoc test, adjusted by
            Finner's method, is below it.
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.

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
        # Down in inches from the axis of ranks: bars first, then the names
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
