"""``python -m benchmarks.estimates [FOLDER]``: estimated shares of wrong labels beside the true ones.

Labels of the study's datasets are changed by chance; the folder has tables with real mistakes, as for
``benchmarks.review``. Somebody who knows the truth looks at the first suspects of an audit. After some looks
the share is estimated by the page, which knows the first audit only, and by an audit that has heard of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.datasets import load
from benchmarks.review import Task, judged, tables
from kfhe.audit import label_quality
from kfhe.noise import flip_labels
from kfhe.review import audit_again, wrong_chances
from kfhe.study.errors import StudyError
from kfhe.study.sources import data_folder, tables_of

LOOKS = (10, 25, 50)
RATES = (0.05, 0.1, 0.2)
PAGE, AGAIN = "page", "next audit"


@dataclass(frozen=True)
class Estimate:
    """A share of wrong labels: in truth, and estimated after some looks."""

    table: str
    by_chance: bool
    way: str
    looks: int
    true: float
    share: float
    low: float
    high: float

    @property
    def covered(self) -> bool:
        """Whether the range has the true share in it."""
        return self.low <= self.true <= self.high


def chance_tables(names: list[str]) -> Iterator[Task]:
    """Yield datasets of the study with labels changed by chance; those that are not here are left out."""
    for name in names:
        try:
            data = load(name)
        except StudyError:
            continue
        for rate in RATES:
            given = flip_labels(data.y, rate, random_state=0)
            yield Task(f"{name}, {rate:.0%}", data.X, given, data.y, data.X[:0], data.y[:0])


def real_tables(folder: Path) -> Iterator[Task]:
    """Yield the tables of a folder, which have real mistakes."""
    for name, _, X, given, true in tables(folder):
        yield Task(name, X, given, true, X[:0], true[:0])


def estimates(task: Task, *, by_chance: bool, n_threads: int) -> Iterator[Estimate]:
    """Yield the estimates of a table before anybody has looked, and after some looks."""
    settings = {"random_state": 0, "n_jobs": n_threads}
    first = label_quality(task.X, task.given, **settings)
    wrong = task.given != task.true
    true = float(wrong.mean())
    for looks in (0, *LOOKS):
        found = wrong_chances(first, first.rank <= looks, wrong)
        yield Estimate(task.name, by_chance, PAGE, looks, true, found.share, found.low, found.high)
        if looks:
            decisions = judged(task, np.argsort(first.rank)[:looks])
            again = audit_again(task.X, task.given, decisions, **settings)
            yield Estimate(
                task.name, by_chance, AGAIN, looks, true, again.estimated_share, *again.share_range
            )


def shares(found: list[Estimate]) -> Table:
    """Return the page's estimates beside the true shares."""
    table = Table(title=f"Share of wrong labels, by the {PAGE}", title_justify="left")
    for head in ("table", "true", *(f"after {looks}" for looks in (0, *LOOKS))):
        table.add_column(head, justify="left" if head == "table" else "right")
    for name in dict.fromkeys(each.table for each in found):
        of_table = [each for each in found if each.table == name and each.way == PAGE]
        cells = [
            f"{each.share:.1%} ({each.low:.1%} to {each.high:.1%}){'' if each.covered else ' no'}"
            for each in of_table
        ]
        table.add_row(name, f"{of_table[0].true:.1%}", *cells)
    return table


def summary(found: list[Estimate]) -> Table:
    """Return how near the estimates are, by the number of looks."""
    table = Table(title="Estimates", title_justify="left")
    for head in ("mistakes", "by", "looks", "tables", "mean error", "covered", "median width"):
        table.add_column(head, justify="left" if head in ("mistakes", "by") else "right")
    for by_chance in (True, False):
        for way in (PAGE, AGAIN):
            for looks in (0, *LOOKS):
                cell = [e for e in found if (e.by_chance, e.way, e.looks) == (by_chance, way, looks)]
                if cell:
                    table.add_row(
                        "by chance" if by_chance else "real",
                        way,
                        str(looks),
                        str(len(cell)),
                        f"{fmean(abs(each.share - each.true) for each in cell):.3f}",
                        f"{fmean(each.covered for each in cell):.0%}",
                        f"{median(each.high - each.low for each in cell):.3f}",
                    )
    return table


def main(
    folder: Annotated[Path | None, typer.Argument(help="Where tables with real mistakes are.")] = None,
    data: Annotated[list[str] | None, typer.Option(help="A dataset of the study, may be repeated.")] = None,
    threads: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    """Estimate the share of wrong labels of each table after 0, 10, 25 and 50 honest looks."""
    names = data or tables_of(data_folder(None))
    tasks = [(task, True) for task in chance_tables(names)]
    tasks += [(task, False) for task in real_tables(folder)] if folder else []
    found: list[Estimate] = []
    for task, by_chance in tasks:
        with Console(stderr=True).status(task.name), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found += estimates(task, by_chance=by_chance, n_threads=threads)
    console = Console(width=180)
    console.print(shares(found))
    console.print(summary(found))


if __name__ == "__main__":
    typer.run(main)
