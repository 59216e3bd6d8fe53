"""The classifiers on Dask: the same ones, of which only the rows are elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import dask
import numpy as np
from dask.base import is_dask_collection, tokenize
from dask.delayed import delayed

import kfhe
from kfhe.base import BaseKFHE
from kfhe.dask.reading import Reader
from kfhe.dask.rows import SpreadRows
from kfhe.dask.spread import Spread
from kfhe.dask.workers import ClusterLostError, Workers
from kfhe.early_stopping import EarlyStopping, is_boolean
from kfhe.training import TrainingRun


class OnDask(BaseKFHE):
    """What the classifiers on Dask share: rows are read and predicted where they are."""

    _ordinary: ClassVar[type[BaseKFHE]]  # the same classifier on one machine

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
            X_val, y_val, groups and callbacks, as for the classifier of one machine. A validation set is an
            array or a frame of this machine; groups are a Dask series or array, partitioned as X is.

        Returns
        -------
        self
            The fitted classifier. If fitting fails, it is unchanged.

        Raises
        ------
        ClusterLostError
            The scheduler or too many workers were lost. The trees so far are kept: with ``warm_start=True``,
            the next call of `fit` with the same data, also on another cluster, continues from there.
        """
        if is_boolean(self.early_stopping) and self.early_stopping and further.get("X_val") is None:
            raise ValueError(
                "early_stopping=True holds back rows of one machine; on a cluster, give a validation set: "
                "fit(X, y, X_val=..., y_val=...), as an array or a frame"
            )
        if not self.warm_start:
            self.__dict__.pop("_grown", None)
        grown = self.__dict__.setdefault(
            "_grown", {}
        )  # before anything fails, as a failure undoes what is set
        try:
            # Trees of many leaves are no table that should have been read by workers
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
                super().fit(X, y, sample_weight, **further)
        except ClusterLostError as error:
            n_trees = max((len(trees) for trees in grown.values()), default=0)
            raise ClusterLostError(
                f"the cluster was lost: {error}. {n_trees} trees are kept; to go on from there, make another "
                "client and call fit again, with warm_start=True and the same data"
            ) from error
        self.__dict__.pop("_grown", None)
        return self

    def _validate(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> SpreadRows:
        self._check_parameters()
        rows = Reader(self, X, y, sample_weight, groups).rows()
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
        """Return the class that is decided on for each row; lazily for Dask's tables."""
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
        local = self._ordinary(**self.get_params(deep=False))
        of_clusters = ("_run", "_run_settings")
        local.__dict__.update({name: each for name, each in self.__dict__.items() if name not in of_clusters})
        return local


class KFHEClassifier(OnDask, kfhe.KFHEClassifier):
    """`kfhe.KFHEClassifier` on rows that are spread over a Dask cluster.

    It is trained by the current `distributed.Client`, on Dask's data frames, series and arrays, of which rows
    stay on the workers. The model is equal, bit for bit, to that of `kfhe.KFHEClassifier` on the same rows.
    All parameters and attributes are those of `kfhe.KFHEClassifier`; these need all rows on one machine:
    an `estimator` other than a `CARTClassifier`, functions as the `emphasis`, measurements out of the bag and
    a `validation_fraction`. With `groups`, each draw sends the weights of all rows to one worker.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.dask import KFHEClassifier
    >>> X, y = (da.from_array(each, chunks=50) for each in load_iris(return_X_y=True))
    >>> with Client(processes=False, dashboard_address=":0"):
    ...     model = KFHEClassifier(n_estimators=5, random_state=0).fit(X, y)
    ...     model.predict(X[:3]).compute()
    array([0, 0, 0])
    """

    _ordinary = kfhe.KFHEClassifier

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._grows_trees():
            raise ValueError(
                "estimator trains on the rows of one machine; on a cluster, use a CARTClassifier, or none"
            )
        if callable(self.emphasis):
            raise ValueError(
                "emphasis is a function of all rows of one machine; on a cluster, use 'exponential', "
                "'linear' or 'margin'"
            )
        if (measurement := self._state_space().measurement) != "training":
            raise ValueError(f"measurement={measurement!r} needs all rows on one machine; use 'training'")


class RobustKFHEClassifier(OnDask, kfhe.RobustKFHEClassifier):
    """`kfhe.RobustKFHEClassifier` on rows that are spread over a Dask cluster.

    It is trained by the current `distributed.Client`, on Dask's data frames, series and arrays, of which rows
    stay on the workers. The model is equal, bit for bit, to that of `kfhe.RobustKFHEClassifier` on the same
    rows. All parameters and attributes are those of `kfhe.RobustKFHEClassifier`; `oob_decision_function_` is
    a Dask array. A `validation_fraction` needs all rows on one machine. With `groups`, or where copies of
    rows are found, each draw sends the weights of all rows to one worker.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.dask import RobustKFHEClassifier
    >>> X, y = (da.from_array(each, chunks=50) for each in load_iris(return_X_y=True))
    >>> with Client(processes=False, dashboard_address=":0"):
    ...     model = RobustKFHEClassifier(n_estimators=5, random_state=0).fit(X, y)
    ...     model.predict(X[:3]).compute()
    array([0, 0, 0])
    """

    _ordinary = kfhe.RobustKFHEClassifier

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
        for part, size in zip(workers.pieces(spread), sizes, strict=True)
    ]
    return da.concatenate(parts)
