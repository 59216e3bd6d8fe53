"""The audit after decisions: reviewed labels are certain, and similar rows are judged again."""

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

WEIGHT = 3  # weight of a reviewed label in training


def audit_again(
    X: Any, y: Any, decisions: Sequence[Decision], *, first_row: int = 0, **settings: Any
) -> LabelAudit:
    """Find the labels that look wrong, given decisions about some of them.

    The trees learn the labels after decisions; reviewed labels have a weight of three, and dropped rows are
    ignored. So rows that are similar to reviewed ones are judged differently. Labels are ranked by the
    probability that they are wrong, which `wrong_chances` updates by the decisions. Reviewed labels come
    last, and are not suspects.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
        The rows.
    y : array-like of shape (n,)
        Their labels before the decisions.
    decisions : sequence of Decision
        The decisions, for example from `read_decisions`.
    first_row : int, default=0
        Number of the first row in the decisions: see `apply_decisions`.
    **settings
        Parameters of `kfhe.audit.label_quality`.

    Returns
    -------
    LabelAudit
        For all rows, in their order. `given` has the labels before the decisions; the estimated share is
        that of `wrong_chances`, and that many labels are suspects, the most likely ones among those that the
        votes disagree with.
    """
    cleaned = apply_decisions(decisions, X, y, first_row=first_row)
    return audit_cleaned(X, y, cleaned, **settings)[0]


def audit_cleaned(X: Any, y: Any, cleaned: Cleaned, **settings: Any) -> tuple[LabelAudit, Chances]:
    """Run `audit_again` with applied decisions; return the chances as well."""
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
    """Return the probability that each label is wrong, given reviewed labels.

    Parameters
    ----------
    audit : LabelAudit
        The audit of all rows.
    judged : ndarray of bool of shape (n,)
        The reviewed rows.
    wrong : ndarray of bool of shape (n,)
        Which of these were found wrong.

    Returns
    -------
    Chances
        The probability for each label, and the share of wrong ones with a range.

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
    >>> found = wrong_chances(audit, audit.rank <= 20, noisy != y)  # the worst 20 were reviewed
    >>> bool(found.low < 0.2 < found.high)
    True
    """
    labels = np.searchsorted(audit.classes, audit.given).astype(np.int32)
    return chances(audit.votes, labels, judged, wrong)


def _of_given_labels(learnt: LabelAudit, given: NDArray[Any]) -> LabelAudit:
    """Return calibrated votes of trees that learnt reviewed labels, for the given labels."""
    classes, labels = np.unique(given, return_inverse=True)
    votes = np.zeros((len(given), len(classes)))  # zero for a class without rows
    votes[:, np.searchsorted(classes, learnt.classes)] = learnt.votes
    quality = votes[np.arange(len(given)), labels]
    suggested = np.where(np.isnan(quality), labels, votes.argmax(axis=1))
    return replace(
        learnt, given=given, quality=quality, suggested=classes[suggested], classes=classes, votes=votes
    )
