"""Callbacks: functions that are called after each iteration of training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kfhe.trace import Iteration

__all__ = ["Callback", "CallbackSupportMixin", "FitTasks"]

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Does nothing."""


class Callback(Protocol):
    """A function that gets the row of the trace after each iteration. It may stop training.

    Any function of one argument is a callback.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe import KFHEClassifier
    >>> gains = []
    >>> def stop_when_settled(row):
    ...     gains.append(row.gain)
    ...     return row.gain < 0.1
    >>> model = KFHEClassifier(random_state=0)
    >>> model.fit(*load_iris(return_X_y=True), callbacks=[stop_when_settled]).n_iter_ == len(gains) < 100
    True
    """

    def __call__(self, row: Iteration, /) -> bool | None:
        """Handle an iteration.

        Parameters
        ----------
        row : Iteration
            The number of the iteration, the values of the filters, and the validation score if there is one.

        Returns
        -------
        bool or None
            True ends training. The components so far are kept.
        """


class FitTasks:
    """A callback that reports progress to scikit-learn's callbacks (`model.set_callbacks`, since 1.9).

    A fit is a task there, and its iterations are subtasks.

    Parameters
    ----------
    estimator : KFHEClassifier
        The estimator that has the callbacks.
    X, y, sample_weight
        The training data.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._known = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._n_iter = estimator.n_estimators
        self._fit = estimator._init_callback_context(max_subtasks=self._n_iter)
        self._fit.call_on_fit_task_begin(**self._known)
        self._iteration: Any = None

    def start(self, fitted: Callable[[], dict[str, Any]]) -> None:
        """Begin the first iteration; `fitted` returns the current attributes of the model."""
        self._fitted = fitted
        self._begin()

    def __call__(self, row: Iteration) -> bool:
        """End an iteration, and begin the next one if there is one."""
        stop = self._iteration.call_on_fit_task_end(**self._known, reconstruction_attributes=self._fitted)
        self._iteration = None
        if row.iteration < self._n_iter and not stop:
            self._begin()
        return bool(stop)

    def finish(self) -> None:
        """End the fit, including an iteration that was begun but did not take place."""
        if self._iteration is not None:
            self._iteration.call_on_fit_task_end(estimator=self._known["estimator"])
        self._fit.call_on_fit_task_end(**self._known, reconstruction_attributes={})

    def _begin(self) -> None:
        self._iteration = self._fit.subcontext(task_name="iteration")
        self._iteration.call_on_fit_task_begin(**self._known, reconstruction_attributes=self._fitted)
