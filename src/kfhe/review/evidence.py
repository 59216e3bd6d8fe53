"""Evidence for the given and the suggested label of a row, and similar rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.audit import LabelAudit
from kfhe.audit.quality import tree_settings
from kfhe.audit.votes import drawn_rows
from kfhe.engine.threads import thread_count
from kfhe.forest import LEAF, NODE_DTYPE
from kfhe.rows import TrainingRows
from kfhe.tables.binned import categorical_columns
from kfhe.tables.columns import Columns, open_columns
from kfhe.validation import readable_table

Floats = NDArray[np.float64]

N_TREES = 100  # more would hardly change the most important columns
POOL = 500  # reliable rows of a class that are compared
SIMILAR = 3  # number of similar rows per class
QUANTILES = (0.25, 0.5, 0.75)
USUAL_CATEGORIES = 3


@dataclass(frozen=True)
class Evidence:
    """Evidence on some rows.

    Attributes
    ----------
    weights : ndarray of shape (n_rows, n_features)
        By how much the splits on each column moved the trees' votes from the given to the suggested label;
        negative: towards the given one.
    similar : list of (list of int, list of int)
        For each row, the most similar rows with reliable labels of the given, and of the suggested class.
    usual : list of (list or None)
        For each column and class what is usual there: quartiles of numbers, or of dates as text; or
        categories, or 0 and 1, with their shares, the most frequent first. None for a column that trees don't
        look at.
    """

    weights: Floats
    similar: list[tuple[list[int], list[int]]]
    usual: list[list[Any] | None]


def gather(
    X: Any,
    labels: NDArray[Any],
    audit: LabelAudit,
    rows: NDArray[np.intp],
    sure: NDArray[np.bool_],
    *,
    categorical_features: Any = "from_dtype",
    seed: int = 0,
    n_jobs: int | None = None,
) -> Evidence:
    """Return the evidence on some rows, from trees that have not seen them.

    Parameters
    ----------
    X : array or data frame of shape (n, n_features)
        All rows.
    labels : ndarray of shape (n,)
        The labels for training, after decisions.
    audit : LabelAudit
        The audit of all rows.
    rows : ndarray of int
        Positions of the rows.
    sure : ndarray of bool of shape (n,)
        The rows with reliable labels.
    categorical_features, seed, n_jobs
        As for `label_quality`.
    """
    X = readable_table(X, "review", sparse=True)
    classes = audit.classes
    learnt = np.searchsorted(classes, labels).astype(np.int32)
    settings = tree_settings(categorical_features)
    n_threads = thread_count(n_jobs)
    uniform = np.full(len(learnt), 1 / len(learnt))
    training = TrainingRows(X, learnt, classes, uniform, seed, n_threads, groups=audit.groups)
    table = training.table(settings)
    grower = training.grower(settings, table)
    given, suggested = (np.searchsorted(classes, names[rows]) for names in (audit.given, audit.suggested))
    pools = _pools(classes, learnt, audit.quality, sure)
    pooled = np.concatenate(pools)
    weights = np.zeros((len(rows), len(table.n_bins)))
    leaves = np.empty((N_TREES, len(rows)), dtype=np.int32)
    leaves_of_pool = np.empty((N_TREES, len(pooled)), dtype=np.int32)
    for t in range(N_TREES):
        counts = drawn_rows(training, t)
        tree = grower.grow(training.without_copies(counts), True, t)
        unseen = counts[rows] == 0
        leaves[t] = np.where(unseen, tree.leaves[rows], -1)  # trees that have seen the row are not used
        leaves_of_pool[t] = tree.leaves[pooled]
        _add_looks(weights, tree, leaves[t], given, suggested)
    columns = open_columns(X)
    looks = np.zeros((len(rows), columns.n_columns))
    for feature, column in enumerate(table.schema.feature_columns):
        looks[:, column] += weights[:, feature]  # a column may have several features
    return Evidence(
        looks / np.maximum((leaves >= 0).sum(axis=0), 1)[:, np.newaxis],
        _similar(leaves, leaves_of_pool, pools, rows, given, suggested),
        _usual(columns, learnt, len(classes), sure, categorical_features, table.schema.left_out),
    )


def _add_looks(
    weights: Floats,
    tree: Any,
    leaves: NDArray[np.int32],
    given: NDArray[np.intp],
    suggested: NDArray[np.intp],
) -> None:
    """Walk from each row's leaf up to the root; each split moved the votes, and is credited to its column."""
    nodes, leaf_weights = tree.nodes.view(NODE_DTYPE), tree.leaf_weights.reshape(-1, tree.n_classes)
    is_leaf = nodes["kind"] == LEAF
    inner = np.flatnonzero(~is_leaf)
    parent = np.zeros(len(nodes), dtype=np.intp)
    parent[nodes["left"][inner]] = parent[nodes["left"][inner] + 1] = inner
    home = np.empty(is_leaf.sum(), dtype=np.intp)  # the node of each leaf
    home[nodes["left"][is_leaf]] = np.flatnonzero(is_leaf)
    totals = np.zeros((len(nodes), tree.n_classes))
    totals[home] = leaf_weights
    for level in reversed(_levels(nodes["left"], is_leaf)):
        left = nodes["left"][level]
        totals[level] = totals[left] + totals[left + 1]
    shares = totals / totals.sum(axis=1, keepdims=True)
    here = np.flatnonzero(leaves >= 0)
    place = home[leaves[here]]
    while len(here := here[place > 0]):
        place = place[place > 0]
        above = parent[place]
        for_suggested, for_given = (
            shares[place, names[here]] - shares[above, names[here]] for names in (suggested, given)
        )
        weights[here, nodes["feature"][above]] += for_suggested - for_given
        place = above


