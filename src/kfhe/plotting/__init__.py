"""Plots of models, audits and comparisons, as displays like those of scikit-learn; they need matplotlib.

Charts on web pages are in `kfhe.study.report` and `kfhe.review`.
"""

from kfhe.display.text import needed

with needed("kfhe.plotting needs matplotlib", "plot"):
    import matplotlib  # noqa: F401

from kfhe.plotting.audit import AuditDisplay
from kfhe.plotting.base import Display
from kfhe.plotting.comparisons import NoiseDisplay, RankDisplay
from kfhe.plotting.features import DecisionRegionsDisplay, FeatureImportanceDisplay
from kfhe.plotting.predictions import CalibrationDisplay, ConfusionMatrixDisplay, RocCurveDisplay
from kfhe.plotting.training import SamplingWeightsDisplay, StagedScoreDisplay, TraceDisplay

__all__ = [
    "AuditDisplay",
    "CalibrationDisplay",
    "ConfusionMatrixDisplay",
    "DecisionRegionsDisplay",
    "Display",
    "FeatureImportanceDisplay",
    "NoiseDisplay",
    "RankDisplay",
    "RocCurveDisplay",
    "SamplingWeightsDisplay",
    "StagedScoreDisplay",
    "TraceDisplay",
]
