"""The audit after decisions: rows that were judged are certain, and their like are judged anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.audit import LabelAudit, label_quality
from kfhe.audit.chances import Chances, chances
from kfhe.audit.html import worst_rows
from kfhe.review.cleaning import Cleaned, apply_decisions
from kfhe.review.decisions import Decision

WEIGHT = 3  # a label that a person has judged counts as so many others


def audit_again(
    X: Any, y: Any, decisions: Sequence[Decision], *, first_row: int = 0, **settings: Any
) -> LabelAudit:
    """Find the labels that look wrong, knowing what people found of some of them.

    The trees learn the labels as they were decided, and each of these counts as three others; dropped rows
    are not learnt from. So rows like those that were judged are seen otherwise now. Labels are ranked by the
    chance that they are wrong, which `wrong_chances` learns from the decisions, too; those that were decided
    about come last, and are no suspects.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
        The rows.
    y : array-like of shape (n,)
        Their labels, as they were before the decisions.
    decisions : sequence of Decision
        What was decided, such as `read_decisions` returns it.
    first_row : int, default=0
        Number of the first row in the decisions: see `apply_decisions`.
    **settings
        Parameters of `kfhe.audit.label_quality`.

    Returns
    -------
    LabelAudit
        For all rows, in their order. `given` are the labels before the decisions; the estimated share is
        that of `wrong_chances`, and so many of the most likely labels are suspects, of those that the votes
        disagree with.
    """
    cleaned = apply_decisions(decisions, X, y, first_row=first_row)
    return audit_cleaned(X, y, cleaned, **settings)[0]


def audit_cleaned(X: Any, y: Any, cleaned: Cleaned, **settings: Any) -> tuple[LabelAudit, Chances]:
    """Do what `audit_again` does, with decisions that are applied already; and tell the chances."""
    given = np.asarray(y)
    weights = np.where(cleaned.judged, WEIGHT, 1.0) * cleaned.kept
    learnt = label_quality(X, cleaned.labels, sample_weight=weights, **settings)
    audit = _of_given_labels(learnt, given)
    found = wrong_chances(audit, cleaned.judged, cleaned.labels != given)
    open_to_doubt = cleaned.kept & ~cleaned.judged
    order = np.lexsort((audit.quality, -found.wrong, ~open_to_doubt))
    rank = np.empty(len(given), dtype=np.int64)
    rank[order] = np.arange(1, len(given) + 1)
    expected = round(found.share * len(given)) - found.n_wrong
    disputed = order[(open_to_doubt & (audit.suggested != given))[order]]
    suspects = np.zeros(len(given), dtype=bool)
    suspects[disputed[: max(expected, 0)]] = True
    again = replace(
        audit,
        rank=rank,
        suspects=suspects,
        estimated_share=found.share,
        share_range=(found.low, found.high),
        class_shares=found.of_class,
        worst=worst_rows(X, rank),
    )
    return again, found


def wrong_chances(audit: LabelAudit, judged: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> Chances:
    """Return how likely the labels of an audit are wrong, by what was found of some of them.

    Parameters
    ----------
    audit : LabelAudit
        The audit of all rows.
    judged : ndarray of bool of shape (n,)
        The rows that somebody has judged.
    wrong : ndarray of bool of shape (n,)
        Which of these were found wrong.

    Returns
    -------
    Chances
        The chance for each label, and the share of wrong ones with a range.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.audit import label_quality
    >>> from kfhe.noise import flip_labels
    >>> from kfhe.review import wrong_chances
    >>> X, y = load_iris(return_X_y=True)
    >>> noisy = flip_labels(y, 0.2, random_state=0)
    >>> audit = label_quality(X, noisy, random_state=0, n_estimators=200)
    >>> found = wrong_chances(audit, audit.rank <= 20, noisy != y)  # somebody judged the worst 20
    >>> bool(found.low < 0.2 < found.high)
    True
    """
    labels = np.searchsorted(audit.classes, audit.given).astype(np.int32)
    return chances(audit.votes, labels, judged, wrong)


def _of_given_labels(learnt: LabelAudit, given: NDArray[Any]) -> LabelAudit:
    """Return what trees that learnt decided labels say of the given ones."""
    classes, labels = np.unique(given, return_inverse=True)
    votes = np.zeros((len(given), len(classes)))  # none for a class that no row has any more
    votes[:, np.searchsorted(classes, learnt.classes)] = learnt.votes
    quality = votes[np.arange(len(given)), labels]
    suggested = np.where(np.isnan(quality), labels, votes.argmax(axis=1))
    return replace(
        learnt, given=given, quality=quality, suggested=classes[suggested], classes=classes, votes=votes
    )
