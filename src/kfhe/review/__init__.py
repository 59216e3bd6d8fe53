"""Reviews of labels: the page, decisions, and corrected tables.

`kfhe.audit` finds the labels to review; `kfhe.tables` reads and writes table files.
"""

from __future__ import annotations

from kfhe.audit.chances import Chances
from kfhe.review.cells import row_digests
from kfhe.review.cleaning import Cleaned, apply_decisions, clean_file
from kfhe.review.decisions import Decision, DecisionError, read_decisions, write_decisions
from kfhe.review.page import write_page
from kfhe.review.reaudit import audit_again, wrong_chances

__all__ = [
    "Chances",
    "Cleaned",
    "Decision",
    "DecisionError",
    "apply_decisions",
    "audit_again",
    "clean_file",
    "read_decisions",
    "row_digests",
    "write_decisions",
    "write_page",
    "wrong_chances",
]
