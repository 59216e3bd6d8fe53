"""Plots of models, audits and comparisons, as displays in the style of scikit-learn; they need matplotlib.

Charts on web pages are elsewhere: those of studies in `kfhe.study.report`, those of reviews in `kfhe.review`.
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
