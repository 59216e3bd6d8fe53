"""The quality of labels: how much the rest of the data supports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions, validate_params

from kfhe.audit.findings import row_findings
from kfhe.audit.html import worst_rows
from kfhe.audit.result import LabelAudit
from kfhe.audit.votes import OutOfBag, cross_validated_votes, out_of_bag_votes
from kfhe.cuda.rows import placed
from kfhe.display.progress import bar
from kfhe.engine.arrays import exact_sum
from kfhe.engine.threads import thread_count
from kfhe.groups import Groups
from kfhe.remarks import Remark, TableWarning, remarks_on
from kfhe.rows import TrainingRows
from kfhe.tables.binned import BinnedTable
from kfhe.tables.columns import is_pandas, is_sparse
from kfhe.tree_settings import TreeSettings
from kfhe.validation import (
    COMMON_CONSTRAINTS,
    check_groups,
    check_same_length,
    encode_labels,
    readable_table,
    row_weights,
    seed_from,
)

Floats = NDArray[np.float64]

# Leaves of a few rows smooth wrong labels; on the benchmark's datasets they are better than 1 or 10 rows.
LEAF_ROWS = 5
# Smaller tables take only seconds, and are judged by all trees
MANY_ROWS = 10_000


# Constraints of parameters that all audits have
TREE_CONSTRAINTS: dict[str, list[Any]] = {
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "early_stopping": ["boolean", StrOptions({"auto"})],
    "categorical_features": TreeSettings.constraints()["categorical_features"],
    "random_state": COMMON_CONSTRAINTS["random_state"],
    "verbose": ["verbose"],
}


@validate_params(
    {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"]), "array-like"],
        **{name: COMMON_CONSTRAINTS[name] for name in ("n_jobs", "device")},
        **TREE_CONSTRAINTS,
    },
    prefer_skip_nested_validation=True,
)
def label_quality(
    X: Any = None,
    y: Any = None,
    *,
    pred_proba: Any = None,
    estimator: Any = None,
    cv: Any = 5,
    sample_weight: Any = None,
    groups: Any = None,
    n_estimators: int = 1000,
    early_stopping: bool | str = "auto",
    categorical_features: Any = "from_dtype",
    random_state: Any = None,
    n_jobs: int | None = None,
    device: str = "cpu",
    verbose: int = 0,
) -> LabelAudit:
    """Find the labels that look wrong.

    Trees are grown on random samples of the rows. Each row is judged by the trees that have not seen it, so
    no label confirms itself. The quality of a label is its share of their votes.

    Parameters
    ----------
    X : array, data frame or sparse matrix of shape (n, n_features)
        The rows. Text columns and missing values need no preparation. Optional with `pred_proba`.
    y : array-like of shape (n,)
        Their labels, of at least two classes: strings, integers or booleans.
    pred_proba : array-like of shape (n, n_classes), default=None
        Your own votes instead of those of trees: class probabilities, in sorted order of the classes, by a
        classifier that has not seen the rows, such as those of `cross_val_predict` of scikit-learn.
    estimator : classifier, default=None
        Use the votes of this classifier, by cross-validation, instead of those of trees.
    cv : int or splitter, default=5
        Number of folds for `estimator`, or a splitter.
    sample_weight : array-like of shape (n,), default=None
        How much each row counts when others are judged. A row of weight 0 is judged, but does not count.
    groups : array-like of shape (n,), default=None
        Which rows belong together, such as those of one patient or document. A row is only judged by trees,
        or in folds, that have seen none of its group. None: copies of rows are detected and kept together.
    n_estimators : int, default=1000
        Maximum number of trees.
    early_stopping : bool or "auto", default="auto"
        Whether to stop before `n_estimators` when more trees would hardly change the ranks (see Notes).
        "auto": for tables of 10,000 rows or more.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Additional categorical columns: positions, names or a mask. Columns of strings or categories are
        always categorical, except with None, which treats no column as categorical.
    random_state : int, Generator, RandomState or None, default=None
        Seed.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.
    device : {"cpu", "cuda"}, default="cpu"
        Where trees are grown: "cuda" uses an Nvidia GPU and needs `pip install "kfhe[cuda]"`. The result
        does not depend on it.
    verbose : int, default=0
        1 shows a progress bar on standard error.

    Returns
    -------
    LabelAudit
        The quality, the suggested class and the rank of each label, an estimate of the share of wrong
        labels, and which labels to look at.

    Notes
    -----
    Hard rows look like wrong ones, so check the suspects before you change or remove them. Wrong labels that
    follow a pattern in X look right.

    The share of wrong labels is estimated like `noise_rate_` of the robust classifier: votes are calibrated,
    assuming random mistakes, by maximum likelihood. If all rows are hard, the estimate may be too high: if X
    says nothing about y, most labels look wrong. If all mistakes are in one class, it is too low, even 0,
    because the trees learn them. The ranks do not depend on it.

    Early stopping compares the ranks by the odd-numbered trees with those by the even-numbered ones, after
    every 25 trees. Their rank correlation predicts the correlation with the ranks by all trees. It stops when
    that is at least 0.982.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.audit import label_quality
    >>> from kfhe.noise import flip_labels
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> noisy = flip_labels(y, 0.1, random_state=0)
    >>> audit = label_quality(X, noisy, random_state=0)
    >>> audit
    LabelAudit of 150 labels: about 10.7% look wrong, 16 suspects; the votes disagree with 21
    >>> audit.to_frame().head(3).round(3)
         rank  given  suggested  quality  suspect
    row
    137     1      0          2    0.000     True
    43      2      1          0    0.002     True
    78      3      0          1    0.003     True
    >>> int((noisy != y)[audit.suspects].sum())  # of the 15 changed labels
    15
    """
    classes, labels = encode_labels(y, "label_quality")
    if X is None and pred_proba is None:
        raise ValueError("label_quality needs the rows X, or votes on them: pred_proba")
    index = X.index if is_pandas(X) else None
    if X is not None:
        X = readable_table(X, "label_quality", sparse=True)
        check_same_length(X, labels)
    check_several(classes)
    others = {"estimator": estimator, "sample_weight": sample_weight, "groups": groups}
    other = next((name for name, value in others.items() if value is not None), None)
    if pred_proba is not None and other is not None:
        raise ValueError(f"pred_proba are the votes already: {other} would change nothing, leave one out")
    if device != "cpu" and (pred_proba is not None or estimator is not None):
        other = "pred_proba" if estimator is None else "estimator"
        raise ValueError(f"device={device!r} grows native trees: with {other} there are none")
    n_threads, seed = thread_count(n_jobs), seed_from(random_state)
    together = None if groups is None else Groups.of(check_groups(groups, len(labels)))
    weights = None if sample_weight is None else row_weights(sample_weight, None, classes, labels)
    n_trees, remarks = None, list[Remark]()
    if pred_proba is not None:
        votes = _checked_votes(pred_proba, "pred_proba", classes, labels)
    elif estimator is not None:
        votes = cross_validated_votes(
            estimator,
            X,
            classes[labels],
            cv=cv,
            sample_weight=weights,
            seed=seed,
            n_jobs=n_jobs,
            groups=together,
        )
        votes = _checked_votes(votes, f"predict_proba of {type(estimator).__name__}", classes, labels)
    else:
        stops = stops_early(early_stopping, len(labels))
        settings = tree_settings(categorical_features)
        rows = placed(audit_rows(X, labels, classes, seed, n_threads, together), device)
        together, table = rows.together, weighted(rows, weights).table(settings)
        remarks = remarks_on(rows, table)
        with told_of_trees(n_estimators, verbose) as advance:
            voters = _voters(rows, table, settings, weights, min(n_threads, n_estimators), advance)
            votes, n_trees = out_of_bag_votes(voters, n_estimators, early_stopping=stops)
    for remark in remarks:
        warn(remark, TableWarning, stacklevel=3)
    audit = LabelAudit.from_votes(classes, labels, votes, index)
    if X is None:
        return audit
    return replace(
        audit,
        n_estimators=n_trees,
        findings=None if is_sparse(X) else row_findings(X, y, n_threads=n_threads),
        worst=worst_rows(X, audit.rank),
        groups=together,
        remarks=tuple(remarks),
    )


def tree_settings(categorical_features: Any) -> TreeSettings:
    """Return the settings of the trees."""
    return TreeSettings(
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=LEAF_ROWS,
        max_features="log2",
        categorical_features=categorical_features,
        honest_categories=True,
    )


def audit_rows(
    X: Any,
    labels: NDArray[np.int32],
    classes: NDArray[Any],
    seed: int,
    n_threads: int,
    groups: Groups | None,
) -> TrainingRows:
    """Return the rows of an audit, all drawn alike; without given groups, copies are grouped."""
    uniform = np.full(len(labels), 1 / len(labels))
    rows = TrainingRows(X, labels, classes, uniform, seed, n_threads, groups=groups)
    return rows if groups is not None else rows.with_copies()


def weighted(rows: TrainingRows, weights: Floats | None) -> TrainingRows:
    """Return the rows by weight, for encoding categories; rows of weight 0 are ignored there."""
    return rows if weights is None else replace(rows, base=weights / exact_sum(weights))


def check_several(classes: NDArray[Any]) -> None:
    """Raise if there is only one class."""
    if len(classes) < 2:
        raise ValueError(f"y has one class only ({classes.tolist()[0]!r}): an audit needs at least two")


def stops_early(early_stopping: bool | str, n_rows: int) -> bool:
    """Return whether an audit of this many rows may stop early."""
    return n_rows >= MANY_ROWS if early_stopping == "auto" else bool(early_stopping)


@contextmanager
def told_of_trees(n_estimators: int, verbose: int) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each tree; it shows a progress bar, if requested."""
    if not verbose:
        yield lambda: None
        return
    with bar("Audit", n_estimators, transient=True) as update:
        yield lambda: update(advance=1)


