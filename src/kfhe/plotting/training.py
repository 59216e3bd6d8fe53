"""Plots of training: traces, sampling weights, and scores after each component."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from sklearn.metrics import check_scoring

from kfhe.display.palette import BLUE, PALETTE, TRACE_LINES
from kfhe.display.text import counted
from kfhe.early_stopping import EarlyStopping, Predicted, resolve
from kfhe.plotting.base import (
    Display,
    check_ensemble,
    count_along,
    marker_for,
    say_there_are_no_iterations,
    shortened,
)
from kfhe.trace import Trace


@dataclass(eq=False, repr=False)
class OfTrace(Display):
    """The columns of a trace to plot."""

    trace: Trace | Mapping[str, Any]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Plot the trace of a fitted `KFHEClassifier`.

        Parameters
        ----------
        estimator : KFHEClassifier
            A fitted classifier.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        Display
            The display.
        """
        check_ensemble(estimator)
        return cls(estimator.trace_).plot(ax)


class TraceDisplay(OfTrace):
    """Plot of R, P, K and the training error by iteration, as in the paper's figures.

    Parameters
    ----------
    trace : Trace or mapping of str to sequence of float
        Columns `measurement_error`, `posterior_variance`, `gain` and `training_error`, one value per
        iteration. Iterations where `resets`, if given, is 1 are marked on the axis.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
    lines_ : list of matplotlib Line2D
        The lines, in the order of the columns above.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> from kfhe.plotting import TraceDisplay
    >>> model = KFHEClassifier(n_estimators=20, random_state=0).fit(*load_iris(return_X_y=True))
    >>> display = TraceDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'iteration'
    """

    lines_: list[Line2D]

    def _draw(self, ax: Axes) -> None:
        n_iter = len(self.trace["gain"])
        iterations = range(1, n_iter + 1)
        self.lines_ = [
            ax.plot(
                iterations,
                self.trace[line.column],
                color=line.colour,
                linestyle=line.dashes,
                marker=marker_for(n_iter),
                label=line.label,
            )[0]
            for line in TRACE_LINES
        ]
        ax.set(xlabel="iteration", ylim=(0, 1))
        if not n_iter:
            say_there_are_no_iterations(ax)
            return
        count_along(ax, 1, n_iter)
        mark_resets(ax, self.trace)
        ax.legend(fontsize="small")


def mark_resets(ax: Axes, trace: Trace | Mapping[str, Any]) -> bool:
    """Mark the iterations where the sampling weights were reset; return whether there are any."""
    try:
        resets = trace["resets"]
    except KeyError:
        return False
    places = [iteration for iteration, reset in enumerate(resets, start=1) if reset]
    if places:
        ax.plot(
            places,
            [0.0] * len(places),
            transform=ax.get_xaxis_transform(),
            color="0.5",
            linestyle="",
            marker="^",
            clip_on=False,
            label="weights reset",
        )
    return bool(places)


