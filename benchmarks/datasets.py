"""What they are compared on: datasets of the study, and larger ones that are made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.algorithms import ONE_HOT, OURS, PEERS
from benchmarks.worker import Split
from kfhe.study import sources
from kfhe.study.dataset import Dataset

NOISE = 0.1  # share of the training labels that is changed, so that nobody stops early


@dataclass(frozen=True)
class Match:
    """How a dataset is used.

    Attributes
    ----------
    test_size : int or float
        Number or share of the rows to hold out.
    algorithms : tuple of str
        Who is measured on it unless the user names others.
    """

    test_size: float
    algorithms: tuple[str, ...] = (OURS, *PEERS)


def load(name: str) -> Dataset:
    """Make a dataset, or load it as a study does.

    Raises
    ------
    StudyError
        If it is not here.
    """
    return MADE[name]() if name in MADE else sources.load(name)


def split(name: str) -> Split:
    """Hold out some rows of a dataset, and change a share of the labels of the others."""
    from sklearn.model_selection import train_test_split

    from kfhe.noise import flip_labels

    data = load(name)
    # Numbers alone are an array, which everybody takes as it is
    X = data.X if data.categorical else np.ascontiguousarray(data.X.to_numpy())
    X_train, X_test, y_train, y_test = train_test_split(
        X, data.y, test_size=DATASETS[name].test_size, stratify=data.y, random_state=0
    )
    return Split(X_train, flip_labels(y_train, NOISE, random_state=0), X_test, y_test)


def _wide(name: str, n_rows: int, n_classes: int, dtype: type = np.float64, n_clusters: int = 2) -> Dataset:
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n_rows,
        n_features=30,
        n_informative=15,
        n_classes=n_classes,
        n_clusters_per_class=n_clusters,
        random_state=0,
    )
    return _dataset(name, pd.DataFrame(X.astype(dtype, copy=False)), y)


def _fifty_levels(name: str) -> Dataset:
    """Make a table whose three classes depend on a category of 50 levels and on five numbers."""
    generator = np.random.default_rng(0)
    n_rows, n_levels, n_classes = 15_000, 50, 3
    levels = generator.integers(n_levels, size=n_rows)
    numbers = generator.normal(size=(n_rows, 5))
    leanings = generator.normal(scale=2.0, size=(n_levels, n_classes))
    slopes = generator.normal(size=(5, n_classes))
    table = pd.DataFrame(numbers, columns=[f"number {j}" for j in range(5)])
    table["level"] = pd.Categorical([f"level {level}" for level in levels])
    return _dataset(name, table, (leanings[levels] + numbers @ slopes).argmax(axis=1))


def _dataset(name: str, X: pd.DataFrame, y: NDArray[Any]) -> Dataset:
    return Dataset(name, X, y.astype(np.intp), [str(label) for label in range(y.max() + 1)], "made")


MADE: dict[str, Callable[[], Dataset]] = {
    "wide7": partial(_wide, "wide7", 125_000, 7),
    "wide2": partial(_wide, "wide2", 125_000, 2),
    "levels50": partial(_fifty_levels, "levels50"),
    "million": partial(_wide, "million", 1_100_000, 2, np.float32),
    "clusters2": partial(_wide, "clusters2", 125_000, 2, np.float32, n_clusters=4),
    "clusters7": partial(_wide, "clusters7", 125_000, 7, np.float32, n_clusters=4),
    "clusters-million": partial(_wide, "clusters-million", 1_100_000, 2, np.float32, n_clusters=4),
}
NATIVE = (OURS, ONE_HOT)
DATASETS = {
    "iris": Match(0.25),
    "digits": Match(0.25),
    "wide7": Match(25_000),
    "wide2": Match(25_000),
    "mushroom": Match(0.25, NATIVE),
    "car_eval": Match(0.25, NATIVE),
    "levels50": Match(5_000, NATIVE),
    "million": Match(100_000, (OURS, "LightGBM")),
    "clusters2": Match(25_000),
    "clusters7": Match(25_000),
    "clusters-million": Match(100_000, (OURS, "LightGBM")),
}

QUICK = ("iris", "digits")
FRONTIER = ("clusters2", "clusters7", "clusters-million")
FULL = tuple(name for name in DATASETS if name not in FRONTIER)
USUAL = tuple(name for name in FULL if name != "million")
