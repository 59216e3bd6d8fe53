"""``python -m benchmarks.review FOLDER``: what 100 looks at labels that are really wrong are worth.

The folder has tables with a column ``given`` of labels as somebody wrote them down, and a column ``true`` of
the corrected ones; columns whose names begin with either are no features. Somebody who knows the truth judges
100 labels of the training rows: those that the audit ranks first, which hears of the decisions after each 25;
those that its first ranking has; and those that cleanlab ranks first.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import GroupShuffleSplit

from benchmarks.audit import AUDITS, PEER
from kfhe import RobustKFHEClassifier
from kfhe.audit import LabelAudit, label_quality
from kfhe.review import Decision, apply_decisions, audit_again, wrong_chances
from kfhe.review.cells import label_text, row_digests

LOOKS, BATCH, LOOKS_FOR_SHARE = 100, 25, 50
HELD_OUT = 0.3
OURS, AT_ONCE, GIVEN = "kfhe", "kfhe at once", "given"
# Tables whose test rows are in a file of their own, and further columns of given labels
TEST_FILES = {"music_genre": "music_genre_cleantest"}
OTHER_GIVEN = {"music_genre": "given_majority"}

Labels = NDArray[Any]


@dataclass(frozen=True)
class Task:
    """A table with given and true labels: training rows, and test rows with true labels."""

    name: str
    X: pd.DataFrame
    given: Labels
    true: Labels
    X_test: pd.DataFrame
    true_test: Labels

    @property
    def n_wrong(self) -> int:
        """Number of wrong labels."""
        return int((self.given != self.true).sum())


@dataclass(frozen=True)
class Outcome:
    """What came of a table: wrong labels left, macro F1 and AUROC by each order; the share's range."""

    task: Task
    left: dict[str, int]
    f1: dict[str, float]
    auroc: dict[str, float]
    low: float
    high: float
    estimate: float
    by_chance: float

    @property
    def share(self) -> float:
        """The true share of wrong labels."""
        return self.task.n_wrong / len(self.task.given)


def tables(folder: Path) -> Iterator[tuple[str, Path, pd.DataFrame, Labels, Labels]]:
    """Yield the tables of a folder: name, file, features, given and true labels."""
    for path in sorted(folder.glob("*.csv")):
        if path.stem in TEST_FILES.values():
            continue
        table = pd.read_csv(path)
        for column in ("given", OTHER_GIVEN.get(path.stem)):
            if column is not None:
                name = path.stem if column == "given" else f"{path.stem}, {column.removeprefix('given_')}"
                yield name, path, _features(table), table[column].to_numpy(), table["true"].to_numpy()


def tasks(folder: Path) -> Iterator[Task]:
    """Yield the tables of a folder; equal rows are never split between training and test."""
    for name, path, X, given, true in tables(folder):
        groups = pd.util.hash_pandas_object(X, index=False)
        split = GroupShuffleSplit(1, test_size=HELD_OUT, random_state=0)
        train, test = next(split.split(X, groups=groups))
        X_test, true_test = X.iloc[test], true[test]
        if path.stem in TEST_FILES:
            other = pd.read_csv(folder / f"{TEST_FILES[path.stem]}.csv")
            X_test, true_test = _features(other), other["true"].to_numpy()
        rows = X.iloc[train].reset_index(drop=True)
        yield Task(name, rows, given[train], true[train], X_test, true_test)


def _features(table: pd.DataFrame) -> pd.DataFrame:
    return table[[name for name in table if not name.startswith(("given", "true"))]]


def judged(task: Task, rows: NDArray[np.intp]) -> list[Decision]:
    """Return what somebody who knows the truth decides about some rows; what nobody is can't be chosen."""
    known = set(task.given.tolist())
    found = []
    for row, digest in zip(rows.tolist(), row_digests(task.X, rows), strict=True):
        given, true = label_text(task.given[row]), label_text(task.true[row])
        kind = "keep" if given == true else "change" if task.true[row] in known else "unsure"
        found.append(Decision(row, digest, "given", given, kind, "" if kind == "unsure" else true))
    return found


def looked_at(task: Task, first: LabelAudit, n_threads: int) -> list[Decision]:
    """Return the decisions on the labels that the audit asks for, which hears of them after each batch."""
    decisions: list[Decision] = []
    audit = first
    while len(decisions) < min(LOOKS, len(task.given)):
        if decisions:
            audit = audit_again(task.X, task.given, decisions, random_state=0, n_jobs=n_threads)
        seen = {each.row for each in decisions}
        order = [row for row in np.argsort(audit.rank).tolist() if row not in seen]
        decisions += judged(task, np.array(order[: min(BATCH, LOOKS - len(decisions))]))
    return decisions


