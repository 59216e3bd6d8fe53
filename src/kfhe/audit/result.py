"""The result of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.audit.chances import chances
from kfhe.audit.findings import RowFindings
from kfhe.audit.html import WorstRows, audit_html
from kfhe.display.text import counted
from kfhe.groups import Groups
from kfhe.tables.columns import is_bare, is_pandas, is_sparse, some_rows
from kfhe.validation import SPARSE_FORMATS, check_same_length, encode_labels

Floats = NDArray[np.float64]

SUSPECTS = ("drop", "relabel")  # options of `LabelAudit.cleaned`


@dataclass(frozen=True, repr=False)
class LabelAudit:
    """The result of an audit: arrays with one value per row, in the order of the rows.

    Attributes
    ----------
    given : ndarray of shape (n,)
        The given labels.
    quality : ndarray of shape (n,)
        Share of the votes for the given label, 0 to 1; low is suspicious. NaN if a row got no votes, which
        only happens with very few trees.
    suggested : ndarray of shape (n,)
        The class with the most votes, which is usually the given one.
    rank : ndarray of shape (n,)
        1 for the most suspicious label, n for the least. Ties are in the order of the rows.
    suspects : ndarray of bool of shape (n,)
        The labels to look at: as many of the most suspicious ones as are estimated to be wrong, if the votes
        disagree with them.
    estimated_share : float
        Estimated share of wrong labels, 0 to 1, assuming that mistakes are random. Votes can't detect
        mistakes that follow a pattern; `kfhe.review.wrong_chances` takes reviewed labels into account.
    share_range : tuple of (float, float)
        A 95 % range for this share, under the same assumption.
    class_shares : ndarray of shape (n_classes,)
        Estimated share of wrong labels among those of each class.
    classes : ndarray of shape (n_classes,)
        The classes.
    votes : ndarray of shape (n, n_classes)
        Share of the votes that each class got; NaN if a row got none.
    index : pandas.Index or None
        The index of a pandas table, for `to_frame`.
    n_estimators : int or None
        Number of trees; None for other votes.
    findings : RowFindings or None
        Duplicates, near-duplicates with another label, and outliers. None for a sparse matrix, for rows on a
        cluster, or without X.
    worst : WorstRows or None
        The most suspicious rows, for notebooks.
    groups : Groups or None
        The given groups, or the copies that were found.
    remarks : tuple of str
        Possible mistakes in the table, as in `RobustKFHEClassifier`.
    """

    given: NDArray[Any]
    quality: Floats
    suggested: NDArray[Any]
    rank: NDArray[np.int64]
    suspects: NDArray[np.bool_]
    estimated_share: float
    share_range: tuple[float, float]
    class_shares: Floats
    classes: NDArray[Any]
    votes: Floats
    index: Any = None
    n_estimators: int | None = None
    findings: RowFindings | None = None
    worst: WorstRows | None = None
    groups: Groups | None = None
    remarks: tuple[str, ...] = ()

    @classmethod
    def from_votes(
        cls, classes: NDArray[Any], labels: NDArray[np.int32], votes: Floats, index: Any = None
    ) -> LabelAudit:
        """Compare labels, as positions of classes, with votes; rows without votes are no suspects."""
        n = len(labels)
        quality = votes[np.arange(n), labels]
        judged = ~np.isnan(quality)
        suggested = np.where(judged, votes.argmax(axis=1), labels)
        order = np.argsort(quality, kind="stable")  # NaN last
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.arange(1, n + 1)
        found = chances(votes, labels)
        suspects = np.zeros(n, dtype=bool)
        disputed = order[suggested[order] != labels[order]]
        suspects[disputed[: round(found.share * n)]] = True
        return cls(
            given=classes[labels],
            quality=quality,
            suggested=classes[suggested],
            rank=rank,
            suspects=suspects,
            estimated_share=found.share,
            share_range=(found.low, found.high),
            class_shares=found.of_class,
            classes=classes,
            votes=votes,
            index=index,
        )

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        n_disputed = int((self.suggested != self.given).sum())
        return (
            f"LabelAudit of {counted(len(self), 'label')}: about {self.estimated_share:.1%} look wrong, "
            f"{counted(int(self.suspects.sum()), 'suspect')}; the votes disagree with {n_disputed:,}"
        )

    def _repr_html_(self) -> str:
        return audit_html(self)

    def to_frame(self) -> Any:
        """Return the audit as a pandas DataFrame, the most suspicious label first.

        Its index is that of the table, if that was a pandas one, else the number of the row, from 0.
        """
        columns = ("rank", "given", "suggested", "quality", "suspects")
        frame = self._frame({name: getattr(self, name) for name in columns})
        return frame.rename(columns={"suspects": "suspect"}).sort_values("rank")

    def issues(self) -> Any:
        """Return all findings as a pandas DataFrame: suspects, duplicates, conflicts and outliers.

        It has the rows with at least one finding, the most suspicious label first, and a column for each
        kind: ``suspect``, ``duplicate_of`` and ``conflicts_with`` (rows, named as by `to_frame`; missing if
        there is none), ``outlying`` (the column).
        """
        if self.findings is None:
            raise ValueError(
                "issues() needs the rows, as a dense table on one machine: pass X to kfhe.audit.label_quality"
            )
        found = self._frame({name: getattr(self, name) for name in ("rank", "given", "suggested", "quality")})
        found["suspect"] = self.suspects
        for name in ("duplicate_of", "conflicts_with"):
            rows = getattr(self.findings, name)
            found[name] = [found.index[row] if row >= 0 else None for row in rows.tolist()]
        found["outlying"] = self.findings.outlying
        any_issue = found["suspect"] | found["duplicate_of"].notna() | found["conflicts_with"].notna()
        return found[any_issue | (found["outlying"] != "")].sort_values("rank")

    def weights(self) -> Floats:
        """Return weights for training: 1, except for suspects, which get their quality.

        Returns
        -------
        ndarray of shape (n,)
            For `sample_weight` of a classifier's `fit`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kfhe import RobustKFHEClassifier
        >>> from kfhe.audit import label_quality
        >>> from kfhe.noise import flip_labels
        >>> X, y = load_iris(return_X_y=True)
        >>> noisy = flip_labels(y, 0.1, random_state=0)
        >>> audit = label_quality(X, noisy, random_state=0)
        >>> model = RobustKFHEClassifier(random_state=0).fit(X, noisy, sample_weight=audit.weights())
        """
        return np.where(self.suspects, self.quality, 1.0)

    def cleaned(self, X: Any, y: Any, suspects: str = "drop") -> tuple[Any, Any]:
        """Return the table without its suspects, or with their suggested labels.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            The audited rows.
        y : array-like of shape (n,)
            Their audited labels.
        suspects : {"drop", "relabel"}, default="drop"
            "drop": remove the suspects. "relabel": give them the class with the most votes.

        Returns
        -------
        X, y
            New ones, in the same containers; for "relabel", an array unless y is a series.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kfhe.audit import label_quality
        >>> from kfhe.noise import flip_labels
        >>> X, y = load_iris(return_X_y=True)
        >>> noisy = flip_labels(y, 0.1, random_state=0)
        >>> audit = label_quality(X, noisy, random_state=0)
        >>> X_clean, y_clean = audit.cleaned(X, noisy)
        >>> X_clean.shape
        (134, 4)
        """
        if suspects not in SUSPECTS:
            raise ValueError(f"suspects must be 'drop' or 'relabel', got {suspects!r}")
        classes, labels = encode_labels(y, "cleaned")
        check_same_length(X, labels)
        if len(labels) != len(self) or not np.array_equal(classes[labels], self.given):
            raise ValueError("y is not what was audited: cleaned() takes the same rows, in the same order")
        if suspects == "drop":
            kept = np.flatnonzero(~self.suspects)
            X = X.tocsr() if is_sparse(X) and X.format not in SPARSE_FORMATS else X  # others can't be indexed
            return some_rows(X, kept), some_rows(y, kept)
        return X, _relabelled(y, np.where(self.suspects, self.suggested, self.given))

    def _frame(self, columns: dict[str, Any]) -> Any:
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("LabelAudit.to_frame() needs pandas: pip install pandas") from error
        index = pd.RangeIndex(len(self)) if self.index is None else self.index
        frame = pd.DataFrame(columns, index=index)
        unnamed = index.nlevels == 1 and index.name is None
        return frame.rename_axis(index="row") if unnamed else frame


def _relabelled(y: Any, labels: NDArray[Any]) -> Any:
    """Return labels in the container of others, if that is a series with a name or an index."""
    if len(getattr(y, "shape", ())) != 1 or is_bare(y):
        return labels
    if is_pandas(y):
        return type(y)(labels, index=y.index, name=y.name).astype(y.dtype)
    if type(y).__module__.split(".")[0] == "polars":
        return type(y)(y.name, labels.tolist(), dtype=y.dtype)
    return labels
