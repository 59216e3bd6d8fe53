"""The audit beside cleanlab: who finds changed labels better and sooner, and how many seem to be wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import fmean
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from benchmarks import machine
from benchmarks.algorithms import ONE_HOT, encode
from benchmarks.goals import Goal
from benchmarks.report import busy_lines
from kfhe.audit import label_quality
from kfhe.noise import flip_labels
from kfhe.study.algorithms import versions_of
from kfhe.study.errors import StudyError
from kfhe.study.sources import load

try:
    from cleanlab.rank import get_label_quality_scores
except ImportError:
    get_label_quality_scores = None

DATASETS = (
    "iris",
    "glass",
    "tvowel",
    "german",
    "ionosphere",
    "knowledge",
    "vertebral",
    "sonar",
    "bupa",
    "yeast",
    "movement_libras",
    "zoo",
    "car_eval",
    "balance_scale",
    "digits",
)
COMPARED = (0.1, 0.2)  # shares of changed labels at which ours meets the peer
ESTIMATED = (0.0, 0.05, 0.1, 0.2, 0.3)  # shares that ours has to estimate
FOLDS = 5
OURS, PEER = "kfhe", "cleanlab"
LIBRARIES = ("kfhe", "numpy", "scikit-learn", "pandas", "cleanlab")

EXPLANATION = """\
Means over the rounds, in each of which other labels are changed. AUROC: the chance that a changed label
gets a lower quality than one that is as it was. The peer is cleanlab's get_label_quality_scores on the
probabilities that scikit-learn's random forest gives in 5-fold cross-validation, on one-hot columns made
beforehand."""

Floats = NDArray[np.float64]
Labels = NDArray[np.intp]
Report = Callable[[str], None]


@dataclass
class Trial:
    """One audit of a dataset with changed labels.

    Attributes
    ----------
    dataset, algorithm : str
        Who, on what.
    share : float
        Share of the labels that were changed.
    seed : int
        Which labels, and the audit's own seed.
    seconds : float
        How long it took.
    auroc : float or None
        How well it told changed labels from the others; None if none was changed.
    estimated_share : float or None
        Its estimate of the share.
    """

    dataset: str
    algorithm: str
    share: float
    seed: int
    seconds: float
    auroc: float | None
    estimated_share: float | None = None


@dataclass
class AuditRun:
    """All that a run has found.

    Attributes
    ----------
    settings : dict
        How it was made.
    versions : dict
        Versions of the libraries.
    tables : dict
        For each dataset its number of rows, columns and classes.
    trials : list of Trial
        The figures.
    left_out : dict
        Who and what is missing, and why.
    """

    settings: dict[str, Any]
    versions: dict[str, str | None] = field(default_factory=lambda: versions_of(LIBRARIES))
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_settings(cls, *, rounds: int, n_threads: int) -> AuditRun:
        """Return a run that has not measured anything yet."""
        run = cls({"rounds": rounds, "threads": n_threads, **machine.facts()})
        if get_label_quality_scores is None:
            run.left_out[PEER] = "not installed"
        return run

    def figures(
        self, name: str, algorithm: str, *, dataset: str | None = None, share: float | None = None
    ) -> list[float]:
        """Return a figure of all trials of one algorithm, on a dataset and at a share if they are given.

        Shares at which ours does not meet the peer count only if they are asked for.
        """
        shares = COMPARED if share is None else (share,)
        return [
            getattr(trial, name)
            for trial in self.trials
            if trial.algorithm == algorithm and dataset in (None, trial.dataset) and trial.share in shares
        ]


def measure(run: AuditRun, name: str, *, report: Report = lambda message: None) -> None:
    """Audit a dataset with ours and the peer, and add the figures to the run.

    Parameters
    ----------
    run : AuditRun
        Has the settings, and gets the figures.
    name : str
        Name of the dataset.
    report : callable, default: does nothing
        Is told what is going on.
    """
    try:
        data = load(name)
    except StudyError as error:
        run.left_out[name] = str(error).removeprefix(f"dataset '{name}' ")
        return
    run.tables[name] = {"rows": len(data.y), "columns": data.X.shape[1], "classes": len(data.classes)}
    tables = {OURS: data.X, PEER: np.asarray(encode(ONE_HOT, data.X, data.X)[0])}
    for seed in range(run.settings["rounds"]):
        for share in ESTIMATED:
            noisy = flip_labels(data.y, share, random_state=seed)
            for algorithm, audit in AUDITS.items():
                if algorithm in run.left_out or (algorithm == PEER and share not in COMPARED):
                    continue
                report(f"{name}, round {seed + 1}, {share:.0%} of the labels changed: {algorithm}")
                started = perf_counter()
                quality, estimate = audit(tables[algorithm], noisy, seed, run.settings["threads"])
                seconds = perf_counter() - started
                auroc = _auroc(noisy != data.y, quality) if share else None
                run.trials.append(Trial(name, algorithm, share, seed, seconds, auroc, estimate))


def _our_audit(X: Any, labels: Labels, seed: int, n_threads: int) -> tuple[Floats, float]:
    audit = label_quality(X, labels, random_state=seed, n_jobs=n_threads)
    return audit.quality, audit.estimated_share


def _peer_audit(X: Floats, labels: Labels, seed: int, n_threads: int) -> tuple[Floats, None]:
    with warnings.catch_warnings():  # of classes with fewer rows than folds
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        warnings.filterwarnings("ignore", "Number of classes in training fold", RuntimeWarning)
        probabilities = cross_val_predict(
            RandomForestClassifier(n_jobs=n_threads, random_state=seed),
            X,
            labels,
            cv=StratifiedKFold(FOLDS, shuffle=True, random_state=seed),
            method="predict_proba",
        )
    return get_label_quality_scores(labels, probabilities), None


AUDITS: dict[str, Callable[..., tuple[Floats, float | None]]] = {OURS: _our_audit, PEER: _peer_audit}


def _auroc(changed: NDArray[np.bool_], quality: Floats) -> float:
    return float(roc_auc_score(changed, -quality))


def comparison(run: AuditRun) -> Table:
    """Return how well and how fast ours and the peer find changed labels: one row for each dataset."""
    table = Table(title="Changed labels found", title_justify="left")
    for head in ("dataset", "rows", "columns", "classes"):
        table.add_column(head, justify="left" if head == "dataset" else "right")
    for share in COMPARED:
        for algorithm in AUDITS:
            table.add_column(f"AUROC at {share:.0%}, {algorithm}", justify="right")
    for algorithm in AUDITS:
        table.add_column(f"seconds, {algorithm}", justify="right")
    for dataset in (*run.tables, None):
        if dataset is None:
            table.add_section()
        sizes = ["", "", ""] if dataset is None else [f"{size:,}" for size in run.tables[dataset].values()]
        aurocs = [
            _mean(run.figures("auroc", algorithm, dataset=dataset, share=share))
            for share in COMPARED
            for algorithm in AUDITS
        ]
        seconds = [_mean(run.figures("seconds", algorithm, dataset=dataset), 3) for algorithm in AUDITS]
        table.add_row(dataset or "mean", *sizes, *aurocs, *seconds)
    return table


def estimates(run: AuditRun) -> Table:
    """Return the estimated beside the true shares of wrong labels: one row for each dataset."""
    table = Table("dataset", title="Estimated share of wrong labels, by the true one", title_justify="left")
    for share in ESTIMATED:
        table.add_column(f"{share:.0%}", justify="right")
    for dataset in (*run.tables, None):
        if dataset is None:
            table.add_section()
        found = [run.figures("estimated_share", OURS, dataset=dataset, share=share) for share in ESTIMATED]
        table.add_row(dataset or "mean", *(f"{fmean(values):.1%}" for values in found))
    errors = [
        fmean(abs(value - share) for value in run.figures("estimated_share", OURS, share=share))
        for share in ESTIMATED
    ]
    table.add_row("mean absolute error", *(f"{error:.1%}" for error in errors))
    return table


def closing_lines(run: AuditRun) -> Iterator[str]:
    """Yield how to read the tables, what is not in them and why, and a line for each goal."""
    yield EXPLANATION
    yield from busy_lines(run.settings)
    yield from (f"{name}: {reason}" for name, reason in run.left_out.items())
    yield from (goal.describe(goal.measure(run)) for goal in GOALS)


def _mean(values: list[float], decimals: int = 4) -> str:
    return f"{fmean(values):.{decimals}f}" if values else ""


def _auroc_above(share: float | None) -> Callable[[AuditRun], float | None]:
    """Return a measure of how far our mean AUROC is above the peer's."""

    def difference(run: AuditRun) -> float | None:
        ours, theirs = (run.figures("auroc", algorithm, share=share) for algorithm in (OURS, PEER))
        return fmean(ours) - fmean(theirs) if theirs else None

    return difference


def _time_ratio(run: AuditRun) -> float | None:
    theirs = sum(run.figures("seconds", PEER))
    return sum(run.figures("seconds", OURS)) / theirs if theirs else None


GOALS = [
    Goal("audit", f"mean AUROC above that of {PEER}", "at least", 0.01, _auroc_above(None)),
    *(
        Goal("audit", f"the same at {share:.0%} of the labels changed", "more than", 0, _auroc_above(share))
        for share in COMPARED
    ),
    Goal("audit", f"time / that of {PEER}", "at most", 0.333, _time_ratio),
]
