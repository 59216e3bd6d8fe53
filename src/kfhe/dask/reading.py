"""Reading: training rows from two or three Dask collections."""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import Any

import numpy as np
from dask.base import tokenize
from dask.delayed import delayed
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from kfhe.base import BaseKFHE
from kfhe.dask.rows import PartedRows
from kfhe.dask.tables import PartedTable, delayed_parts
from kfhe.dask.workers import Parts, Workers
from kfhe.engine.arrays import highest
from kfhe.groups import Groups
from kfhe.validation import (
    balanced,
    check_groups,
    check_table,
    class_weights,
    encode_labels,
    sample_weights,
    seed_from,
    up_to_one,
)

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]


class Reader:
    """Makes training rows of Dask collections that are partitioned alike.

    Parameters
    ----------
    estimator : BaseKFHE
        The classifier to fit.
    X, y, sample_weight, groups : Dask collections
        The arguments of its `fit`.
    """

    def __init__(
        self, estimator: BaseKFHE, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> None:
        self._estimator = estimator
        self._tables, self._y = delayed_parts(X, "X"), delayed_parts(y, "y")
        self._weights = None if sample_weight is None else delayed_parts(sample_weight, "sample_weight")
        self._groups = None if groups is None else delayed_parts(groups, "groups")
        for what, parts in (("y", self._y), ("sample_weight", self._weights), ("groups", self._groups)):
            if parts is not None and len(parts) != len(self._tables):
                raise ValueError(
                    f"{what} has {len(parts)} partitions and X has {len(self._tables)}; they must be "
                    "partitioned alike, like columns of one frame"
                )
        self._workers = Workers.here()
        if hasattr(X, "columns"):
            validate_data(estimator, X._meta, reset=True, skip_check_array=True)
            self._names = [str(name) for name in X.columns]
        else:
            check_table(estimator, np.zeros((1, X.shape[1])), reset=True)
            self._names = [str(j) for j in range(X.shape[1])]
        self._token = tokenize(X, y, sample_weight, groups)

    def rows(self) -> PartedRows:
        """Read labels and weights; the table itself is read when it is binned."""
        labels, classes = self._labels()
        return self._rows(classes, *self._weighted(labels, classes))

    def rows_and_weights(self) -> tuple[PartedRows, Parts | None]:
        """Read all rows, including those of weight 0, and return the weights separately; None: all equal."""
        labels, classes = self._labels()
        rows = self._rows(classes, labels, None, None)
        if self._weights is None:
            return rows, None
        given = self._sample_weights(labels)
        self._present(given)
        ranges = np.array(self._workers.result(self._workers.each(range_of, given)))
        return rows, None if ranges[:, 0].min() == ranges[:, 1].max() else given

    def _labels(self) -> tuple[Parts, NDArray[Any]]:
        """Return the labels as positions, with the classes."""
        workers = self._workers
        found = self._compute(found_labels, self._y, self._tables)
        seen = [each for each in workers.result(workers.each(getitem, found, 0)) if len(each)]
        if not seen:
            raise ValueError("y is empty: found 0 labels, at least 1 is needed")
        classes, _ = encode_labels(np.concatenate(seen), self._estimator)
        return workers.each(labels_among, found, classes), classes

    def _rows(
        self, classes: NDArray[Any], labels: Parts, weights: Parts | None, present: Parts | None
    ) -> PartedRows:
        """Return the rows of positive weight; None: all rows have the same weight."""
        estimator, workers = self._estimator, self._workers
        sizes = workers.result(workers.each(len, labels))
        n = sum(sizes)
        if weights is None:
            base = workers.each(equal_weights, labels, 1.0 / n)
        else:
            base = workers.each(np.divide, weights, workers.exact_sum(weights, n))
        return PartedRows(
            PartedTable(workers, self._tables, present, sizes, self._names),
            labels,
            classes,
            base,
            seed_from(estimator.random_state),
            estimator.max_samples,
            self._token,
            self._together(present),
        )

    def _together(self, present: Parts | None) -> Groups | None:
        """Return the groups of the rows of positive weight, if there are any."""
        if self._groups is None:
            return None
        found = self._compute(found_groups, self._groups, self._tables)
        if present is not None:
            found = self._workers.each(some_groups, found, present)
        parts = [each for each in self._workers.result(found) if len(each[1])]
        values = [values for values, _ in parts]
        if len({each.dtype.kind for each in values}) > 1:  # concatenation would turn numbers into text
            values = [each.astype(object) for each in values]
        whole = np.concatenate(values)
        numbers = Groups.of(check_groups(whole, len(whole))).numbers
        starts = np.cumsum([0, *map(len, values)])
        return Groups(
            np.concatenate([numbers[start + own] for start, (_, own) in zip(starts, parts, strict=False)])
        )

    def _compute(self, function: Any, *parts: Sequence[Any]) -> Parts:
        """Run a function on lazy partitions."""
        lazy = delayed(function, pure=False)
        with self._workers.watched():
            return Parts(self._workers.client.compute([lazy(*each) for each in zip(*parts, strict=True)]))

    def _weighted(self, labels: Parts, classes: NDArray[Any]) -> tuple[Parts, Parts | None, Parts | None]:
        """Return labels and weights of the rows of positive weight, and their positions; None: all equal."""
        workers, class_weight = self._workers, self._estimator.class_weight
        if self._weights is None and class_weight is None:
            return labels, None, None
        if self._weights is None:
            weights = workers.each(equal_weights, labels, 1.0)
        else:
            weights = self._sample_weights(labels)
        if isinstance(class_weight, str):
            weights = workers.each(
                balanced, weights, labels, self._class_totals(weights, labels, len(classes))
            )
        elif class_weight is not None:
            weights = workers.each(times_class, weights, labels, class_weights(class_weight, classes))
        present = self._present(weights)
        return workers.each(some_of, labels, present), workers.each(some_of, weights, present), present

    def _sample_weights(self, labels: Parts) -> Parts:
        """Return the given sample weights, scaled so that the largest is 1."""
        assert self._weights is not None
        workers = self._workers
        given = self._compute(given_weights, self._weights, labels)
        return workers.each(up_to_one, given, max(workers.result(workers.each(highest, given))))

    def _present(self, weights: Parts) -> Parts:
        """Return which rows have a positive weight; raise if none has."""
        present = self._workers.each(np.greater, weights, 0.0)
        if not any(self._workers.result(self._workers.each(np.any, present))):
            raise ValueError("all weights are zero: at least one row needs a positive weight")
        return present

    def _class_totals(self, weights: Parts, labels: Parts, n_classes: int) -> Floats:
        """Return the weight of each class."""
        workers, totals = self._workers, []
        for k in range(n_classes):
            own = workers.each(of_class, weights, labels, k)
            totals.append(workers.exact_sum(own, sum(workers.result(workers.each(len, own)))))
        return np.array(totals)


# ---------------------------------------------------------------- on the workers


def found_labels(y: Any, table: Any) -> tuple[NDArray[Any], Labels]:
    """Return the classes in a part, and each row's position among them."""
    if len(y) != len(table):
        raise ValueError(f"y has {len(y)} rows in a partition where X has {len(table)}")
    if not len(y):
        return np.empty(0, dtype=object), np.empty(0, dtype=np.int32)
    return encode_labels(y, "fit")


def found_groups(groups: Any, table: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the groups in a part, and each row's position among them."""
    if len(groups) != len(table):
        raise ValueError(f"groups has {len(groups)} rows in a partition where X has {len(table)}")
    if not len(table):
        return np.empty(0, dtype=object), np.empty(0, dtype=np.intp)
    values, numbers = np.unique(check_groups(groups, len(table)), return_inverse=True)
    return values, numbers.reshape(-1)


def some_groups(
    found: tuple[NDArray[Any], NDArray[np.intp]], present: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the groups of the rows of positive weight."""
    values, numbers = found
    kept, positions = np.unique(numbers[present], return_inverse=True)
    return values[kept], positions.reshape(-1)


def labels_among(found: tuple[NDArray[Any], Labels], classes: NDArray[Any]) -> Labels:
    """Return each row's position among all classes."""
    own, labels = found
    return np.searchsorted(classes, own).astype(np.int32)[labels] if len(labels) else labels


def given_weights(weights: Any, labels: Labels) -> Floats:
    """Return the sample weights of a part, validated."""
    if len(weights) != len(labels):
        raise ValueError(f"sample_weight has {len(weights)} rows in a partition where X has {len(labels)}")
    # One more row is added, because all weights in a part, unlike in a table, may be zero
    return sample_weights(np.append(weights, 1.0), np.append(labels, 0))[:-1]


def equal_weights(labels: Labels, weight: float) -> Floats:
    """Return the same weight for all rows."""
    return np.full(len(labels), weight)


def of_class(weights: Floats, labels: Labels, k: int) -> Floats:
    """Return the weights of the rows of one class."""
    return weights[labels == k]


def times_class(weights: Floats, labels: Labels, factors: Floats) -> Floats:
    """Return weights times the factor of each row's class."""
    return weights * factors[labels]


def some_of(values: NDArray[Any], present: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the values of the rows of positive weight."""
    return values[present]


def range_of(values: Floats) -> tuple[float, float]:
    """Return the lowest and highest value."""
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
