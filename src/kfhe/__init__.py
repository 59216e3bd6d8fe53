"""Kalman Filter-based Heuristic Ensemble: a classifier for labels that can't be trusted."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kfhe import audit, export, noise, stats
    from kfhe.callbacks import Callback
    from kfhe.classifier import KFHEClassifier
    from kfhe.early_stopping import EarlyStopping
    from kfhe.kalman import KalmanFilter
    from kfhe.saving.model_file import ModelFileError, load
    from kfhe.trace import Iteration
    from kfhe.tree import CARTClassifier

__all__ = [
    "CARTClassifier",
    "Callback",
    "EarlyStopping",
    "Iteration",
    "KFHEClassifier",
    "KalmanFilter",
    "ModelFileError",
    "audit",
    "export",
    "load",
    "noise",
    "stats",
]

# Names are loaded when they are first used, so that the command line starts at once.
_HOMES = {
    "CARTClassifier": "kfhe.tree",
    "Callback": "kfhe.callbacks",
    "EarlyStopping": "kfhe.early_stopping",
    "Iteration": "kfhe.trace",
    "KFHEClassifier": "kfhe.classifier",
    "KalmanFilter": "kfhe.kalman",
    "ModelFileError": "kfhe.saving.model_file",
    "load": "kfhe.saving.model_file",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"kfhe.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("kfhe")
    raise AttributeError(f"module 'kfhe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
