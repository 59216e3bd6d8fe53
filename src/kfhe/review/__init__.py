"""Labels reviewed by people: the page that they do it on, their decisions, and tables cleaned by them.

Which labels to look at is found out by `kfhe.audit`; table files are read and written by `kfhe.tables`.
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
