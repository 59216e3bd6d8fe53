"""Classifiers and the label audit on a Dask cluster: for more rows than one machine holds."""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError('kfhe.dask needs Dask: pip install "kfhe[dask]"') from error

from kfhe.dask.audit import label_quality
from kfhe.dask.classifiers import KFHEClassifier, RobustKFHEClassifier
from kfhe.dask.workers import ClusterLostError

__all__ = ["ClusterLostError", "KFHEClassifier", "RobustKFHEClassifier", "label_quality"]
