"""ROC curves: how well scores tell each class from all others."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from sklearn import metrics

from kfhe.look.palette import PALETTE
from kfhe.plotting.display import Display, ink, legend_beside, shortened, width_of
from kfhe.plotting.predictions import coded, scores_of


class RocCurveDisplay(Display, metrics.RocCurveDisplay):
    """scikit-learn's display of true against false positives, for each class against all others.

    Of two classes it is one line, of more there is one for each. Of more than seven, those with the smallest
    areas have names and colours, and the others are grey.

    Parameters
    ----------
    fpr, tpr : list of ndarray
        False and true positive rates of each line.
    roc_auc : list of float
        The area under each line.
    name : list
        The class that each line is of.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
    lines_ : list of matplotlib Line2D
        The lines, in the order of the classes.

    Examples
    --------
    >>> from kfhe.plotting import RocCurveDisplay
    >>> display = RocCurveDisplay.from_predictions(["no", "no", "yes", "yes"], [0.1, 0.4, 0.3, 0.8])
    >>> display.name, display.roc_auc
    (['yes'], [0.75])
    """

    lines_: list[Line2D]

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
        curves = [metrics.roc_curve(codes == code, scores[:, code])[:2] for code in drawn]
        fpr, tpr = map(list, zip(*curves, strict=True))
        areas = [float(metrics.auc(*curve)) for curve in curves]
        return cls(fpr=fpr, tpr=tpr, roc_auc=areas, name=classes[drawn].tolist()).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 4.5 + max(1.9, width_of(self.name) + 1.0), 3.8

    def _draw(self, ax: Axes) -> None:
        worst = np.argsort(self.roc_auc, kind="stable").tolist()
        # In the order of the classes, if all have a name
        named = sorted(worst) if len(worst) <= len(PALETTE) else worst[: len(PALETTE)]
        plain = {"linestyle": "-", "alpha": 1.0}
        looks = [{**plain, "color": "0.6", "linewidth": 0.8, "zorder": 1.5, "label": None} for _ in worst]
        for position, colour in zip(named, PALETTE, strict=False):
            label = f"{shortened(self.name[position])}  {self.roc_auc[position]:.3f}"
            looks[position] = {**plain, "color": colour, "linewidth": 1.5, "label": label}
        chance = {"color": ink(), "linewidth": 0.8, "linestyle": ":", "zorder": 1}
        metrics.RocCurveDisplay.plot(
            self, ax=ax, curve_kwargs=looks, plot_chance_level=True, chance_level_kw=chance
        )
        self.lines_ = np.atleast_1d(self.line_).tolist()
        handles, others = [self.lines_[position] for position in named], worst[len(named) :]
        if others:
            least, most = self.roc_auc[others[0]], self.roc_auc[others[-1]]
            label = f"{len(others)} others  {least:.3f} to {most:.3f}"
            handles += ax.plot([], [], color="0.6", linewidth=0.8, label=label)
        ax.set(xlabel="false positive rate", ylabel="true positive rate", aspect="auto")
        mean = f", on average {np.mean(self.roc_auc):.3f}" if len(worst) > 1 else ""
        legend_beside(ax, handles, title=f"area{mean}")
