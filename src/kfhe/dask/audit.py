"""The label audit on Dask, by workers that each have some of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple
from warnings import warn

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import validate_params

import kfhe
from kfhe.audit.quality import TREE_CONSTRAINTS, check_several, stops_early, told_of_trees, tree_settings
from kfhe.audit.result import LabelAudit
from kfhe.audit.votes import BLOCK, OutOfBag, VoteCounts, settled
from kfhe.dask.reading import Reader
from kfhe.dask.rows import PartedRows, rows_here
from kfhe.dask.session import Session, Share, together
from kfhe.dask.workers import ClusterLostError, Parts
from kfhe.remarks import Remark, TableWarning, remarks_on
from kfhe.tree_settings import TreeSettings

Floats = NDArray[np.float64]


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

    This is `kfhe.audit.label_quality` for rows on a Dask cluster. Votes, ranks and suspects are equal, bit
    for bit, to those of one machine with the same rows.

    Parameters
    ----------
    X : Dask data frame or array of shape (n, n_features)
        The rows.
    y : Dask series or array of shape (n,)
        Their labels, of at least two classes, partitioned like X.
    sample_weight : Dask series or array of shape (n,), default=None
        Weights of the rows, partitioned like X. A row of weight 0 is judged, but does not affect the
        judgement of other rows.
    groups : Dask series or array of shape (n,), default=None
        Which rows belong together, partitioned like X. Each row is judged by trees that have seen no row of
        its group. None: copies of rows are found and kept together.
    n_estimators : int, default=1000
        Maximum number of trees.
    early_stopping : bool or "auto", default="auto"
        Whether to stop before `n_estimators` when more trees would hardly change the ranks.
        "auto": in tables of 10,000 rows or more.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Additional categorical columns: positions, names or a mask. Columns of strings or categories are
        always categorical, except with None, which treats no column as categorical.
    random_state : int, Generator, RandomState or None, default=None
        Seed.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    LabelAudit
        An ordinary result, with arrays on this machine, in the order of the rows. `findings` and `worst` are
        None, because they need the rows themselves. So is `index`, so that `to_frame`
        counts rows from 0.

    Raises
    ------
    ClusterLostError
        The scheduler, or too many workers, were lost.

    Notes
    -----
    Rows stay on the workers. After every 25 trees the votes are collected: one number per row and class, and
    three more per row, which must fit into the memory of this machine.

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
    LabelAudit of 150 labels: about 11.7% look wrong, 18 suspects; the votes disagree with 23
    """
    # Settings of trees can't be invalid here
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        try:
            # Rows are read as by a classifier
            reader = Reader(kfhe.KFHEClassifier(random_state=random_state), X, y, sample_weight, groups)
            rows, weights = reader.rows_and_weights()
            check_several(rows.classes)
            settings = tree_settings(categorical_features)
            if groups is None:
                rows = rows.with_copies()
            stops = stops_early(early_stopping, rows.n_rows)
            with told_of_trees(n_estimators, verbose) as advance:
                collected = Collected(n_estimators, stops, advance)
                remarks = _audited(rows, weights, settings, collected)
            labels = rows.labels_of_all()
        except ClusterLostError as error:
            raise ClusterLostError(
                f"the cluster was lost: {error}. Nothing is kept of the audit; create another client, and "
                "call label_quality again"
            ) from error
    for remark in remarks:
        warn(remark, TableWarning, stacklevel=3)
    audit = LabelAudit.from_votes(rows.classes, labels, collected.mean())
    return replace(audit, n_estimators=collected.n_trees, groups=rows.together, remarks=tuple(remarks))


class Collected:
    """The votes so far, collected from the workers.

    Parameters
    ----------
    n_estimators : int
        Maximum number of trees.
    early_stopping : bool
        Whether to stop when the ranks have settled.
    advance : callable
        Called after each tree.

    Attributes
    ----------
    n_trees : int
        Number of trees that have voted.
    """

    def __init__(self, n_estimators: int, early_stopping: bool, advance: Callable[[], None]) -> None:
        self.n_trees, self.n_estimators, self.early_stopping = 0, n_estimators, early_stopping
        self._counts: VoteCounts | None = None
        self._advance = advance

    def add(self, news: tuple[VoteCounts, int]) -> bool:
        """Add the votes of further trees; return whether there are enough."""
        counts, n_trees = news
        if self._counts is None:
            self._counts = counts
        else:
            self._counts.include(counts)
        self.n_trees += n_trees
        for _ in range(n_trees):
            self._advance()
        return self.early_stopping and settled(self._counts, self.n_trees, self.n_estimators)

    def mean(self) -> Floats:
        """Return the mean votes."""
        assert self._counts is not None
        return self._counts.mean()


class Trees(NamedTuple):
    """The trees of the audit."""

    settings: TreeSettings
    blocks: list[range]  # by number; all trees of a block are grown before checking whether to stop
    may_stop: bool


def _audited(
    rows: PartedRows, weights: Parts | None, settings: TreeSettings, collected: Collected
) -> list[Remark]:
    """Let workers grow trees until there are enough votes; return the remarks on the table."""
    workers, read = rows.workers, rows
    if weights is not None:  # a row of weight 0 does not affect encodings
        total = workers.exact_sum(weights, rows.n_rows)
        read = replace(rows, base=workers.each(np.divide, weights, total))
    bins = read.binned(settings)

    def place(shares: list[Share]) -> list[tuple[Any, ...]]:
        numbers = range(collected.n_trees, collected.n_estimators)
        blocks = [numbers[i : i + BLOCK] for i in range(0, len(numbers), BLOCK)]
        trees = Trees(settings, blocks, collected.early_stopping)
        further = [] if weights is None else [weights]
        return [(trees, *own) for own in rows.placed(bins, shares, *further)]

    def finish(futures: list[Any]) -> list[Remark]:
        remarks: list[Remark] = futures[0].result()
        return remarks

    return together(workers, rows.n_blocks, place, audited_here, collected.add, finish)


# ---------------------------------------------------------------- on the workers


def audited_here(session: Session, trees: Trees, told: Any, n_threads: int, *arrays: Any) -> list[Remark]:
    """Grow trees together with the other workers, and collect their votes for this worker's rows."""
    codes, labels, base, *weights = arrays
    exchange = session.peers
    rows = rows_here(exchange, told, n_threads, codes, labels, base)
    remarks = remarks_on(rows, rows.X)
    voters = OutOfBag(
        [rows.grower(trees.settings, rows.X)], rows, weights[0] if weights else None, lambda: None
    )
    for block in trees.blocks:
        counts, stop = voters.count(block), False
        parts = exchange.swap([counts if q == 0 else None for q in range(exchange.n)])
        if exchange.rank == 0:
            stop = session.tell((VoteCounts.joined(parts), len(block)), wait=trees.may_stop)
        if trees.may_stop and exchange.gather(stop)[0]:
            break
    return remarks
