"""Training of a classifier on one of several workers: the ordinary training, on this worker's rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from sklearn.base import clone

from kfhe.base import BaseKFHE
from kfhe.dask.rows import rows_here
from kfhe.dask.session import Session
from kfhe.dask.trees import TreeArrays, Trees
from kfhe.early_stopping import ValidationSet
from kfhe.trace import Iteration


class Stage(NamedTuple):
    """An earlier fit to continue: its last iteration and its emphasis."""

    n_iter: int
    emphasis: Any


class Fit(NamedTuple):
    """The settings of a fit."""

    model: BaseKFHE  # the ordinary classifier, unfitted
    validation: ValidationSet | None
    stages: list[Stage]
    trees: list[list[TreeArrays]]  # known trees, by iteration
    is_watched: bool  # whether the client may stop the training


class Fitted(NamedTuple):
    """The result of a worker."""

    attributes: dict[str, Any] | None  # of the model, from the first worker
    scores: Any  # of this worker's rows, if there are any


def fitted_here(session: Session, fit: Fit, *rows: Any) -> Fitted:
    """Fit a classifier, together with the other workers."""
    model, exchange = clone(fit.model), session.peers  # workers may be threads of one process
    trees = Trees([tree for some in fit.trees for tree in some])
    here = replace(rows_here(exchange, *rows), remember=trees.grower)
    n_told = len(fit.trees)
    _catch_up(model, here, fit.stages)

    def watch(row: Iteration) -> bool:
        """Tell the client of a new iteration; return whether it is the last one."""
        new, stop = trees.taken(), False
        if row.iteration > n_told:
            if exchange.rank == 0:
                stop = session.tell((row, new), wait=fit.is_watched)
            if fit.is_watched:
                stop = exchange.gather(stop)[0]
        return bool(stop)

    model._train(here, fit.validation, [watch])
    attributes = {name: value for name, value in vars(model).items() if is_fitted(name)}
    scores = attributes.pop("oob_decision_function_", None)
    return Fitted(attributes if exchange.rank == 0 else None, scores)


def _catch_up(model: BaseKFHE, rows: Any, stages: list[Stage]) -> None:
    """Repeat earlier fits, so that the model continues from there."""
    if not stages:
        model.warm_start = False
        return
    run, last = model.make_run(rows), getattr(model, "emphasis", None)
    for stage in stages:
        if last is not None:
            model.emphasis = stage.emphasis
        run.train(model.make_emphasis(run), stage.n_iter)
    if last is not None:
        model.emphasis = last
    model.__dict__.update(_run=run, _run_settings=model._component_settings(), n_iter_=len(run.trace))


def is_fitted(name: str) -> bool:
    """Whether an attribute of a model is a result of training."""
    return name.endswith("_") and not name.startswith("_")
