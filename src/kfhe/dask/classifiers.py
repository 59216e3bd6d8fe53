"""The classifiers on Dask, trained by workers that each have some of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, NamedTuple, Self

import dask
import numpy as np
from dask.base import is_dask_collection, tokenize
from dask.delayed import delayed

import kfhe
from kfhe.base import BaseKFHE
from kfhe.callbacks import Callback, FitTasks
from kfhe.dask.reading import Reader
from kfhe.dask.rows import PartedRows
from kfhe.dask.session import together
from kfhe.dask.training import Fit, Fitted, Stage, fitted_here
from kfhe.dask.trees import TreeArrays
from kfhe.dask.workers import ClusterLostError
from kfhe.display.progress import training_bar
from kfhe.early_stopping import EarlyStopping, ValidationSet, is_boolean
from kfhe.rows import sample_size
from kfhe.trace import Iteration
from kfhe.tree_settings import TreeSettings


class Grown(NamedTuple):
    """The trees so far. If a training was interrupted, it is repeated with them."""

    token: str  # identifies data and settings
    trees: list[list[TreeArrays]]  # by iteration; h_0 is with the first


class Read(NamedTuple):
    """The rows of an earlier fit, by their tokens."""

    token: str
    seed: int

    def differences(self, rows: PartedRows) -> str:
        """Name what differs in other rows: "" if nothing does."""
        return "" if self.token == rows.token else "data"


class EarlierFit(NamedTuple):
    """The state for continuing an earlier fit."""

    rows: Read
    stages: list[Stage]
    trees: list[list[TreeArrays]]


class OnDask(BaseKFHE):
    """The base of the classifiers on Dask."""

    _ordinary: ClassVar[type[BaseKFHE]]  # the corresponding classifier for one machine

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **further: Any) -> Self:
        """Train the ensemble on the workers of the current client.

        Parameters
        ----------
        X : Dask data frame or array of shape (n_samples, n_features)
            The training rows.
        y : Dask series or array of shape (n_samples,)
            Their labels, partitioned like X.
        sample_weight : Dask series or array of shape (n_samples,), default=None
            Weights of the rows, partitioned like X.
        **further
            X_val, y_val, groups and callbacks, as for the classifier of one machine. The validation set is on
            this machine; groups are a Dask series or array, partitioned like X.

        Returns
        -------
        self
            The fitted classifier. If fitting fails, it is unchanged.

        Raises
        ------
        ClusterLostError
            The scheduler, or too many workers, were lost. The trees so far are kept. With
            ``warm_start=True``, the next call of `fit` with the same data, also on another cluster, continues
            from there.
        """
        if is_boolean(self.early_stopping) and self.early_stopping and further.get("X_val") is None:
            raise ValueError(
                "early_stopping=True holds out rows on one machine; on a cluster, pass a validation set: "
                "fit(X, y, X_val=..., y_val=...), as an array or a frame"
            )
        if not self.warm_start:
            self.__dict__.pop("_grown", None)
        # Read before anything fails, because a failure resets attributes
        grown: list[Grown] = self.__dict__.setdefault("_grown", [])
        try:
            # Settings of trees can't be invalid here
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
                super().fit(X, y, sample_weight, **further)
        except ClusterLostError as error:
            n_trees = sum(map(len, grown[-1].trees)) if grown else 0
            raise ClusterLostError(
                f"the cluster was lost: {error}. {n_trees} trees are kept; to continue, create another "
                "client and call fit again, with warm_start=True and the same data"
            ) from error
        self.__dict__.pop("_grown", None)
        return self

    def _validate(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
        self._check_parameters()
        return Reader(self, X, y, sample_weight, groups).rows()

    def _train(
        self,
        rows: Any,
        validation: ValidationSet | None,
        callbacks: Sequence[Callback],
        tasks: FitTasks | None = None,
    ) -> None:
        resumes = self._resumes(rows)
        stages, done = (self._run.stages, self._run.trees) if resumes else ([], [])
        settings = {**self._component_settings(), "emphasis": getattr(self, "emphasis", None)}
        token = tokenize(rows.token, rows.seed, settings, stages)
        if not (self._grown and self._grown[-1].token == token):
            self._grown[:] = [Grown(token, [*done])]
        trees = self._grown[-1].trees
        bins = rows.binned(self._table_settings())
        with ExitStack() as stack:
            watchers = [*callbacks]
            if self.verbose:
                watchers.append(stack.enter_context(training_bar(self.n_estimators, len(done))))
            if tasks is not None:
                tasks.start(dict)  # there is no model here until the end
                watchers.append(tasks)
            fit = Fit(
                self._ordinary(**{**self.get_params(deep=False), "verbose": 0, "n_jobs": None}),
                validation,
                stages,
                trees,
                bool(watchers),
            )

            def told(news: tuple[Iteration, list[TreeArrays]]) -> bool:
                """Record an iteration and its trees; return whether it is the last one."""
                row, new = news
                trees.append(new)
                stop = False
                for watcher in watchers:
                    stop |= bool(watcher(row))
                if stop:
                    fit.model.n_estimators = row.iteration  # also if the training has to be repeated
                return stop

            def place(shares: Any) -> list[tuple[Any, ...]]:
                return [(fit, *own) for own in rows.placed(bins, shares)]

            attributes = together(rows.workers, rows.n_blocks, place, fitted_here, told, self._taken_over)
        for name in ("validation_scores_", "_run", "_run_settings"):
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        if self.warm_start:
            stage = Stage(self.n_iter_, getattr(self, "emphasis", None))
            self._run: Any = EarlierFit(Read(rows.token, rows.seed), [*stages, stage], trees[: self.n_iter_])
            self._run_settings = self._component_settings()

    def _taken_over(self, futures: list[Any]) -> dict[str, Any]:
        """Return the fitted attributes, from the results of the workers."""
        client = futures[0].client
        attributes: dict[str, Any] = client.submit(first_of, futures[0]).result()
        return attributes

    def _table_settings(self) -> TreeSettings:
        """Return the settings for reading the table."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise if a parameter needs all rows on one machine."""
        if self.device != "cpu":
            raise ValueError(
                f"device={self.device!r} is for rows on one machine; on a cluster, use device='cpu'"
            )
        stopping = self.early_stopping
        if isinstance(stopping, EarlyStopping) and stopping.validation_fraction is not None:
            raise ValueError(
                "validation_fraction holds out rows on one machine; on a cluster, pass a validation set: "
                "fit(X, y, X_val=..., y_val=...), as an array or a frame"
            )

    def predict(self, X: Any) -> Any:
        """Return the predicted class of each row; lazily for Dask's tables."""
        return self._on_parts("predict", X)

    def predict_proba(self, X: Any) -> Any:
        """Return the class probabilities of each row; lazily for Dask's tables."""
        return self._on_parts("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the class probabilities; lazily for Dask's tables."""
        return self._on_parts("predict_log_proba", X)

    def predict_uncertainty(self, X: Any) -> Any:
        """Return the uncertainty of each row; lazily for Dask's tables."""
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
    """`kfhe.KFHEClassifier` for rows on a Dask cluster.

    It is trained by the current `distributed.Client`, on Dask's data frames, series and arrays, whose rows
    stay on the workers. The model is equal, bit for bit, to that of `kfhe.KFHEClassifier` with the same rows.
    Parameters and attributes are those of `kfhe.KFHEClassifier`. Not supported are an `estimator` other than
    a `CARTClassifier`, functions as `emphasis`, and `validation_fraction`. With `groups`, each draw sends the
    weights of all rows to one worker.

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

    def _table_settings(self) -> TreeSettings:
        settings: TreeSettings = self._components()[0]
        return settings

    def _train(self, rows: Any, *others: Any) -> None:
        if len(rows.classes) > 1:
            self._hint_at_few_rows(sample_size(self.max_samples, rows.n_rows))
        super()._train(rows, *others)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._grows_trees():
            raise ValueError(
                "on a cluster, estimator must be None or a CARTClassifier; others need all rows at once",
            )
        if callable(self.emphasis):
            raise ValueError(
                "on a cluster, emphasis must be 'exponential', 'linear' or 'margin'; a function needs all "
                "rows at once"
            )


class RobustKFHEClassifier(OnDask, kfhe.RobustKFHEClassifier):
    """`kfhe.RobustKFHEClassifier` for rows on a Dask cluster.

    It is trained by the current `distributed.Client`, on Dask's data frames, series and arrays, whose rows
    stay on the workers. The model is equal, bit for bit, to that of `kfhe.RobustKFHEClassifier` with the same
    rows. Parameters and attributes are those of `kfhe.RobustKFHEClassifier`; `oob_decision_function_` is a
    Dask array. `validation_fraction` is not supported. With `groups`, or if copies of rows are found, each
    draw sends the weights of all rows to one worker.

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

    def _table_settings(self) -> TreeSettings:
        return self._tree_settings()

    def _taken_over(self, futures: list[Any]) -> dict[str, Any]:
        import dask.array as da

        attributes = super()._taken_over(futures)
        n_classes, client = len(attributes["classes_"]), futures[0].client
        sizes = client.gather([client.submit(length_of, each) for each in futures])
        parts = [
            da.from_delayed(delayed(client.submit(rows_of, each)), (size, n_classes), dtype=np.float64)
            for each, size in zip(futures, sizes, strict=True)
        ]
        return {**attributes, "oob_decision_function_": da.concatenate(parts)}


def lazily(model: Any, method: str, X: Any) -> Any:
    """Return the result of a method of a model for a Dask table, as a lazy Dask array."""
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
    """A method of a model for a part of a table; a part without rows has no predictions.

    Parameters
    ----------
    model : classifier
        The model.
    method : str
        The name of the method.
    """

    def __init__(self, model: Any, method: str) -> None:
        self.model, self.method = model, method

    def __call__(self, part: Any) -> Any:
        """Return the result for a part."""
        if len(part):
            return getattr(self.model, self.method)(part)
        wide = self.method in ("predict_proba", "predict_log_proba")
        dtype = self.model.classes_.dtype if self.method == "predict" else np.float64
        return np.empty((0, len(self.model.classes_)) if wide else (0,), dtype=dtype)


def first_of(found: Fitted) -> dict[str, Any] | None:
    """Return the attributes of a fitted model."""
    return found.attributes


def rows_of(found: Fitted) -> Any:
    """Return the out-of-bag scores of a worker's own rows."""
    return found.scores


def length_of(found: Fitted) -> int:
    """Return the number of rows of a worker."""
    return len(found.scores)