def trial(task: Task, n_threads: int) -> Outcome:
    """Judge labels of a table in each of the ways, and train on what comes of it."""
    first = label_quality(task.X, task.given, random_state=0, n_jobs=n_threads)
    at_once = np.argsort(first.rank)[:LOOKS]
    filled = task.X.fillna(task.X.median()).fillna(0).to_numpy()
    labels = np.searchsorted(first.classes, task.given)
    theirs = np.argsort(AUDITS[PEER](filled, labels, 0, n_threads)[0], kind="stable")[:LOOKS]
    chosen = {
        GIVEN: [],
        OURS: looked_at(task, first, n_threads),
        AT_ONCE: judged(task, at_once),
        PEER: judged(task, theirs),
    }
    cleaned = {way: apply_decisions(each, task.X, task.given).labels for way, each in chosen.items()}
    scores = {way: _scores(task, labels, n_threads) for way, labels in cleaned.items()}
    seen = np.isin(np.arange(len(task.given)), at_once[:LOOKS_FOR_SHARE])
    found = wrong_chances(first, seen, task.given != task.true)
    return Outcome(
        task,
        {way: int((labels != task.true).sum()) for way, labels in cleaned.items()},
        {way: each[0] for way, each in scores.items()},
        {way: each[1] for way, each in scores.items()},
        found.low,
        found.high,
        found.share,
        first.estimated_share,
    )


def _scores(task: Task, labels: Labels, n_threads: int) -> tuple[float, float]:
    """Return macro F1 and AUROC on the true labels of the test rows, of classes that were learnt."""
    model = RobustKFHEClassifier(random_state=0, n_jobs=n_threads).fit(task.X, labels)
    shares, truth = model.predict_proba(task.X_test), task.true_test
    f1 = f1_score(truth, model.predict(task.X_test), average="macro", zero_division=0)
    aurocs = [
        roc_auc_score(truth == name, shares[:, position])
        for position, name in enumerate(model.classes_)
        if 0 < (truth == name).sum() < len(truth)
    ]
    return float(f1), fmean(aurocs)


def results(outcomes: list[Outcome]) -> Table:
    """Return what came of each table, and the means."""
    table = Table(title=f"{LOOKS} looks", title_justify="left")
    table.add_column("table")
    heads = ["rows", "wrong before", *(f"left, {way}" for way in (OURS, AT_ONCE, PEER))]
    heads += [f"{metric}, {way}" for metric in ("F1", "AUROC") for way in (GIVEN, OURS, PEER)]
    for head in heads:
        table.add_column(head, justify="right")
    for each in outcomes:
        counts = [len(each.task.given), each.task.n_wrong, *(each.left[way] for way in (OURS, AT_ONCE, PEER))]
        figures = [metric[way] for metric in (each.f1, each.auroc) for way in (GIVEN, OURS, PEER)]
        table.add_row(each.task.name, *map(str, counts), *(f"{figure:.3f}" for figure in figures))
    table.add_section()
    means = [fmean(len(each.task.given) for each in outcomes), fmean(each.task.n_wrong for each in outcomes)]
    means += [fmean(each.left[way] for each in outcomes) for way in (OURS, AT_ONCE, PEER)]
    scores = [
        fmean(getattr(each, metric)[way] for each in outcomes)
        for metric in ("f1", "auroc")
        for way in (GIVEN, OURS, PEER)
    ]
    table.add_row("mean", *(f"{mean:.1f}" for mean in means), *(f"{score:.4f}" for score in scores))
    return table


def shares(outcomes: list[Outcome]) -> Table:
    """Return the estimated shares of wrong labels beside the true ones."""
    table = Table(title=f"Share of wrong labels, after {LOOKS_FOR_SHARE} looks", title_justify="left")
    for head in ("table", "true", "by chance, before", "estimate", "from", "to", "covered"):
        table.add_column(head, justify="left" if head == "table" else "right")
    for each in outcomes:
        figures = (each.share, each.by_chance, each.estimate, each.low, each.high)
        covered = "yes" if each.low <= each.share <= each.high else "no"
        table.add_row(each.task.name, *(f"{figure:.1%}" for figure in figures), covered)
    return table


def main(
    folder: Annotated[Path, typer.Argument(help="Where the tables are.")],
    data: Annotated[list[str] | None, typer.Option(help="A table, may be repeated.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads for everybody.")] = 2,
) -> None:
    """Judge 100 labels of each table, and say what that was worth."""
    outcomes = []
    for task in tasks(folder):
        if not data or task.name in data:
            with Console(stderr=True).status(task.name), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "The least populated class")
                outcomes.append(trial(task, threads))
    if not outcomes:
        raise typer.BadParameter(f"there is no such table in {folder}")
    console = Console(width=220)
    console.print(results(outcomes))
    console.print(shares(outcomes))
    corrected = {
        way: fmean(each.task.n_wrong - each.left[way] for each in outcomes) for way in (OURS, AT_ONCE, PEER)
    }
    for way, count in corrected.items():
        better = sum(each.left[way] < each.left[PEER] for each in outcomes)
        console.print(
            f"{way}: {count:.1f} wrong labels corrected on average; fewer left than {PEER} on {better}"
        )
    for metric in ("f1", "auroc"):
        better = sum(getattr(each, metric)[OURS] > getattr(each, metric)[GIVEN] for each in outcomes)
        console.print(f"{metric}: better than with the given labels on {better} of {len(outcomes)}")
    covered = sum(each.low <= each.share <= each.high for each in outcomes)
    console.print(f"The range covers the true share on {covered} of {len(outcomes)}")


if __name__ == "__main__":
    typer.run(main)
