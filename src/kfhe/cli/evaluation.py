"""The results of testing a model: scores, tables for the terminal, and plots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.table import Table
from rich.text import Text

from kfhe.cli.console import Console, table
from kfhe.display.text import counted, shortened
from kfhe.metrics import METRICS, ClassMetrics, class_metrics, metrics_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kfhe.plotting import Display

MOST_CLASSES = 20  # maximum number of classes that are listed one by one
LISTED = 10  # number of classes, if there are more, and of mistakes
NAME = 24  # characters of a class name in a table; fewer in a matrix
PICTURES = ("confusion", "calibration", "roc")


class Predictions(NamedTuple):
    """Tested rows: true and predicted classes, by position, and the scores."""

    true: NDArray[np.intp]
    predicted: NDArray[np.intp]
    scores: NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """The results of one or more tests.

    Attributes
    ----------
    how : str
        How the rows were tested.
    target : str
        Name of the target.
    classes : ndarray
        The classes.
    tests : list of Predictions
        The rows of each test.
    """

    how: str
    target: str
    classes: NDArray[Any]
    tests: list[Predictions]

    @cached_property
    def scores(self) -> list[dict[str, float]]:
        """The metrics of each test."""
        return [metrics_of(*test, len(self.classes)) for test in self.tests]

    @cached_property
    def likeliest(self) -> dict[str, float] | None:
        """Metrics of predicting the most likely class; None if that is what was predicted."""
        if all((test.scores.argmax(axis=1) == test.predicted).all() for test in self.tests):
            return None
        scores = [
            metrics_of(test.true, test.scores.argmax(axis=1), test.scores, len(self.classes))
            for test in self.tests
        ]
        of_decisions = ("f1_macro", "accuracy", "balanced_accuracy")
        return {name: sum(score[name] for score in scores) / len(scores) for name in of_decisions}

    @cached_property
    def together(self) -> Predictions:
        """The rows of all tests."""
        import numpy as np

        return Predictions(*map(np.concatenate, zip(*self.tests, strict=True)))

    @cached_property
    def confusion(self) -> NDArray[np.int64]:
        """Number of rows by true and predicted class, in all tests."""
        from sklearn.metrics import confusion_matrix

        together = self.together
        return confusion_matrix(together.true, together.predicted, labels=range(len(self.classes)))

    @cached_property
    def by_class(self) -> list[ClassMetrics]:
        """Precision, recall and F1 of each class, in all tests."""
        return class_metrics(self.confusion)

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics that all tests have."""
        return [metric for metric in METRICS if all(metric in score for score in self.scores)]

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the tests."""
        return sum(score[metric] for score in self.scores) / len(self.scores)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain types."""
        classes = self.classes.tolist()
        return {
            "how": self.how,
            "rows": int(self.confusion.sum()),
            **{metric: self.mean(metric) for metric in self.metrics},
            "likeliest": self.likeliest,
            "tests": self.scores,
            "classes": classes,
            "by_class": [
                {"class": label, **found._asdict()}
                for label, found in zip(classes, self.by_class, strict=True)
            ],
            "confusion_matrix": self.confusion.tolist(),
        }

    def print(self) -> None:
        """Print the metrics, those of each class, and the most frequent mistakes."""
        console = Console()
        console.print(f"{self.how}, {counted(int(self.confusion.sum()), 'row')}", soft_wrap=True)
        console.print(self._metrics_table())
        if self.likeliest:
            figures = ", ".join(f"{METRICS[name]} {value:.4f}" for name, value in self.likeliest.items())
            console.print(
                "Predictions favour rare classes. With --decision likeliest, the most probable class is "
                f"predicted: {figures}."
            )
        if len(self.classes) > MOST_CLASSES:
            console.print(f"The {LISTED} worst of {len(self.classes)} classes; --json lists all:")
        console.print(self._class_table())
        if len(self.classes) <= MOST_CLASSES and _fits(console, matrix := self._matrix_table()):
            console.print("Confusion matrix: true classes down, predicted classes across")
            console.print(matrix)
        elif mistakes := self._mistakes():
            console.print("The most frequent mistakes; --json has the whole confusion matrix:")
            console.print(self._mistakes_table(mistakes))

    def _metrics_table(self) -> Table:
        several = len(self.scores) > 1
        rows = []
        for metric in self.metrics:
            values = [score[metric] for score in self.scores]
            shown = [self.mean(metric), min(values), max(values)] if several else values
            rows.append([METRICS[metric], *(f"{value:.4f}" for value in shown)])
        return table(["metric", "mean", "from", "to"] if several else ["metric", "value"], rows, numbers=True)

    def _class_table(self) -> Table:
        found = sorted(zip(self.classes, self.by_class, strict=True), key=_badness)[:LISTED]
        if len(self.classes) <= MOST_CLASSES:
            found = list(zip(self.classes, self.by_class, strict=True))
        rows = []
        for label, by in found:
            shares = ["" if share is None else f"{share:.4f}" for share in by[1:]]
            rows.append([shortened(label, NAME), f"{by.rows}", *shares])
        return table([shortened(self.target, NAME), "rows", "precision", "recall", "F1"], rows, numbers=True)

    def _matrix_table(self) -> Table:
        names = [shortened(label, NAME // 2) for label in self.classes]
        rows: list[list[str | Text]] = []
        for k, (name, counts) in enumerate(zip(names, self.confusion, strict=True)):
            shown = [Text(str(count), style="bold" if j == k else "") for j, count in enumerate(counts)]
            rows.append([name, *shown])
        return table([shortened(self.target, NAME // 2), *names], rows, numbers=True)

    def _mistakes(self) -> list[tuple[int, int]]:
        """Return the most frequent pairs of a true and a predicted class."""
        import numpy as np

        wrong = self.confusion * (1 - np.eye(len(self.classes), dtype=np.int64))
        order = np.argsort(-wrong, axis=None, kind="stable")[:LISTED]
        return [
            (true, other)
            for true, other in zip(*np.unravel_index(order, wrong.shape), strict=True)
            if wrong[true, other]
        ]

    def _mistakes_table(self, mistakes: list[tuple[int, int]]) -> Table:
        rows = []
        for true, other in mistakes:
            names = [shortened(self.classes[k], NAME) for k in (true, other)]
            count = self.confusion[true, other]
            rows.append([*names, str(count), f"{count / self.by_class[true].rows:.0%}"])
        shown = table([shortened(self.target, NAME), "taken for", "rows", "of the class"], rows, numbers=True)
        shown.columns[1].justify = "left"
        return shown

    def pictures(self) -> Iterator[tuple[str, Display]]:
        """Yield the plots of all tests together, with their names."""
        import matplotlib

        from kfhe import plotting

        matplotlib.use("agg")  # no window
        together, classes = self.together, self.classes
        true, scores = classes[together.true], together.scores
        yield "confusion", plotting.ConfusionMatrixDisplay(self.confusion, display_labels=classes).plot()
        yield "calibration", plotting.CalibrationDisplay.from_predictions(true, scores, classes=classes)
        if len(set(together.true.tolist())) > 1:
            yield "roc", plotting.RocCurveDisplay.from_predictions(true, scores, classes=classes)


def _badness(found: tuple[Any, ClassMetrics]) -> float:
    """Return the F1 of a class; it is undefined without rows and predictions."""
    return 2.0 if found[1].f1 is None else found[1].f1


def _fits(console: Console, table: Table) -> bool:
    """Whether a table fits into the width of the terminal."""
    return console.measure(table, options=console.options.update(width=10_000)).maximum <= console.width
