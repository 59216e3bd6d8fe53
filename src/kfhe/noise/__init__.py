"""Noise: labels, inputs or the balance of classes made worse on purpose, to see how well a classifier copes.

How many labels of a table are wrong by themselves, and which, is what `kfhe.audit` looks for.
"""

from kfhe.noise.inputs import disturb_inputs
from kfhe.noise.labels import flip_by_transition, flip_labels, thin_classes
from kfhe.noise.models import NOISE_MODELS, NoiseModel

__all__ = [
    "NOISE_MODELS",
    "NoiseModel",
    "disturb_inputs",
    "flip_by_transition",
    "flip_labels",
    "thin_classes",
]