class SamplingWeightsDisplay(OfTrace):
    """Plot of the effective sample size of the sampling weights by iteration.

    Training starts with the number of rows (less if rows have weights). The more the weights concentrate
    on rows that are often missed, the lower it gets; with the exponential emphasis, faster.

    Parameters
    ----------
    trace : Trace or mapping of str to sequence of float
        A column `effective_sample_size`, one value per iteration. Iterations where `resets`, if given, is 1
        are marked on the axis.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
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


@dataclass(eq=False, repr=False)
class StagedScoreDisplay(Display):
    """Plot of the score of an ensemble after each component.

    One display is one line. Draw a second one on the same `ax_` to compare training and test
    rows, or two models. `from_validation` plots the validation scores of training.

    Parameters
    ----------
    scores : sequence of float of length n_iterations + 1
        The score of h_0 alone, then after each further component.
    name : str, default=None
        Name of the line in the legend. None: no legend.
    scoring : str, default="accuracy"
        Name of the scores.
    n_kept : int, default=None
        Number of components that early stopping has kept, marked by a dotted line.

    Attributes
    ----------
    ax_, figure_
        The axes and the figure.
    line_ : matplotlib Line2D
        The line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import train_test_split
    >>> from kfhe import KFHEClassifier
    >>> from kfhe.plotting import StagedScoreDisplay
    >>> X, X_test, y, y_test = train_test_split(*load_iris(return_X_y=True), random_state=0)
    >>> model = KFHEClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> train = StagedScoreDisplay.from_estimator(model, X, y, name="train")
    >>> test = StagedScoreDisplay.from_estimator(model, X_test, y_test, name="test", ax=train.ax_)
    >>> bool(test.scores[-1] == model.score(X_test, y_test))
    True
    """

    scores: Sequence[float]
    _: KW_ONLY
    name: str | None = None
    scoring: str = "accuracy"
    n_kept: int | None = None
    line_: Line2D = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        scoring: str | Callable[[Any, Any, Any], float] = "accuracy",
        ax: Axes | None = None,
    ) -> StagedScoreDisplay:
        """Score a fitted `KFHEClassifier` after each component, and plot the scores.

        Parameters
        ----------
        estimator : KFHEClassifier
            A fitted classifier.
        X : array or data frame of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their labels.
        name : str, default=None
            Name of the line in the legend, such as "test". None: no legend.
        scoring : str or callable, default="accuracy"
            A metric of scikit-learn by name, such as "f1_macro", or a scorer.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        StagedScoreDisplay
            The display.
        """
        check_ensemble(estimator)
        scorer = check_scoring(estimator, scoring)
        predicted = zip(estimator.staged_predict_proba(X), estimator.staged_predict(X), strict=True)
        stages = (Predicted(estimator.classes_, *stage) for stage in predicted)
        scores = [float(scorer(stage, X, y)) for stage in stages]
        return cls(scores, name=name, scoring=_called(scoring)).plot(ax)

    @classmethod
    def from_validation(
        cls, estimator: Any, *, name: str | None = "validation", ax: Axes | None = None
    ) -> StagedScoreDisplay:
        """Plot the validation scores of a fitted `KFHEClassifier`.

        They include components that early stopping has discarded.

        Parameters
        ----------
        estimator : KFHEClassifier
            A classifier that was fitted with a validation set.
        name : str, default="validation"
            Name of the line in the legend.
        ax : matplotlib Axes, default=None
            Axes to draw on. None: a new figure.

        Returns
        -------
        StagedScoreDisplay
            The display.
        """
        check_ensemble(estimator)
        if not hasattr(estimator, "validation_scores_"):
            raise ValueError("there are no validation scores: pass a validation set, X_val and y_val, to fit")
        scoring = (resolve(estimator.early_stopping) or EarlyStopping(1)).scoring
        scores, n_iter = estimator.validation_scores_, estimator.n_iter_
        n_kept = n_iter if len(scores) > n_iter + 1 else None
        return cls(scores, name=name, scoring=_called(scoring), n_kept=n_kept).plot(ax)

    def _draw(self, ax: Axes) -> None:
        components = range(len(self.scores))
        (self.line_,) = ax.plot(
            components,
            self.scores,
            color=PALETTE[sum(line.get_linestyle() == "-" for line in ax.lines) % len(PALETTE)],
            marker=marker_for(len(self.scores)),
            label=None if self.name is None else shortened(self.name),
        )
        ax.set(xlabel="components after the initial one", ylabel=self.scoring.replace("_", " "))
        longest = max(np.max(line.get_xdata(), initial=0) for line in ax.lines)
        count_along(ax, 0, longest)
        if self.n_kept is not None:
            label = f"{counted(self.n_kept, 'component')} kept"
            ax.axvline(self.n_kept, color=self.line_.get_color(), linestyle=":", label=label)
        if self.name is not None:
            ax.legend(fontsize="small")


def _called(scoring: str | Callable[[Any, Any, Any], float]) -> str:
    return scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
