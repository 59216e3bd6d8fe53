"""ROC curves: how well scores tell each class from all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from sklearn.metrics import auc, roc_curve

from kfhe.look.palette import PALETTE
from kfhe.plotting.display import Display, ink, legend_beside, shortened, width_of
from kfhe.plotting.predictions import coded, scores_of

MOST_NAMED = len(PALETTE)  # lines that have a colour and a name
Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class RocCurveDisplay(Display):
    """How well scores tell each class from all others: true against false positives.

    Of two classes it is one line, of more there is one for each. Of more than seven, those with the smallest
    areas have names and colours, and the others are grey.

    Parameters
    ----------
    fpr, tpr : sequences of ndarray
        False and true positive rates of each line.
    roc_auc : sequence of float
        The area under each line.
    names : sequence
        The class that each line is of.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
    lines_ : list of matplotlib Line2D
        The lines, in the order of the names.

    Examples
    --------
    >>> from kfhe.plotting import RocCurveDisplay
    >>> display = RocCurveDisplay.from_predictions(["no", "no", "yes", "yes"], [0.1, 0.4, 0.3, 0.8])
    >>> display.names, display.roc_auc
    (['yes'], [0.75])
    """

    fpr: Sequence[Floats]
    tpr: Sequence[Floats]
    _: KW_ONLY
    roc_auc: Sequence[float]
    names: Sequence[Any]
    lines_: list[Line2D] = field(init=False)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None) -> RocCurveDisplay:
        """Draw how well the probabilities of a fitted classifier tell each class from all others.

        Parameters
        ----------
        estimator : classifier
            A fitted one with `predict_proba`.
        X : array or data frame of shape (n_samples, n_features)
            Rows that it has not been trained on.
        y : array-like of shape (n_samples,)
            Their labels.
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.

        Returns
        -------
        RocCurveDisplay
            The display.
        """
        return cls.from_predictions(y, scores_of(estimator, X), classes=estimator.classes_, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_score: Any, *, classes: Any = None, ax: Axes | None = None
    ) -> RocCurveDisplay:
        """Draw how well scores tell each class from all others.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        y_score : array-like of shape (n_samples, n_classes) or (n_samples,)
            Scores of the classes; of one column, those of the second of two classes.
        classes : sequence, default=None
            The classes, in the order of the columns. None: the labels that there are, sorted. One that has no
            rows, or all of them, has no line.
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.

        Returns
        -------
        RocCurveDisplay
            The display.
        """
        codes, scores, classes = coded(y_true, y_score, classes)
        drawn = [1] if len(classes) == 2 else range(len(classes))
        drawn = [code for code in drawn if 0 < np.sum(codes == code) < len(codes)]
        if not drawn:
            raise ValueError("ROC curves need rows of two classes or more")
        curves = [roc_curve(codes == code, scores[:, code])[:2] for code in drawn]
        fpr, tpr = zip(*curves, strict=True)
        areas = [float(auc(*curve)) for curve in curves]
        return cls(fpr, tpr, roc_auc=areas, names=classes[drawn].tolist()).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 4.5 + max(1.9, width_of(self.names) + 1.0), 3.8

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=ink(), linewidth=0.8, linestyle=":", zorder=1)
        worst = sorted(range(len(self.names)), key=lambda position: self.roc_auc[position])
        # In the order of the classes, if all have a name
        named = sorted(worst) if len(worst) <= MOST_NAMED else worst[:MOST_NAMED]
        others = [position for position in worst if position not in named]
        lines = {position: self._line(ax, position, "0.6", None) for position in others}
        for position, colour in zip(named, PALETTE, strict=False):
            label = f"{shortened(self.names[position])}  {self.roc_auc[position]:.3f}"
            lines[position] = self._line(ax, position, colour, label)
        self.lines_ = [lines[position] for position in range(len(self.names))]
        if others:
            least, most = self.roc_auc[others[0]], self.roc_auc[others[-1]]
            label = f"{len(others)} others  {least:.3f} to {most:.3f}"
            ax.plot([], [], color="0.6", linewidth=0.8, label=label)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        mean = f", on average {np.mean(self.roc_auc):.3f}" if len(self.names) > 1 else ""
        legend_beside(ax, len(named) + 1, title=f"area{mean}")

    def _line(self, ax: Axes, position: int, colour: str, label: str | None) -> Line2D:
        width = 0.8 if label is None else 1.5
        return ax.plot(self.fpr[position], self.tpr[position], color=colour, linewidth=width, label=label)[0]
