"""The audit: which labels look wrong, and which rows are duplicates or outliers.

What people decide about them is in `kfhe.review`; what the command prints is in `kfhe.cli`.
"""

from kfhe.audit.findings import RowFindings, row_findings
from kfhe.audit.quality import label_quality
from kfhe.audit.result import LabelAudit

__all__ = ["LabelAudit", "RowFindings", "label_quality", "row_findings"]
