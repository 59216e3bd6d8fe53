"""Labels reviewed by people: the page that they do it on, their decisions, and tables cleaned by them."""

from __future__ import annotations

from kfhe.review.cleaning import Cleaned, apply_decisions, clean_file
from kfhe.review.decisions import Decision, DecisionError, read_decisions, write_decisions

__all__ = [
    "Cleaned",
    "Decision",
    "DecisionError",
    "apply_decisions",
    "clean_file",
    "read_decisions",
    "write_decisions",
]
