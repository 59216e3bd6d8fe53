"""The audit: labels that look wrong, and rows that are duplicates or outliers.

Decisions about them are in `kfhe.review`; output of the command is in `kfhe.cli`.
"""

from kfhe.audit.findings import RowFindings, row_findings
from kfhe.audit.quality import label_quality
from kfhe.audit.result import LabelAudit

__all__ = ["LabelAudit", "RowFindings", "label_quality", "row_findings"]
