"""Plots of audits: sorted qualities, and suspects by class."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from kfhe.audit import LabelAudit
from kfhe.display.palette import BLUE, VERMILION
from kfhe.plotting.base import Display, width_of
from kfhe.plotting.predictions import ConfusionMatrixDisplay

MOST_CLASSES = 12  # of the matrix: those with the most suspects
MOST_POINTS = 2000  # of the line


class AuditDisplay(Display):
    """Plot of an audit: sorted qualities of the labels, and suspects by given and suggested class.

    The area of the suspects is filled.

    Parameters
    ----------
    audit : LabelAudit
        The result of `kfhe.audit.label_quality`.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
    line_ : matplotlib Line2D
        The line of qualities, lowest first.
    counts_ : int array of shape (n_shown, n_shown)
        The suspects by given class (down) and suggested class (across).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.audit import label_quality
    >>> from kfhe.noise import flip_labels
    >>> from kfhe.plotting import AuditDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> audit = label_quality(X, flip_labels(y, 0.1, random_state=0), n_estimators=100, random_state=0)
    >>> display = AuditDisplay.from_audit(audit)
    >>> bool(display.counts_.sum() == audit.suspects.sum())
    True
    """

    line_: Line2D
    counts_: NDArray[np.int64]

    def __init__(self, audit: LabelAudit) -> None:
        self.audit = audit

    @classmethod
    def from_audit(cls, audit: LabelAudit, *, ax: Axes | None = None) -> AuditDisplay:
        """Plot an audit.

        Parameters
        ----------
        audit : LabelAudit
            The result of `kfhe.audit.label_quality`.
        ax : matplotlib Axes, default=None
            A subplot, which both plots share. None: a new figure.

        Returns
        -------
        AuditDisplay
            The display.
        """
        return cls(audit).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 9 + width_of(self._suspects()[0], 16), 4

    def _draw(self, ax: Axes) -> None:
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError("an audit needs two axes: pass a subplot of a figure as ax")
        parts = place.subgridspec(1, 2, width_ratios=(5, 4))
        ax.set_subplotspec(parts[0])
        self._draw_quality(ax)
        self._draw_matrix(ax.figure.add_subplot(parts[1]))

    def _draw_quality(self, ax: Axes) -> None:
        audit = self.audit
        order = np.argsort(audit.rank)
        n_suspects = int(audit.suspects.sum())
        shown = order[np.unique(np.linspace(0, len(order) - 1, MOST_POINTS).round().astype(int))]
        rank, quality = audit.rank[shown], audit.quality[shown]
        (self.line_,) = ax.plot(rank, quality, color=BLUE, label="all labels")
        suspect = audit.suspects[shown]
        ax.fill_between(
            rank, quality, where=suspect, color=VERMILION, alpha=0.5, linewidth=0, label="suspects"
        )
        ax.legend(loc="lower right", frameon=False, fontsize="small")
        ax.set(
            xlabel="labels, the most suspicious first",
            ylabel="quality (share of the votes)",
            ylim=(0, 1.02),
            title=f"{n_suspects:,} of {len(audit):,} labels are suspects",
        )
        ax.title.set_fontsize("medium")

    def _draw_matrix(self, ax: Axes) -> None:
        classes, self.counts_ = self._suspects()
        ConfusionMatrixDisplay(self.counts_, display_labels=classes).plot(ax)
        ax.set(xlabel="suggested", ylabel="given", title="Suspects by class")
        ax.title.set_fontsize("medium")

    def _suspects(self) -> tuple[list[Any], NDArray[np.int64]]:
        """Return the classes to show, those with the most suspects, and their matrix."""
        audit = self.audit
        given, suggested = (
            np.searchsorted(audit.classes, labels[audit.suspects])
            for labels in (audit.given, audit.suggested)
        )
        counts = np.zeros((len(audit.classes), len(audit.classes)), dtype=np.int64)
        np.add.at(counts, (given, suggested), 1)
        involved = counts.sum(axis=0) + counts.sum(axis=1)
        shown = np.sort(np.argsort(-involved, kind="stable")[:MOST_CLASSES])
        return audit.classes[shown].tolist(), counts[np.ix_(shown, shown)]
