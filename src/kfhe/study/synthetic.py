"""Generated datasets, which are the same on all machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from kfhe.study.dataset import import_pandas

SEED = 2026  # of the random ones


def balance_scale() -> Any:
    """Return all 625 loads of a balance scale, with the side to which it tips."""
    rows = list(product(range(1, 6), repeat=4))
    columns = ["left_weight", "left_distance", "right_weight", "right_distance"]
    tips = [left * a - right * b for left, a, right, b in rows]
    return _frame(rows, ["L" if tip > 0 else "R" if tip < 0 else "B" for tip in tips], columns)


def _monks(rule: Callable[[int, int, int, int, int, int], bool]) -> Any:
    """Return all 432 robots of the MONK problems, with classes by a rule."""
    rows = list(product((1, 2, 3), (1, 2, 3), (1, 2), (1, 2, 3), (1, 2, 3, 4), (1, 2)))
    return _frame(rows, [int(rule(*row)) for row in rows], ["a1", "a2", "a3", "a4", "a5", "a6"])


def monks1() -> Any:
    """Return the robots whose head and body have the same shape, or whose jacket is red, and the others."""
    return _monks(lambda a1, a2, a3, a4, a5, a6: a1 == a2 or a5 == 1)


def monks2() -> Any:
    """Return the robots of which exactly two attributes have their first value, and the others."""
    return _monks(lambda *robot: robot.count(1) == 2)


def monks3() -> Any:
    """Return the third problem, without its noise."""
    return _monks(lambda a1, a2, a3, a4, a5, a6: (a5 == 3 and a4 == 1) or (a5 != 4 and a2 != 3))


def moons() -> Any:
    """Return two overlapping half-moons."""
    from sklearn.datasets import make_moons

    return _frame(*make_moons(600, noise=0.3, random_state=SEED))


def circles() -> Any:
    """Return a disc in a ring, with four uninformative columns."""
    from sklearn.datasets import make_circles

    X, y = make_circles(600, noise=0.15, factor=0.6, random_state=SEED)
    return _frame(np.column_stack([X, np.random.default_rng(SEED).normal(size=(600, 4))]), y)


def quantiles() -> Any:
    """Return three shells of a six-dimensional normal distribution."""
    from sklearn.datasets import make_gaussian_quantiles

    return _frame(*make_gaussian_quantiles(n_samples=1000, n_features=6, n_classes=3, random_state=SEED))


def hastie() -> Any:
    """Return a ball in ten dimensions, and the points around it."""
    from sklearn.datasets import make_hastie_10_2

    X, y = make_hastie_10_2(1500, random_state=SEED)
    return _frame(X, (y > 0).astype(int))


def exclusive_or() -> Any:
    """Return four quadrants, where opposite ones have the same class, with four uninformative columns."""
    X = np.random.default_rng(SEED).normal(size=(800, 6))
    return _frame(X, ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int))


def waveform() -> Any:
    """Return the waves of Breiman, Friedman, Olshen and Stone (1984): mixtures of two of three bumps."""
    random, places = np.random.default_rng(SEED), np.arange(21)
    bumps = np.stack([np.maximum(6 - abs(places - peak), 0) for peak in (10, 6, 14)])
    y = random.integers(3, size=1000)
    first, second = np.array([(0, 1), (0, 2), (1, 2)])[y].T
    share = random.uniform(size=(1000, 1))
    X = share * bumps[first] + (1 - share) * bumps[second] + random.normal(size=(1000, 21))
    return _frame(X, y)


def five_classes() -> Any:
    """Return five clouds of points, in eight of fifteen dimensions."""
    return _clouds(1000, 15, n_informative=8, n_redundant=2, n_classes=5, n_clusters_per_class=1)


def imbalanced() -> Any:
    """Return one frequent and two rare classes."""
    return _clouds(1200, 20, n_informative=6, n_redundant=4, n_classes=3, weights=[0.8, 0.15, 0.05])


def wide() -> Any:
    """Return half as many columns as rows, few of them informative."""
    return _clouds(400, 200, n_informative=12, n_redundant=20, class_sep=1.2)


def _towns(n_rows: int, n_towns: int, n_classes: int, *, n_columns: int = 1) -> Any:
    """Return clouds of points in towns. In each town, some of the rows are of the classes that live there.

    A few towns have many rows, and many towns have few.
    """
    from sklearn.datasets import make_classification

    random = np.random.default_rng([SEED, n_rows, n_towns, n_classes])
    X, y = make_classification(
        n_rows, 8, n_informative=5, n_redundant=1, n_classes=n_classes, class_sep=0.8, random_state=SEED
    )
    frame = _frame(X, y)
    often = 1 / np.arange(1, n_towns + 1) ** 0.8
    for column in range(n_columns):
        town = random.choice(n_towns, size=n_rows, p=often / often.sum())
        people = random.dirichlet(np.full(n_classes, 0.4), size=n_towns)
        lives = (random.uniform(size=(n_rows, 1)) > people[town].cumsum(axis=1)).sum(axis=1)
        y = np.where(random.uniform(size=n_rows) < 0.45 / n_columns, lives.clip(max=n_classes - 1), y)
        names = random.permutation(n_towns)
        frame.insert(column, f"town{column + 1}", [f"t{name}" for name in names[town]])
    frame["class"] = [str(label) for label in y]
    return frame


def _clouds(n_rows: int, n_features: int, **settings: Any) -> Any:
    from sklearn.datasets import make_classification

    return _frame(*make_classification(n_rows, n_features, random_state=SEED, **settings))


def _frame(X: Any, y: Any, columns: list[str] | None = None) -> Any:
    """Return a frame with the class last, rounded because the last digits depend on the machine."""
    frame = import_pandas().DataFrame(np.round(X, 6))
    frame.columns = columns or [f"x{j + 1}" for j in range(frame.shape[1])]
    frame["class"] = [str(label) for label in y] if columns is None else y
    return frame


_NAMED = (balance_scale, monks1, monks2, monks3, moons, circles, quantiles, hastie, exclusive_or, waveform)
_TOWNS = ((1500, 10, 3), (2000, 30, 2), (3000, 100, 3), (2500, 200, 2), (6000, 300, 3), (4000, 500, 5))

GENERATORS: dict[str, Callable[[], Any]] = {
    **{generator.__name__: generator for generator in (*_NAMED, five_classes, imbalanced, wide)},
    "monks": monks1,
    **{f"towns{sizes[1]}": partial(_towns, *sizes) for sizes in (*_TOWNS, (6000, 1000, 2))},
    "two_towns": partial(_towns, 4000, 100, 3, n_columns=2),
}
