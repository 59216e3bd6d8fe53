"""Versions of the packages that figures depend on."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from kfhe.study import algorithms

if TYPE_CHECKING:
    from kfhe.study.plan import Plan


def versions_for(plan: Plan) -> dict[str, str]:
    """Return the versions of what a plan's results depend on."""
    names = ["kfhe", "numpy", "pandas", "scikit-learn", "scipy", *algorithms.packages(plan)]
    found = {name: known or "unknown" for name, known in versions_of(names).items() if name != "sklearn"}
    return {"python": platform.python_version(), **found}


def versions_of(packages: Iterable[str]) -> dict[str, str | None]:
    """Return the versions of packages, None for those that are not installed.

    Examples
    --------
    >>> from kfhe.study.versions import versions_of
    >>> versions_of(["nothing_like_it"])
    {'nothing_like_it': None}
    """
    return {package: _version(package) for package in packages}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # a module whose package has another name, or none
        try:
            return str(getattr(import_module(package), "__version__", "unknown"))
        except ImportError:
            return None
