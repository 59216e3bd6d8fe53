"""Kalman Filter-based Heuristic Ensemble: a classifier for tables in which some labels are wrong."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kfhe import audit, export, noise, stats
    from kfhe import plotting as plotting
    from kfhe import review as review
    from kfhe.callbacks import Callback
    from kfhe.classifier import KFHEClassifier
    from kfhe.early_stopping import EarlyStopping
    from kfhe.kalman import KalmanFilter
    from kfhe.remarks import TableWarning
    from kfhe.robust import RobustKFHEClassifier
    from kfhe.saving.loading import load
    from kfhe.saving.model_file import ModelFileError
    from kfhe.state_space import StateSpace
    from kfhe.trace import Iteration, Trace
    from kfhe.tree import CARTClassifier

__all__ = [
    "CARTClassifier",
    "Callback",
    "EarlyStopping",
    "Iteration",
    "KFHEClassifier",
    "KalmanFilter",
    "ModelFileError",
    "RobustKFHEClassifier",
    "StateSpace",
    "TableWarning",
    "Trace",
    "audit",
    "export",
    "load",
    "noise",
    "stats",
]

# Not in __all__, so that `from kfhe import *` needs no extra
_WITH_EXTRAS = ["plotting", "review"]

# Names are loaded when they are first used, so that the command line starts quickly.
_HOMES = {
    "CARTClassifier": "kfhe.tree",
    "Callback": "kfhe.callbacks",
    "EarlyStopping": "kfhe.early_stopping",
    "Iteration": "kfhe.trace",
    "KFHEClassifier": "kfhe.classifier",
    "KalmanFilter": "kfhe.kalman",
    "ModelFileError": "kfhe.saving.model_file",
    "RobustKFHEClassifier": "kfhe.robust",
    "StateSpace": "kfhe.state_space",
    "TableWarning": "kfhe.remarks",
    "Trace": "kfhe.trace",
    "load": "kfhe.saving.loading",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__ or name in _WITH_EXTRAS:
        return import_module(f"kfhe.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("kfhe")
    raise AttributeError(f"module 'kfhe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_WITH_EXTRAS, "__version__"]
