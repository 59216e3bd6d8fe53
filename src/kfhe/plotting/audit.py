"""An audit: how well the labels are supported, and which class the suspects seem to be."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from kfhe.audit import LabelAudit
from kfhe.look.palette import BLUE, VERMILION
from kfhe.plotting.display import Display, shortened, width_of

MOST_CLASSES = 12  # in the matrix; of more, those with the most suspects
MOST_POINTS = 2000  # of the line


class AuditDisplay(Display):
    """An audit: the quality of the labels in order, and the suspects by given and suggested class.

    The place of the suspects below the line is filled.

    Parameters
    ----------
    audit : LabelAudit
        What `kfhe.audit.label_quality` returns.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
    line_ : matplotlib Line2D
        The qualities, the lowest first.
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
        """Draw an audit.

        Parameters
        ----------
        audit : LabelAudit
            What `kfhe.audit.label_quality` returns.
        ax : matplotlib Axes, default=None
            A subplot to draw in; the matrix gets the right part of its place. None: on a new figure.

        Returns
        -------
        AuditDisplay
            The display.
        """
        return cls(audit).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 9 + width_of(self._classes(), 16), 4

    def _draw(self, ax: Axes) -> None:
        place = ax.get_subplotspec()
        if place is None:
            raise ValueError("an audit takes two axes: give a subplot of a figure, which can be parted")
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
        audit, classes = self.audit, self._classes()
        positions = {label: position for position, label in enumerate(classes)}
        self.counts_ = np.zeros((len(classes), len(classes)), dtype=np.int64)
        pairs = zip(audit.given[audit.suspects], audit.suggested[audit.suspects], strict=True)
        for given, suggested in pairs:
            if given in positions and suggested in positions:
                self.counts_[positions[given], positions[suggested]] += 1
        ax.imshow(self.counts_, cmap="Blues", vmin=0, vmax=max(1, self.counts_.max()))
        dark = self.counts_ > self.counts_.max() / 2
        for (i, j), count in np.ndenumerate(self.counts_):
            if count:
                ax.text(j, i, str(count), ha="center", va="center", color="white" if dark[i, j] else "black")
        names = [shortened(label, 16) for label in classes]
        ax.set_xticks(range(len(classes)), names, rotation=45, ha="right", fontsize="small")
        ax.set_yticks(range(len(classes)), names, fontsize="small")
        ax.set(xlabel="suggested", ylabel="given", title="Suspects by class")
        ax.title.set_fontsize("medium")

    def _classes(self) -> list[Any]:
        """Return the classes to show, in order: all, or those with the most suspects."""
        audit = self.audit
        classes = np.unique(np.concatenate([audit.given, audit.suggested]))
        if len(classes) <= MOST_CLASSES:
            return list(classes)
        involved = np.concatenate([audit.given[audit.suspects], audit.suggested[audit.suspects]])
        counts = np.array([(involved == label).sum() for label in classes])
        return list(classes[np.sort(np.argsort(-counts, kind="stable")[:MOST_CLASSES])])
