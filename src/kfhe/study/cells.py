"""Cells: single training runs. Their results depend only on the plan, the data and the cell's name."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from kfhe.display.palette import TRACE_LINES
from kfhe.metrics import metrics_of
from kfhe.noise import NOISE_MODELS
from kfhe.study.algorithms import build, components_of
from kfhe.study.careless import copied, split_additions
from kfhe.study.plan import Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd
    from numpy.typing import NDArray

    from kfhe.study.dataset import Dataset
    from kfhe.study.plan import Plan


@dataclass(frozen=True)
class Fold:
    """The data of a cell: noisy rows for training, and rows for testing.

    Attributes
    ----------
    X, y : DataFrame, ndarray of int
        The training rows, and their labels as positions of classes.
    X_test, true : DataFrame, ndarray of int
        The test rows, and their true labels.
    n_classes : int
        Number of classes of the dataset.
    """

    X: pd.DataFrame
    y: NDArray[np.intp]
    X_test: pd.DataFrame
    true: NDArray[np.intp]
    n_classes: int


@dataclass(frozen=True)
class Result:
    """The result of a cell: scores against the true labels, or an error message."""

    cell: Cell
    f1_macro: float | None = None
    accuracy: float | None = None
    balanced_accuracy: float | None = None
    roc_auc: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    calibration_error: float | None = None
    fit_seconds: float | None = None
    predict_seconds: float | None = None
    components: int | None = None
    error: str | None = None
    trace: dict[str, list[float]] | None = None


def seed_of(seed: int, *name: object) -> int:
    """Return the seed of a name: different names have unrelated seeds."""
    text = "\x1f".join(str(part) for part in (seed, *name))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest()) >> 1


def run_cells(plan: Plan, cells: Iterable[Cell], dataset_of: Callable[[str], Dataset]) -> list[Result]:
    """Run some cells of a plan, one after the other.

    Parameters
    ----------
    plan : Plan
        The study.
    cells : iterable of Cell
        The cells to run.
    dataset_of : callable
        Returns a dataset of the plan by its name.

    Returns
    -------
    list of Result
        One for each cell, which may be an error.
    """
    from threadpoolctl import threadpool_limits

    # All algorithms get the same noisy rows, so they are made only once
    @lru_cache(maxsize=1)
    def fold(dataset: str, noise: float, repeat: int, fold: int) -> Fold:
        cell = Cell(dataset, "", noise, repeat, fold)
        return make_fold(plan, cell, dataset_of(dataset))

    # The cells of a study run in parallel, so classifiers are limited to one thread
    with threadpool_limits(1):
        return [_run_cell(plan, cell, fold) for cell in cells]


def _run_cell(plan: Plan, cell: Cell, fold: Callable[..., Fold]) -> Result:
    try:
        with warnings.catch_warnings():
            # Tiny classes and single features cause warnings in every fold
            warnings.simplefilter("ignore")
            return _scored(plan, cell, fold(cell.dataset, cell.noise, cell.repeat, cell.fold))
    except Exception as error:
        return Result(cell, error=f"{type(error).__name__}: {error}")


def _scored(plan: Plan, cell: Cell, fold: Fold) -> Result:
    # If noise has removed a class, the classifier sees the others as 0, 1, 2, ...
    present, labels = np.unique(fold.y, return_inverse=True)
    algorithm = next(item for item in plan.algorithms if item.name == cell.algorithm)
    base, _ = split_additions(cell.dataset)  # additions don't change the seed
    seed = seed_of(plan.seed, base, cell.algorithm, cell.noise, cell.repeat, cell.fold)
    model = build(algorithm, fold.X, seed)

    started = perf_counter()
    model.fit(fold.X, labels)
    fitted = perf_counter()
    predicted = present[np.asarray(model.predict(fold.X_test), dtype=np.intp).ravel()]
    done = perf_counter()

    scores = _scores(model, fold.X_test, present, fold.n_classes)
    metrics: dict[str, Any] = metrics_of(fold.true, predicted, scores, fold.n_classes)
    classifier = model[-1] if hasattr(model, "steps") else model
    return Result(
        cell,
        **metrics,
        fit_seconds=fitted - started,
        predict_seconds=done - fitted,
        components=components_of(classifier),
        trace=_trace(classifier) if cell.repeat == cell.fold == 0 else None,
    )


def make_fold(plan: Plan, cell: Cell, dataset: Dataset) -> Fold:
    """Return the rows of a cell, with noise in the training rows; the same for all algorithms."""
    train, test = fold_rows(plan, cell, dataset.y)
    # Some classifiers don't support all names of columns
    X = dataset.X.set_axis([f"x{position}" for position in range(dataset.X.shape[1])], axis=1)
    base, added = split_additions(cell.dataset)
    seed = seed_of(plan.seed, base, cell.noise, cell.repeat, cell.fold, "noise")
    disturb = NOISE_MODELS[plan.noise_model].disturb
    noisy_X, noisy_y = disturb(X.iloc[train], dataset.y[train], cell.noise, seed)
    if added:
        rows = copied(np.arange(len(train)), added, seed)
        noisy_X, noisy_y = noisy_X.iloc[rows], noisy_y[rows]
    true = dataset.y if dataset.true is None else dataset.true
    return Fold(noisy_X, noisy_y, X.iloc[test], true[test], len(dataset.classes))


def fold_rows(plan: Plan, cell: Cell, y: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the training and test rows; they are the same for all algorithms and noise levels."""
    from sklearn.model_selection import StratifiedKFold

    seed = seed_of(plan.seed, split_additions(cell.dataset)[0], cell.repeat, "folds")
    folds = StratifiedKFold(plan.folds, shuffle=True, random_state=seed)
    train, test = list(folds.split(np.zeros(len(y)), y))[cell.fold]
    return train, test


def _scores(model: Any, X: Any, present: NDArray[np.intp], n_classes: int) -> NDArray[np.float64] | None:
    """Return the scores of all classes, 0 for classes without training rows; None without scores."""
    if not hasattr(model, "predict_proba"):
        return None
    scores = np.zeros((len(X), n_classes))
    scores[:, present] = model.predict_proba(X)
    return scores


def _trace(classifier: Any) -> dict[str, list[float]] | None:
    trace = getattr(classifier, "trace_", None)
    if trace is None:
        return None
    drawn = [line.column for line in TRACE_LINES]
    return {column: [float(value) for value in trace[column]] for column in drawn}
