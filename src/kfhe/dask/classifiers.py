"""The classifiers on Dask: the same ones, of which only the rows are elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from dask.base import is_dask_collection, tokenize
from dask.delayed import delayed
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

import kfhe
from kfhe.base import BaseKFHE
from kfhe.dask.rows import SpreadRows, exact_total
from kfhe.dask.tables import Cut, SpreadTable, delayed_parts
from kfhe.dask.workers import ClusterLostError, Future, Spread, Workers
from kfhe.early_stopping import EarlyStopping
from kfhe.engine.arrays import highest
from kfhe.training import TrainingRun
from kfhe.validation import (
    balanced,
    check_table,
    class_weights,
    encode_labels,
    sample_weights,
    seed_from,
    up_to_one,
)

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]


class OnDask(BaseKFHE):
    """What the classifiers on Dask share: rows are read and predicted where they are."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **further: Any) -> Self:
        """Train the ensemble, on the workers of the current client.

        Parameters
        ----------
        X : Dask data frame or array of shape (n_samples, n_features)
            The training rows.
        y : Dask series or array of shape (n_samples,)
            Their labels, partitioned as X is.
        sample_weight : Dask series or array of shape (n_samples,), default=None
            Weights of the rows, partitioned as X is.
        **further
            X_val, y_val and callbacks, as for the classifier of one machine. A validation set is an array
            or a frame of this machine.

        Returns
        -------
        self
            The fitted classifier. If fitting fails, it stays as it was.

        Raises
        ------
        ClusterLostError
            The scheduler or too many workers were lost. The trees so far are kept: with ``warm_start=True``,
            the next call of `fit` with the same data, on another cluster, goes on from there.
        """
        if not self.warm_start:
            self.__dict__.pop("_grown", None)
        grown = self.__dict__.setdefault(
            "_grown", {}
        )  # before anything fails, as a failure undoes what is set
        try:
            super().fit(X, y, sample_weight, **further)
        except ClusterLostError as error:
            n_trees = max((len(trees) for trees in grown.values()), default=0)
            raise ClusterLostError(
                f"the cluster was lost: {error}. {n_trees} trees are kept; to go on from there, make another "
                "client and call fit again, with warm_start=True and the same data"
            ) from error
        self.__dict__.pop("_grown", None)
        return self

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> SpreadRows:
        self._check_parameters()
        rows = _Reader(self, X, y, sample_weight).rows()
        settings = {**self._component_settings(), "emphasis": getattr(self, "emphasis", None)}
        name = tokenize(rows.X.token, rows.seed, settings)
        return replace(rows, grown=self._grown.setdefault(name, {}))

    def _check_parameters(self) -> None:
        """Raise if a parameter needs all rows on one machine."""
        stopping = self.early_stopping
        if isinstance(stopping, EarlyStopping) and stopping.validation_fraction is not None:
            raise ValueError(
                "validation_fraction holds back rows of one machine; on a cluster, give a validation set: "
                "fit(X, y, X_val=..., y_val=...), as an array or a frame"
            )

    def predict(self, X: Any) -> Any:
        """Return the class with the highest score for each row; lazily for Dask's tables."""
        return self._on_parts("predict", X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes for each row; lazily for Dask's tables."""
        return self._on_parts("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities; lazily for Dask's tables."""
        return self._on_parts("predict_log_proba", X)

    def predict_uncertainty(self, X: Any) -> Any:
        """Return what is still unknown about each row; lazily for Dask's tables."""
        return self._on_parts("predict_uncertainty", X)

    def _on_parts(self, method: str, X: Any) -> Any:
        local = self.to_local()
        if not is_dask_collection(X):
            return getattr(local, method)(X)
        return lazily(local, method, X)

    def save(self, path: Any) -> None:
        """Write the fitted model to a file; `kfhe.load` reads it as the ordinary classifier."""
        self.to_local().save(path)

    def to_local(self) -> Any:
        """Return the fitted model as the ordinary classifier, which needs no Dask."""
        local = type(self).__mro__[2](**self.get_params(deep=False))
        local.__dict__.update(
            {name: value for name, value in self.__dict__.items() if name not in ("_run", "_run_settings")}
        )
        return local


class KFHEClassifier(OnDask, kfhe.KFHEClassifier):
    """`kfhe.KFHEClassifier` on rows that are spread over a Dask cluster.

    It is trained by the current `distributed.Client`, on Dask's data frames, series and arrays, of which rows
    stay on the workers. The model is equal, bit for bit, to that of `kfhe.KFHEClassifier` on the same rows.
    All parameters and attributes are those of `kfhe.KFHEClassifier`; these need all rows on one machine:
    `estimator`, functions as the `emphasis`, ``measurement="out-of-bag"`` and a `validation_fraction`.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.dask import KFHEClassifier
    >>> X, y = (da.from_array(each, chunks=50) for each in load_iris(return_X_y=True))
    >>> with Client(processes=False, dashboard_address=None):
    ...     model = KFHEClassifier(n_estimators=5, random_state=0).fit(X, y)
    ...     model.predict(X[:3]).compute()
    array([0, 0, 0])
    """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.estimator is not None:
            raise ValueError("estimator trains on the rows of one machine; on a cluster, leave it out")
        if callable(self.emphasis):
            raise ValueError(
                "emphasis is a function of all rows of one machine; on a cluster, use 'exponential', "
                "'linear' or 'margin'"
            )
        if self.measurement != "training":
            raise ValueError(
                f"measurement={self.measurement!r} needs all rows on one machine; use 'training'"
            )


class RobustKFHEClassifier(OnDask, kfhe.RobustKFHEClassifier):
    """`kfhe.RobustKFHEClassifier` on rows that are spread over a Dask cluster.

    It is trained by the current `distributed.Client`, on Dask's data frames, series and arrays, of which rows
    stay on the workers. The model is equal, bit for bit, to that of `kfhe.RobustKFHEClassifier` on the same
    rows. All parameters and attributes are those of `kfhe.RobustKFHEClassifier`; `oob_decision_function_` is
    a Dask array. A `validation_fraction` needs all rows on one machine.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.dask import RobustKFHEClassifier
    >>> X, y = (da.from_array(each, chunks=50) for each in load_iris(return_X_y=True))
    >>> with Client(processes=False, dashboard_address=None):
    ...     model = RobustKFHEClassifier(n_estimators=5, random_state=0).fit(X, y)
    ...     model.predict(X[:3]).compute()
    array([0, 0, 0])
    """

    def _attributes(self, run: TrainingRun, *, resumes: bool) -> dict[str, Any]:
        attributes, rows = super()._attributes(run, resumes=resumes), run.rows
        assert isinstance(rows, SpreadRows)
        scores = as_array(attributes["oob_decision_function_"], rows.workers, len(rows.classes))
        return {**attributes, "oob_decision_function_": scores}


def lazily(model: Any, method: str, X: Any) -> Any:
    """Return what a method of a model gives for a Dask table: a Dask array, still to be computed."""
    of_part = PartMethod(model, method)
    n_classes = len(model.classes_)
    wide = method in ("predict_proba", "predict_log_proba")
    dtype = model.classes_.dtype if method == "predict" else np.dtype(np.float64)
    meta = np.empty((0, n_classes) if wide else (0,), dtype=dtype)
    if hasattr(X, "map_partitions"):
        import dask.array as da

        parts = [delayed(of_part)(part) for part in X.to_delayed()]
        shape = (np.nan, n_classes) if wide else (np.nan,)
        return da.concatenate(
            [da.from_delayed(part, shape, meta=meta) for part in parts], allow_unknown_chunksizes=True
        )
    X = X.rechunk({1: -1})
    if wide:
        return X.map_blocks(of_part, chunks=(X.chunks[0], (n_classes,)), meta=meta)
    return X.map_blocks(of_part, drop_axis=1, meta=meta)


class PartMethod:
    """A method of a model, for a part of a table; a part without rows has no predictions.

    Parameters
    ----------
    model : classifier
        The model.
    method : str
        The method's name.
    """

    def __init__(self, model: Any, method: str) -> None:
        self.model, self.method = model, method

    def __call__(self, part: Any) -> Any:
        """Return what the method gives for a part."""
        if len(part):
            return getattr(self.model, self.method)(part)
        wide = self.method in ("predict_proba", "predict_log_proba")
        dtype = self.model.classes_.dtype if self.method == "predict" else np.float64
        return np.empty((0, len(self.model.classes_)) if wide else (0,), dtype=dtype)


def as_array(spread: Spread, workers: Workers, n_columns: int) -> Any:
    """Return something spread, with some numbers per row, as a Dask array."""
    import dask.array as da

    sizes = workers.parts(workers.each(len, spread))
    parts = [
        da.from_delayed(delayed(part), (size, n_columns), dtype=np.float64)
        for part, size in zip(spread.parts, sizes, strict=True)
    ]
    return da.concatenate(parts)


class _Reader:
    """Makes training rows of what `fit` got."""

    def __init__(self, estimator: OnDask, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator = estimator
        self._workers = Workers.here(1)
        self._tables, self._y = delayed_parts(X, "X"), delayed_parts(y, "y")
        self._weights = None if sample_weight is None else delayed_parts(sample_weight, "sample_weight")
        for what, parts in (("y", self._y), ("sample_weight", self._weights)):
            if parts is not None and len(parts) != len(self._tables):
                raise ValueError(
                    f"{what} has {len(parts)} partitions and X has {len(self._tables)}; they have to be "
                    "partitioned alike, such as columns of one frame are"
                )
        is_frame = hasattr(X, "_meta") and hasattr(X, "map_partitions")
        if is_frame:
            validate_data(estimator, X._meta, reset=True, skip_check_array=True)
        else:
            check_table(estimator, np.zeros((1, X.shape[1])), reset=True)
        self._names = [str(name) for name in X.columns] if is_frame else [f"x{j}" for j in range(X.shape[1])]
        self._token = tokenize(X, y, sample_weight)

    def rows(self) -> SpreadRows:
        """Read labels and weights; the table itself is read when it is binned."""
        estimator, workers = self._estimator, self._workers
        found = self._compute(found_labels, self._y, self._tables)
        seen = [
            each for each in workers.result([workers.run(classes_in, part) for part in found]) if len(each)
        ]
        if not seen:
            raise ValueError("y is empty: found 0 labels, at least 1 is needed")
        classes = encode_labels(np.concatenate(seen), estimator)[0]
        labels = [workers.run(labels_among, part, classes) for part in found]
        labels, weights, present = self._weighted(labels, classes)
        counts = workers.result([workers.run(counts_of_classes, part, len(classes)) for part in labels])
        sizes = [int(each.sum()) for each in counts]
        cut = Cut.of_sizes(sizes, workers.n_threads())
        workers = Workers(workers.client, len(cut.first_blocks) - 1)
        spread = cut.parts(workers, labels)
        n = sum(sizes)
        if weights is None:
            base, alike = workers.each(equal_weights, spread, 1.0 / n), True
        else:
            whole = cut.parts(workers, weights)
            total = exact_total(workers, whole, n)
            base = workers.each(np.divide, whole, total)
            ranges = np.array(workers.parts(workers.each(range_of, base)))
            alike = bool(ranges[:, 0].min() == ranges[:, 1].max())
        table = SpreadTable(workers, self._tables, present, cut, self._names, self._token)
        return SpreadRows(
            table,
            spread,  # type: ignore[arg-type]
            classes,
            base,  # type: ignore[arg-type]
            seed_from(estimator.random_state),
            1,
            estimator.max_samples,
            workers=workers,
            class_counts=np.sum(counts, axis=0),
            first_blocks=cut.first_blocks,
            all_alike=alike,
            grown={},
        )

    def _compute(self, function: Any, *parts: list[Any]) -> list[Future]:
        """Run a function on partitions that are still to be made."""
        lazy = delayed(function, pure=False)
        futures: list[Future] = self._workers.client.compute(
            [lazy(*each) for each in zip(*parts, strict=True)]
        )
        return futures

    def _weighted(
        self, labels: list[Future], classes: NDArray[Any]
    ) -> tuple[list[Future], list[Future] | None, list[Any]]:
        """Return labels and weights of the rows that weigh something, and which these are."""
        workers, class_weight = self._workers, self._estimator.class_weight
        everywhere: list[Any] = [None] * len(labels)
        if self._weights is None and class_weight is None:
            return labels, None, everywhere
        if self._weights is None:
            weights = [workers.run(equal_weights, part, 1.0) for part in labels]
        else:
            given = self._compute(given_weights, self._weights, labels)
            largest = max(workers.result([workers.run(highest, part) for part in given]))
            weights = [workers.run(up_to_one, part, largest) for part in given]
        if isinstance(class_weight, str):
            totals = []
            for k in range(len(classes)):
                own = [workers.run(of_class, *pair, k) for pair in zip(weights, labels, strict=True)]
                n_rows = sum(workers.result([workers.run(len, part) for part in own]))
                totals.append(exact_total(Workers(workers.client, len(own)), Spread(own), n_rows))
            weights = [
                workers.run(balanced, *pair, np.array(totals)) for pair in zip(weights, labels, strict=True)
            ]
        elif class_weight is not None:
            factors = class_weights(class_weight, classes)
            weights = [workers.run(times_class, *pair, factors) for pair in zip(weights, labels, strict=True)]
        present = [workers.run(np.greater, part, 0.0) for part in weights]
        if not any(workers.result([workers.run(np.any, part) for part in present])):
            raise ValueError("all weights are zero: at least one row needs a positive weight")
        labels, weights = (
            [workers.run(some_of, *pair) for pair in zip(each, present, strict=True)]
            for each in (labels, weights)
        )
        return labels, weights, present


# ---------------------------------------------------------------- what workers do


def found_labels(y: Any, table: Any) -> tuple[NDArray[Any], Labels]:
    """Return the classes in a part, and each row's position among them."""
    if len(y) != len(table):
        raise ValueError(f"y has {len(y)} rows in a partition in which X has {len(table)}")
    if not len(y):
        return np.empty(0, dtype=object), np.empty(0, dtype=np.int32)
    return encode_labels(y, "fit")


def classes_in(found: tuple[NDArray[Any], Labels]) -> NDArray[Any]:
    """Return the classes in a part."""
    return found[0]


def labels_among(found: tuple[NDArray[Any], Labels], classes: NDArray[Any]) -> Labels:
    """Return each row's position among all classes."""
    own, labels = found
    if not len(labels):
        return labels
    return np.searchsorted(classes, own).astype(np.int32)[labels]


def counts_of_classes(labels: Labels, n_classes: int) -> NDArray[np.int64]:
    """Return how many rows each class has."""
    return np.bincount(labels, minlength=n_classes)


def given_weights(weights: Any, labels: Labels) -> Floats:
    """Return the sample weights of a part, checked."""
    return sample_weights(weights, labels) if len(labels) else np.empty(0)


def equal_weights(labels: Labels, weight: float) -> Floats:
    """Return one weight for all rows."""
    return np.full(len(labels), weight)


def of_class(weights: Floats, labels: Labels, k: int) -> Floats:
    """Return the weights of the rows of one class."""
    return weights[labels == k]


def times_class(weights: Floats, labels: Labels, factors: Floats) -> Floats:
    """Return weights times the factor of each row's class."""
    return weights * factors[labels]


def some_of(values: NDArray[Any], present: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the values of the rows that are there."""
    return values[present]


def range_of(values: Floats) -> tuple[float, float]:
    """Return the lowest and highest value."""
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