def _voters(
    rows: TrainingRows,
    table: BinnedTable,
    settings: TreeSettings,
    weights: Floats | None,
    n_threads: int,
    advance: Callable[[], None],
) -> OutOfBag:
    """Return one grower per thread."""
    if weights is not None and (weights == weights[0]).all():
        weights = None
    growers = [rows.grower(settings, table, n_threads=1) for _ in range(n_threads)]
    return OutOfBag(growers, rows, weights, advance)


def _checked_votes(votes: Any, called: str, classes: NDArray[Any], labels: NDArray[np.int32]) -> Floats:
    """Validate probabilities from elsewhere."""
    names = [*map(str, getattr(votes, "columns", []))]
    if names != [*map(str, classes)] and sorted(names) == sorted(map(str, classes)):
        raise ValueError(
            f"{called} has the columns {names}; accepted is the sorted order: {classes.tolist()}"
        )
    checked: Floats = check_array(votes, dtype=np.float64, input_name=called, estimator="label_quality")
    if checked.shape != (len(labels), len(classes)):
        raise ValueError(
            f"{called} has shape {checked.shape}; accepted is a row for each of the {len(labels)} labels, "
            f"and a column for each of the {len(classes)} classes of y, in sorted order: {classes.tolist()}"
        )
    wrong = np.flatnonzero((checked < 0).any(axis=1) | (np.abs(checked.sum(axis=1) - 1) > 1e-3))
    if len(wrong):
        raise ValueError(
            f"{called} must hold probabilities: at least 0, and 1 in total; row {wrong[0]} is "
            f"{checked[wrong[0]].tolist()}"
        )
    return checked