def _levels(left: NDArray[np.int32], is_leaf: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Return the inner nodes of a tree, level by level, root first."""
    levels = []
    level = np.array([0])
    while len(level := level[~is_leaf[level]]):
        levels.append(level)
        level = np.concatenate([left[level], left[level] + 1])
    return levels


def _pools(
    classes: NDArray[Any], learnt: NDArray[np.int32], quality: Floats, sure: NDArray[np.bool_]
) -> list[NDArray[np.intp]]:
    """Return some rows with reliable labels for each class, the most certain first."""
    order = np.argsort(-np.nan_to_num(quality), kind="stable")
    order = order[sure[order]]
    return [order[learnt[order] == position][:POOL] for position in range(len(classes))]


def _similar(
    leaves: NDArray[np.int32],
    leaves_of_pool: NDArray[np.int32],
    pools: list[NDArray[np.intp]],
    rows: NDArray[np.intp],
    given: NDArray[np.intp],
    suggested: NDArray[np.intp],
) -> list[tuple[list[int], list[int]]]:
    """Return the rows of the pools that most often share a leaf with each row."""
    found: list[tuple[list[int], list[int]]] = [([], []) for _ in rows]
    start = 0
    for position, pool in enumerate(pools):
        theirs = leaves_of_pool[:, start : start + len(pool)]
        start += len(pool)
        for side, names in enumerate((given, suggested)):
            mine = np.flatnonzero(names == position)
            together = np.zeros((len(mine), len(pool)), dtype=np.int16)
            for t in range(N_TREES):
                together += leaves[t, mine][:, np.newaxis] == theirs[t]
            together[rows[mine][:, np.newaxis] == pool] = -1  # a row is not similar to itself
            nearest = np.argsort(-together, axis=1, kind="stable")[:, :SIMILAR]
            for i, best in zip(mine.tolist(), nearest, strict=True):
                found[i][side].extend(pool[best].tolist())
    return found


def _usual(
    columns: Columns,
    learnt: NDArray[np.int32],
    n_classes: int,
    sure: NDArray[np.bool_],
    categorical_features: Any,
    left_out: Collection[int],
) -> list[list[Any] | None]:
    """Return the usual values in each column for each class, among rows with reliable labels."""
    categorical = categorical_columns(columns, categorical_features)
    members = [np.flatnonzero(sure & (learnt == position)) for position in range(n_classes)]
    usual: list[list[Any] | None] = []
    for j in range(columns.n_columns):
        if j in left_out:
            usual.append(None)
        elif categorical[j]:
            codes, values = columns.factorize(j)
            usual.append([_usual_categories(np.asarray(codes)[some], values) for some in members])
        elif (dates := columns.dates(j)) is not None:
            usual.append([_usual_days(dates[some]) for some in members])
        elif np.isin((numbers := columns.numbers(j))[~np.isnan(numbers)], (0, 1)).all():
            codes = np.nan_to_num(numbers, nan=-1).astype(np.intp)
            usual.append([_usual_categories(codes[some], [0, 1]) for some in members])
        else:
            usual.append([_quartiles(numbers[some]) for some in members])
    return usual


def _usual_days(dates: NDArray[np.datetime64]) -> list[str]:
    known = np.sort(dates[~np.isnat(dates)])
    return [str(known[int(place * (len(known) - 1))].astype("M8[D]")) for place in QUANTILES if len(known)]


def _quartiles(numbers: Floats) -> list[float] | None:
    numbers = numbers[~np.isnan(numbers)]
    return np.quantile(numbers, QUANTILES).tolist() if len(numbers) else None


def _usual_categories(codes: NDArray[Any], values: list[Any]) -> list[list[Any]]:
    known = codes[codes >= 0]
    counts = np.bincount(known, minlength=len(values))
    top = np.argsort(-counts, kind="stable")[:USUAL_CATEGORIES]
    return [[str(values[code]), round(counts[code] / len(codes), 3)] for code in top if counts[code]]
