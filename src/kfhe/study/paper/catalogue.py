"""The catalogue: the datasets of the paper, and those of scikit-learn and the generators."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Facts:
    """Facts about a dataset in the catalogue.

    Attributes
    ----------
    name : str
        The paper's name.
    citation : str
        Source of the data.
    rows, features : int or None
        Size; None for a dataset that could not be found.
    classes : dict of str to int
        Number of rows of each class.
    categorical : tuple of str
        Columns that are always categorical.
    file, sha256 : str or None
        Name and checksum of the csv file from which the facts were taken.
    openml : int or None
        Its identifier at OpenML.
    note : str or None
        What to know before comparing results.
    paper : dict or None
        Size that the paper prints (``rows``, ``columns``, ``classes``); None if it is not in the paper.
    comparable : bool
        Whether the data are those of the paper, as far as is known.
    """

    name: str
    citation: str
    rows: int | None = None
    features: int | None = None
    classes: dict[str, int] = field(default_factory=dict)
    categorical: tuple[str, ...] = ()
    file: str | None = None
    sha256: str | None = None
    openml: int | None = None
    note: str | None = None
    paper: dict[str, int] | None = None
    comparable: bool = True


@cache
def catalogue() -> dict[str, Facts]:
    """Return the facts on each dataset by name, the paper's 30 first and in its order.

    Examples
    --------
    >>> from kfhe.study.paper.catalogue import catalogue
    >>> catalogue()["iris"].classes
    {'Iris-setosa': 50, 'Iris-versicolor': 50, 'Iris-virginica': 50}
    """
    text = files("kfhe.study.paper").joinpath("catalogue.json").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = json.loads(text)
    return {
        name: Facts(name, **{**facts, "categorical": tuple(facts.get("categorical", ()))})
        for name, facts in entries.items()
    }


def paper_names() -> list[str]:
    """Return the names of the paper's 30 datasets, in its order."""
    return [name for name, facts in catalogue().items() if facts.paper is not None]
