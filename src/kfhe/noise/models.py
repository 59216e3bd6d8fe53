"""The noise models of studies, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kfhe.noise.inputs import disturb_inputs
from kfhe.noise.labels import MOST, flip_labels, thin_classes
from kfhe.tables.columns import some_rows

Disturb = Callable[[Any, Any, float, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class NoiseModel:
    """A model of noise in training rows.

    Attributes
    ----------
    disturb : callable
        Gets rows, labels, the level and a random state; returns noisy rows and labels.
    level : str
        The label of an axis of noise levels.
    done : str
        What follows a percentage in the description of a level.
    most : float
        The highest possible level.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.noise import NOISE_MODELS
    >>> X, y = np.zeros((4, 1)), np.array([0, 1, 2, 2])
    >>> NOISE_MODELS["pairwise"].disturb(X, y, 0.5, 0)[1]
    array([1, 2, 2, 2])
    """

    disturb: Disturb
    level: str = "share of changed labels"
    done: str = "of the training labels changed"
    most: float = 1.0


def _labels(model: str) -> Disturb:
    def disturb(X: Any, y: Any, level: float, random_state: Any) -> tuple[Any, Any]:
        return X, flip_labels(y, level, random_state=random_state, model=model, X=X)

    return disturb


def _done(model: str) -> str:
    return NoiseModel.done if model == "uniform" else f"{NoiseModel.done} ({model})"


def _inputs(X: Any, y: Any, level: float, random_state: Any) -> tuple[Any, Any]:
    return disturb_inputs(X, level, random_state=random_state), y


def _imbalance(X: Any, y: Any, level: float, random_state: Any) -> tuple[Any, Any]:
    kept = thin_classes(y, level, random_state=random_state)
    return some_rows(X, kept), y[kept]


#: The noise models by name.
NOISE_MODELS: dict[str, NoiseModel] = {
    **{name: NoiseModel(_labels(name), done=_done(name), most=most) for name, most in MOST.items()},
    "inputs": NoiseModel(_inputs, "noise in the inputs", "noise in the inputs of the training rows"),
    "imbalance": NoiseModel(_imbalance, "imbalance", "imbalance among the training rows"),
}
