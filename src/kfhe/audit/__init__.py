"""The audit: which labels look wrong, and which rows are duplicates or outliers."""

from kfhe.audit.findings import RowFindings, row_findings
from kfhe.audit.quality import label_quality
from kfhe.audit.result import LabelAudit

__all__ = ["LabelAudit", "RowFindings", "label_quality", "row_findings"]
