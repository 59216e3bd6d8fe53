"""Noise: labels, inputs or the balance of classes made worse on purpose, to see how well a classifier copes.

Which labels of a table are wrong by themselves is what `kfhe.audit` looks for; here is only how many may be.
"""

from kfhe.noise.imbalance import thin_classes
from kfhe.noise.inputs import disturb_inputs
from kfhe.noise.labels import flip_by_transition, flip_labels
from kfhe.noise.models import NOISE_MODELS, NoiseModel
from kfhe.noise.rate import estimated_rate, estimated_rate_range

__all__ = [
    "NOISE_MODELS",
    "NoiseModel",
    "disturb_inputs",
    "estimated_rate",
    "estimated_rate_range",
    "flip_by_transition",
    "flip_labels",
    "thin_classes",
]
