"""Feature importances as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from sklearn.utils.validation import check_is_fitted

from kfhe.look.palette import BLUE
from kfhe.plotting.display import Display, shortened, width_of


@dataclass(eq=False, repr=False)
class FeatureImportanceDisplay(Display):
    """The most important features as bars, the first at the top.

    Parameters
    ----------
    importances : sequence of float
        The importance of each feature.
    feature_names : sequence of str
        What they are called. The middle of a long name is left out.
    max_features : int, default=20
        How many to show at most.

    Attributes
    ----------
    ax_, figure_
        What it was drawn on last.
    bars_ : matplotlib BarContainer
        The bars, the most important feature first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> from kfhe.plotting import FeatureImportanceDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = KFHEClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> display = FeatureImportanceDisplay.from_estimator(model)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()][0]
    'petal length (cm)'
    """

    importances: Sequence[float]
    feature_names: Sequence[str]
    _: KW_ONLY
    max_features: int = 20
    bars_: BarContainer = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        feature_names: Sequence[str] | None = None,
        max_features: int = 20,
        ax: Axes | None = None,
    ) -> FeatureImportanceDisplay:
        """Draw the importances of a fitted `KFHEClassifier`, or of any classifier that has them.

        Parameters
        ----------
        estimator : classifier
            A fitted one with `feature_importances_`.
        feature_names : sequence of str, default=None
            What to call the features. None: by the columns it was trained on, or x0, x1, ...
        max_features : int, default=20
            How many to show at most.
        ax : matplotlib Axes, default=None
            Where to draw. None: on a new figure.

        Returns
        -------
        FeatureImportanceDisplay
            The display.
        """
        check_is_fitted(estimator)
        try:
            importances = estimator.feature_importances_
        except AttributeError as error:
            raise ValueError(f"there are no importances to draw: {error}") from error
        if feature_names is None:
            numbered = [f"x{feature}" for feature in range(len(importances))]
            feature_names = getattr(estimator, "feature_names_in_", numbered)
        if len(feature_names) != len(importances):
            raise ValueError(f"there are {len(importances)} features, got {len(feature_names)} feature_names")
        return cls(importances, feature_names, max_features=max_features).plot(ax)

    def _size(self) -> tuple[float, float]:
        width = 4.0 + width_of(self.feature_names, 40)
        return width, 1.0 + 0.27 * min(len(self.importances), self.max_features)

    def _draw(self, ax: Axes) -> None:
        importances = np.asarray(self.importances)
        order = np.argsort(-importances, kind="stable")
        shown, others = order[: self.max_features], order[self.max_features :]
        places = range(len(shown))
        self.bars_ = ax.barh(places, importances[shown], color=BLUE)
        ax.bar_label(self.bars_, fmt="%.3f", padding=3, fontsize="small")
        ax.set_yticks(places, [shortened(self.feature_names[feature], 40) for feature in shown])
        ax.set_ylim(len(shown) - 0.5, -0.5)
        ax.set_xlim(0, 1.2 * importances.max(initial=0.0) or 1.0)
        label = "importance"
        if len(others):
            label += f"\n(the other {len(others)} together: {importances[others].sum():.3f})"
        ax.set_xlabel(label)
