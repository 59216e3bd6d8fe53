"""The label audit on Dask: the same one, of which only the rows are elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any
from warnings import warn

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import validate_params

import kfhe
from kfhe.audit.quality import TREE_CONSTRAINTS, check_several, stops_early, told_of_trees, tree_settings
from kfhe.audit.result import LabelAudit
from kfhe.audit.votes import BLOCK, Tally, out_of_bag_votes, whole_weights
from kfhe.dask.reading import Reader
from kfhe.dask.rows import SpreadGrower, SpreadRows
from kfhe.dask.spread import Spread
from kfhe.dask.workers import ClusterLostError
from kfhe.engine.trees.leaf_votes import leaf_shares
from kfhe.remarks import TableWarning, remarks_on

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]


@validate_params(TREE_CONSTRAINTS, prefer_skip_nested_validation=True)
def label_quality(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    n_estimators: int = 1000,
    early_stopping: bool | str = "auto",
    categorical_features: Any = "from_dtype",
    random_state: Any = None,
    verbose: int = 0,
) -> LabelAudit:
    """Find the labels that look wrong, on the workers of the current client.

    This is `kfhe.audit.label_quality` on rows that are spread over a Dask cluster: votes, ranks and suspects
    are equal, bit for bit, to those that one machine finds for the same rows.

    Parameters
    ----------
    X : Dask data frame or array of shape (n, n_features)
        The rows.
    y : Dask series or array of shape (n,)
        Their labels, of two classes at least, partitioned as X is.
    sample_weight : Dask series or array of shape (n,), default=None
        How much each row counts when others are judged, partitioned as X is. A row of weight 0 is judged,
        and has no say.
    groups : Dask series or array of shape (n,), default=None
        Which rows belong together, partitioned as X is: each is judged by trees that have seen none of them.
        None: copies of rows are looked for, and kept together.
    n_estimators : int, default=1000
        Number of trees at most.
    early_stopping : bool or "auto", default="auto"
        Whether to stop before `n_estimators` when more trees would hardly change the ranks.
        "auto": in tables of 10,000 rows or more.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Further categorical columns, as numbers, names or a mask. Columns of strings or categories always are,
        but with None, which takes no column for categorical.
    random_state : int, Generator, RandomState or None, default=None
        Seed.
    verbose : int, default=0
        1 shows a bar on standard error, with the time that is left at most.

    Returns
    -------
    LabelAudit
        The ordinary result, which needs no Dask: arrays of this machine, in the order of the rows. Its
        `findings` and `worst` are None, as they need the rows themselves; so is its `index`: `to_frame`
        counts rows from 0.

    Raises
    ------
    ClusterLostError
        The scheduler or too many workers were lost.

    Notes
    -----
    Rows stay on the workers. After every 25 trees the votes are collected: a number for each row and class,
    and three more for each row, which have to fit into the memory of this machine.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.dask import label_quality
    >>> from kfhe.noise import flip_labels
    >>> X, y = load_iris(return_X_y=True)
    >>> noisy = flip_labels(y, 0.1, random_state=0)
    >>> X, noisy = (da.from_array(each, chunks=50) for each in (X, noisy))
    >>> with Client(processes=False, dashboard_address=":0"):
    ...     label_quality(X, noisy, n_estimators=20, random_state=0)
    LabelAudit of 150 labels: about 11.4% look wrong, 17 suspects; the votes disagree with 23
    """
    # Trees of many leaves are no table that should have been read by workers
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        try:
            # Rows are read as a classifier has them read
            reader = Reader(kfhe.KFHEClassifier(random_state=random_state), X, y, sample_weight, groups)
            rows, weights = reader.rows_and_weights()
            check_several(rows.classes)
            settings = tree_settings(categorical_features)
            if groups is None:
                rows = rows.with_copies()  # type: ignore[assignment]
            table = weighted(rows, weights).table(settings)
            remarks = remarks_on(rows, table)
            stops = stops_early(early_stopping, rows.n_rows)
            with told_of_trees(n_estimators, verbose) as advance:
                voters = SpreadOutOfBag(rows, rows.grower(settings, table), weights, advance)
                votes, n_trees = out_of_bag_votes(voters, n_estimators, early_stopping=stops)
            labels = np.concatenate(rows.workers.parts(rows.labels))  # type: ignore[arg-type]
        except ClusterLostError as error:
            raise ClusterLostError(
                f"the cluster was lost: {error}. Nothing is kept of the audit; make another client, and "
                "call label_quality again"
            ) from error
    for remark in remarks:
        warn(remark, TableWarning, stacklevel=3)
    audit = LabelAudit.from_votes(rows.classes, labels, votes)
    return replace(audit, n_estimators=n_trees, groups=rows.together, remarks=tuple(remarks))


def weighted(rows: SpreadRows, weights: Spread | None) -> SpreadRows:
    """Return the rows by weight, as categories are encoded: a row of weight 0 has no say."""
    return rows if weights is None else replace(rows, base=rows.normalised(weights))  # type: ignore[arg-type]


class SpreadOutOfBag:
    """Trees that vote on rows of a cluster, as `kfhe.audit.votes.OutOfBag` has them do on one machine.

    Parameters
    ----------
    rows : SpreadRows
        All rows, as if they weighed the same.
    grower : SpreadGrower
        Grows the trees.
    weights : Spread or None
        What each row weighs in the trees.
    advance : callable
        Is told of each tree.
    """

    def __init__(
        self, rows: SpreadRows, grower: SpreadGrower, weights: Spread | None, advance: Callable[[], None]
    ) -> None:
        self._rows, self._grower, self._weights, self._advance = rows, grower, weights, advance
        self._draws = rows.draws()

    def tally(self, trees: range) -> Tally:
        """Grow the trees of some numbers, and return their votes."""
        # A lost part is made again of all trees since votes were collected, and the scheduler keeps these
        first, *others = (trees[start : start + BLOCK] for start in range(0, len(trees), BLOCK))
        tally = self._collected(first)
        for some in others:
            tally.include(self._collected(some))
        return tally

    def _collected(self, trees: range) -> Tally:
        """Grow a few trees, and collect their votes."""
        rows = self._rows
        tallies = rows.map(Tally, rows.labels, len(rows.classes))
        for tree in trees:
            tallies = self._added(tallies, tree)
            rows.grown.clear()  # they are kept for fits that go on
            self._advance()
        return Tally.joined(rows.workers.parts(tallies))

    def _added(self, tallies: Spread, tree: int) -> Spread:
        """Return tallies with the votes of one tree more."""
        rows = self._rows
        drawn = self._draws.draw(rows.base, tree, 0, redraws=0)
        if self._weights is None:
            grown = self._grower.grow(rows.without_copies(drawn), True, tree)
        else:
            weighed = rows.map(np.multiply, rows.without_copies(drawn), self._weights)
            total = rows.exact_sum(weighed)
            if not total:  # a tree that has seen nothing has nothing to say
                return tallies
            grown = self._grower.grow(rows.map(whole_weights, weighed, total), False, tree)
        shares = rows.workers.run(leaf_shares, grown.leaf_weights)
        added = rows.map(with_votes, tallies, shares, grown.leaves, drawn, tree)
        return Spread(rows.workers.pieces(added))  # started now: else samples and leaves would pile up


# ---------------------------------------------------------------- what workers do


def with_votes(tally: Tally, shares: Floats, leaves: Labels, drawn: Labels, tree: int) -> Tally:
    """Return a tally with the votes of one tree more."""
    after = deepcopy(tally)
    after.add(shares[leaves], drawn, tree)
    return after
