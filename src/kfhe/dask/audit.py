"""The label audit on Dask: the same one, by workers that each have some of the rows."""

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
from kfhe.audit.votes import BLOCK, OutOfBag, Tally, settled
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
    LabelAudit of 150 labels: about 11.7% look wrong, 18 suspects; the votes disagree with 23
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
                rows = rows.with_copies()
            stops = stops_early(early_stopping, rows.n_rows)
            with told_of_trees(n_estimators, verbose) as advance:
                collected = Collected(n_estimators, stops, advance)
                remarks = _audited(rows, weights, settings, collected)
            labels = rows.labels_of_all()
        except ClusterLostError as error:
            raise ClusterLostError(
                f"the cluster was lost: {error}. Nothing is kept of the audit; make another client, and "
                "call label_quality again"
            ) from error
    for remark in remarks:
        warn(remark, TableWarning, stacklevel=3)
    audit = LabelAudit.from_votes(rows.classes, labels, collected.mean())
    return replace(audit, n_estimators=collected.n_trees, groups=rows.together, remarks=tuple(remarks))


class Collected:
    """The votes so far, as they come from the workers.

    Parameters
    ----------
    n_estimators : int
        Number of trees at most.
    early_stopping : bool
        Whether to stop once the ranks are settled.
    advance : callable
        Is told of each tree.

    Attributes
    ----------
    n_trees : int
        How many trees have voted.
    """

    def __init__(self, n_estimators: int, early_stopping: bool, advance: Callable[[], None]) -> None:
        self.n_trees, self.n_estimators, self.early_stopping = 0, n_estimators, early_stopping
        self._tally: Tally | None = None
        self._advance = advance

    def add(self, news: tuple[Tally, int]) -> bool:
        """Count the votes of so many further trees; return whether they are enough."""
        tally, n_trees = news
        if self._tally is None:
            self._tally = tally
        else:
            self._tally.include(tally)
        self.n_trees += n_trees
        for _ in range(n_trees):
            self._advance()
        return self.early_stopping and settled(self._tally, self.n_trees, self.n_estimators)

    def mean(self) -> Floats:
        """Return the mean votes."""
        assert self._tally is not None
        return self._tally.mean()


class Trees(NamedTuple):
    """The trees that are to vote."""

    settings: TreeSettings
    blocks: list[
        range
    ]  # their numbers: those of one block are grown before it is asked whether that is enough
    may_stop: bool


def _audited(
    rows: PartedRows, weights: Parts | None, settings: TreeSettings, collected: Collected
) -> list[Remark]:
    """Let workers grow trees until their votes are enough; return what there is to say of the table."""
    workers, read = rows.workers, rows
    if weights is not None:  # as categories are encoded, a row of weight 0 has no say
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


# ---------------------------------------------------------------- what workers do


def audited_here(session: Session, trees: Trees, told: Any, n_threads: int, *arrays: Any) -> list[Remark]:
    """Grow trees together with the other workers, and let them vote on the own rows."""
    codes, labels, base, *weights = arrays
    exchange = session.peers
    rows = rows_here(exchange, told, n_threads, codes, labels, base)
    remarks = remarks_on(rows, rows.X)
    voters = OutOfBag(
        [rows.grower(trees.settings, rows.X)], rows, weights[0] if weights else None, lambda: None
    )
    for block in trees.blocks:
        tally, stop = voters.tally(block), False
        parts = exchange.swap([tally if q == 0 else None for q in range(exchange.n)])
        if exchange.rank == 0:
            stop = session.tell((Tally.joined(parts), len(block)), wait=trees.may_stop)
        if trees.may_stop and exchange.gather(stop)[0]:
            break
    return remarks
