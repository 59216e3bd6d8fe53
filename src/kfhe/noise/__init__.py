"""Simulated noise in labels, inputs and the balance of classes, and the noise models of studies by name.

Real noise is estimated by `kfhe.audit` and by the robust classifier.
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
