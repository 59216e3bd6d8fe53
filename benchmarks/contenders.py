"""Contenders: algorithms with settings, each in a process of its own, which take turns on the same data."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, Self

import joblib

from benchmarks import machine
from benchmarks.algorithms import OURS, ROBUST, build, is_installed
from benchmarks.datasets import NOISE, split
from benchmarks.runner import LIBRARIES, Report
from kfhe.study.algorithms import versions_of
from kfhe.study.encoding import Categorical


@dataclass(frozen=True)
class Contender:
    """An algorithm with settings.

    Attributes
    ----------
    name, algorithm : str
        What it is called here, and in studies.
    sizes : tuple of int
        Sizes of the ensemble, the largest last.
    settings : dict
        Parameters that are not its defaults.
    """

    name: str
    algorithm: str
    sizes: tuple[int, ...] = (100,)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether it is one of our classifiers."""
        return self.algorithm in (OURS, ROBUST)

    def new(self, X: Any, n_components: int, n_threads: int) -> Any:
        """Return a classifier for the columns of a table, not fitted yet."""
        return build(self.algorithm, Categorical.of(X), n_components, n_threads, **self.settings)


class Entrant(Protocol):
    """What is made of a contender, in its process: of the file with the data, the contender, and threads."""

    def one_round(self) -> list[Any]:
        """Return what a round shows."""


@dataclass
class ContenderRun:
    """What all runs of contenders note; as `Run` has it."""

    settings: dict[str, Any]
    versions: dict[str, str | None] = field(default_factory=lambda: versions_of(LIBRARIES))
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def with_settings(cls, *, rounds: int, n_threads: int | list[int]) -> Self:
        """Return a run that has not measured anything yet."""
        noted = {"rounds": rounds, "threads": n_threads, "labels_changed": NOISE}
        return cls({**noted, **machine.facts()})

    def installed(self, contenders: Sequence[Contender]) -> list[Contender]:
        """Return those whose package is installed; note the others as left out."""
        present = [each for each in contenders if is_installed(each.algorithm)]
        self.left_out.update({each.name: "not installed" for each in contenders if each not in present})
        return present

    @contextmanager
    def data(self, dataset: str, report: Report) -> Iterator[Path]:
        """Make a dataset and note its shape; give the file that it is in."""
        report(f"{dataset}: making the data")
        data = split(dataset)
        rows, columns = data.X_train.shape
        self.tables[dataset] = {"rows": rows, "columns": columns, "classes": int(data.y_train.max()) + 1}
        with TemporaryDirectory(prefix="kfhe-bench-") as folder:
            file = Path(folder) / "data"
            joblib.dump(data, file)
            del data
            yield file

    def rounds(
        self,
        where: str,
        contenders: Sequence[Contender],
        entrant: Callable[[Path, Contender, int], Entrant],
        file: Path,
        n_threads: int,
        report: Report,
    ) -> Iterator[tuple[str, Any]]:
        """Make entrants, and have them take turns; yield the name and all that was shown, one by one."""
        with ExitStack() as stack:
            processes = {}
            for each in contenders:
                report(f"{where}: {each.name} gets ready")
                pool = ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn"))
                processes[each.name] = stack.enter_context(pool)
                pool.submit(_get_ready, entrant, file, each, n_threads).result()
            for i in range(self.settings["rounds"]):
                for name, process in processes.items():
                    report(f"{where}: {name}, round {i + 1}")
                    for shown in process.submit(_one_round).result():
                        yield name, shown


_entrants: list[Entrant] = []  # the one of this process


def _get_ready(
    entrant: Callable[[Path, Contender, int], Entrant], file: Path, contender: Contender, n_threads: int
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl+C ends it at once, without a traceback
    os.environ["OMP_NUM_THREADS"] = str(n_threads)  # read when libraries are loaded
    warnings.simplefilter("ignore")
    _entrants.append(entrant(file, contender, n_threads))


def _one_round() -> list[Any]:
    return _entrants[0].one_round()
