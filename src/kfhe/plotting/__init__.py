"""Pictures of fitted models and of comparisons, as scikit-learn's displays: ``XDisplay.from_estimator(...)``.

They need matplotlib: ``pip install "kfhe[plot]"``. Charts of pages in a browser are not made here: those of
studies are in `kfhe.study.report`, those of reviews in `kfhe.review`.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError('kfhe.plotting needs matplotlib: pip install "kfhe[plot]"') from error

from kfhe.plotting.audit import AuditDisplay
from kfhe.plotting.calibration import CalibrationDisplay
from kfhe.plotting.confusion import ConfusionMatrixDisplay
from kfhe.plotting.display import Display
from kfhe.plotting.importance import FeatureImportanceDisplay
from kfhe.plotting.noise import NoiseDisplay
from kfhe.plotting.ranks import RankDisplay
from kfhe.plotting.regions import DecisionRegionsDisplay
from kfhe.plotting.roc import RocCurveDisplay
from kfhe.plotting.staged import StagedScoreDisplay
from kfhe.plotting.trace import TraceDisplay
from kfhe.plotting.weights import SamplingWeightsDisplay

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
