"""Careless tables: datasets with meaningless columns and copied rows, as in practice.

Additions are part of the dataset's name: ``wine+code+id`` is wine with two more columns, and ``wine+twice30``
has copies of 30 % of its training rows. They have the same folds and noise as wine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]

SEED = [2026, 11]  # not used for anything else


def _code(n_rows: int, random: np.random.Generator) -> Rows:
    """Return a code with about four rows per value."""
    return random.integers(max(n_rows // 4, 1), size=n_rows)


def _id(n_rows: int, random: np.random.Generator) -> Rows:
    """Return a different number for each row, in random order."""
    return random.permutation(n_rows)


def _zip(n_rows: int, random: np.random.Generator) -> Rows:
    """Return one of thirty values of very different frequency."""
    often = 1 / np.arange(1, 31)
    return random.choice(30, size=n_rows, p=often / often.sum())


# The columns of each addition, by name; they do not depend on the class
COLUMNS: dict[str, dict[str, Callable[[int, np.random.Generator], Rows]]] = {
    "code": {"code": _code},
    "codes": {"code a": _code, "code b": _code, "code c": _code},
    "id": {"id": _id},
    "zip": {"zip": _zip},
}
COPIES = {"twice10": 0.1, "twice30": 0.3, "twice100": 1.0}


def split_additions(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the dataset in a name, and the additions.

    Examples
    --------
    >>> from kfhe.study.careless import split_additions
    >>> split_additions("wine+code+twice30")
    ('wine', ('code', 'twice30'))
    >>> split_additions("c++.csv")
    ('c++.csv', ())
    """
    base, *added = name.split("+")
    known = bool(added) and {*added} <= {*COLUMNS, *COPIES}
    return (base, tuple(added)) if known else (name, ())


def added_columns(X: Any, added: tuple[str, ...]) -> Any:
    """Return a data frame with meaningless columns: text, as categories."""
    import pandas as pd

    random = np.random.default_rng(SEED)
    X = X.copy()
    for addition in added:
        for name, values in COLUMNS.get(addition, {}).items():
            X[name] = pd.Categorical([f"{name} {value}" for value in values(len(X), random)])
    return X


def copied(rows: Rows, added: tuple[str, ...], seed: int) -> Rows:
    """Return rows with copies of some, according to the additions."""
    random, n = np.random.default_rng(seed), len(rows)
    twice = [random.permutation(n)[: round(COPIES[each] * n)] for each in added if each in COPIES]
    return np.concatenate([rows, *(rows[some] for some in twice)])
