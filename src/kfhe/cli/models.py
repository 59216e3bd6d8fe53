"""Model files as arguments: a path, or ``-`` for standard input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kfhe.files import standard_input
from kfhe.tables.errors import TableFileError

if TYPE_CHECKING:
    from kfhe import KFHEClassifier
    from kfhe.saving.model_file import File, SavedForest

T = TypeVar("T")


def read_model(path: Path) -> KFHEClassifier:
    """Load a whole model."""
    from kfhe.saving.loading import load

    return _read(path, load)


def read_forest(path: Path) -> SavedForest:
    """Load only what prediction needs, which is faster."""
    from kfhe.saving.model_file import load_forest

    return _read(path, load_forest)


def _read(path: Path, load: Callable[[File], T]) -> T:
    if str(path) == "-":
        return load(standard_input())
    if path.is_dir():
        raise TableFileError(f"{path}: is a folder; give a model file, as kfhe fit writes it")
    try:
        return load(path)
    except FileNotFoundError:
        raise TableFileError(f"{path}: there is no such file; kfhe fit writes model files") from None
