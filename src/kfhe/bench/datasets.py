"""What they are compared on: bundled, made on the spot, or read from the folder that KFHE_DATA names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.bench.algorithms import ALGORITHMS, ONE_HOT, OURS

NOISE = 0.1  # share of the training labels that is changed, so that nobody stops early

NUMERIC = tuple(name for name in ALGORITHMS if name != ONE_HOT)
CATEGORICAL = (OURS, ONE_HOT)


class UnavailableError(Exception):
    """A dataset can't be had here."""


@dataclass(frozen=True)
class Dataset:
    """Training rows with noisy labels, and held-out rows with clean ones."""

    X_train: Any
    y_train: NDArray[np.int64]
    X_test: Any
    y_test: NDArray[np.int64]

    @property
    def float32_bytes(self) -> int:
        """Size of the training table in float32."""
        return 4 * int(np.prod(self.X_train.shape))

    def one_hot(self) -> Dataset:
        """Return the same rows, with a column of zeros and ones for each category."""
        from sklearn.compose import make_column_selector, make_column_transformer
        from sklearn.preprocessing import OneHotEncoder

        encoder = make_column_transformer(
            (
                OneHotEncoder(sparse_output=False, handle_unknown="ignore"),
                make_column_selector(dtype_include="category"),
            ),
            remainder="passthrough",
        )
        return replace(
            self, X_train=encoder.fit_transform(self.X_train), X_test=encoder.transform(self.X_test)
        )


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from.

    Attributes
    ----------
    read : callable
        Returns the table and the labels.
    test_size : int or float
        Number or share of the rows to hold out.
    algorithms : tuple of str
        Who can work on it.
    default_algorithms : tuple of str or None
        Who does unless the user names others; None: all who can.
    """

    read: Callable[[], tuple[Any, Any]]
    test_size: float
    algorithms: tuple[str, ...] = NUMERIC
    default_algorithms: tuple[str, ...] | None = None

    def load(self) -> Dataset:
        """Read, split, and change a share of the training labels.

        Raises
        ------
        UnavailableError
            If the data, or what reads it, is not there.
        """
        from sklearn.model_selection import train_test_split

        from kfhe.noise import flip_labels

        X, y = self.read()
        codes = np.unique(y, return_inverse=True)[1]
        X_train, X_test, y_train, y_test = train_test_split(
            X, codes, test_size=self.test_size, stratify=codes, random_state=0
        )
        return Dataset(X_train, flip_labels(y_train, NOISE, random_state=0), X_test, y_test)


def _bundled(name: str) -> tuple[Any, Any]:
    import sklearn.datasets

    return getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)


def _made(n_rows: int, n_classes: int, dtype: type = np.float64) -> tuple[Any, Any]:
    from sklearn.datasets import make_classification

    X, y = make_classification(n_rows, n_features=30, n_informative=15, n_classes=n_classes, random_state=0)
    return X.astype(dtype, copy=False), y


def _pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise UnavailableError("it needs pandas") from None
    return pd


def _from_folder(name: str) -> tuple[Any, Any]:
    """Read a csv file of categories, the class last."""
    pd = _pandas()
    folder = os.environ.get("KFHE_DATA")
    if not folder:
        raise UnavailableError(f"set KFHE_DATA to a folder that has {name}.csv (the class last)")
    file = Path(folder) / f"{name}.csv"
    if not file.is_file():
        raise UnavailableError(f"there is no {name}.csv in the folder that KFHE_DATA names")
    table = pd.read_csv(file, dtype="category")
    return table.iloc[:, :-1], table.iloc[:, -1].astype(str).to_numpy()


def _fifty_levels() -> tuple[Any, Any]:
    """Make a table whose three classes depend on a category of 50 levels and on five numbers."""
    pd = _pandas()
    generator = np.random.default_rng(0)
    n_rows, n_levels, n_classes = 15_000, 50, 3
    levels = generator.integers(n_levels, size=n_rows)
    numbers = generator.normal(size=(n_rows, 5))
    leanings = generator.normal(scale=2.0, size=(n_levels, n_classes))
    slopes = generator.normal(size=(5, n_classes))
    y = (leanings[levels] + numbers @ slopes).argmax(axis=1)
    table = pd.DataFrame(numbers, columns=[f"number {j}" for j in range(5)])
    table["level"] = pd.Categorical([f"level {level}" for level in levels])
    return table, y


DATASETS = {
    "iris": Source(partial(_bundled, "iris"), 0.25),
    "digits": Source(partial(_bundled, "digits"), 0.25),
    "wide7": Source(partial(_made, 125_000, 7), 25_000),
    "wide2": Source(partial(_made, 125_000, 2), 25_000),
    "mushroom": Source(partial(_from_folder, "mushroom"), 0.25, CATEGORICAL),
    "car_eval": Source(partial(_from_folder, "car_eval"), 0.25, CATEGORICAL),
    "levels50": Source(_fifty_levels, 5_000, CATEGORICAL),
    "million": Source(
        partial(_made, 1_100_000, 2, np.float32), 100_000, default_algorithms=(OURS, "lightgbm")
    ),
}

QUICK = ("iris", "digits")
USUAL = tuple(name for name in DATASETS if name != "million")
FULL = tuple(DATASETS)
