"""Pictures of fitted models and of comparisons, as scikit-learn's displays: ``XDisplay.from_estimator(...)``.

They need matplotlib: ``pip install "kfhe[plot]"``. Charts of pages in a browser are not made here: those of
studies are in `kfhe.study.report`, those of reviews in `kfhe.review`.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError('kfhe.plotting needs matplotlib: pip install "kfhe[plot]"') from error

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
