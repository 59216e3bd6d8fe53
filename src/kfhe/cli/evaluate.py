"""``kfhe evaluate``: how well a model does on rows that it was not trained on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfhe.cli import options
from kfhe.cli.bars import bar, rows_of
from kfhe.cli.echo import echo
from kfhe.metrics import METRICS, metrics_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kfhe.base import BaseKFHE
    from kfhe.table_files.labelled import LabelledTable

EXAMPLES = """
Examples:

  kfhe evaluate data.csv --target label

  kfhe evaluate data.csv -t label --folds 10 --model kfhe-l --drop id

  kfhe evaluate data.csv -t label --holdout 0.25

  kfhe evaluate test.csv -t label --model model.kfhe --json
"""
MOST_CLASSES = 20  # that a terminal has room for


@options.spread
def evaluate(
    context: typer.Context,
    labelled: options.LabelledInput,
    training: options.Training,
    model: Annotated[
        str,
        typer.Option(
            help="Train robust, kfhe-e or kfhe-l; or a model file: try that one, instead of training."
        ),
    ] = options.Model.robust,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Number of folds of cross-validation; default: 5.")
    ] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Train once, and test on this share of the rows, such as 0.25.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")] = False,
) -> None:
    """Tell how well a model does on rows that it was not trained on.

    Models are trained on parts of the table and tested on the rest: each
    row is tested once, in one of the folds, or a share of the rows is held
    out. Labels are taken to be right.
    """
    if folds is not None and holdout is not None:
        raise typer.BadParameter("choose one of --folds and --holdout")
    if holdout is not None and not 0 < holdout < 1:
        raise typer.BadParameter(f"must be between 0 and 1, got {holdout}", param_hint="--holdout")
    labelled.check()
    if model in list(options.Model):
        name = options.Model(model)
        training.check(name)
        data = labelled.read()
        for note in data.notes:
            echo(f"kfhe: {note}", err=True)
        new = training.new_model(name, labelled.categorical_features(data))
        with bar("Trees", new.n_estimators * (1 if holdout else folds or 5)) as advance:
            outcome = _of_training(data, new, folds or 5, holdout, advance)
    else:
        of_training = [field.name for field in fields(options.Training)]
        refused = [*of_training, "categorical", "drop", "drop_unlabelled", "folds", "holdout"]
        options.refuse(context, refused, "with a model file nothing is trained; leave it out")
        with bar("Rows", rows_of(labelled.table)) as advance:
            outcome = _of_model(_model_file(model), labelled, advance)
    if as_json:
        echo(json.dumps(outcome.as_dict(), indent=2))
    else:
        _print(outcome, labelled.target)


@dataclass(frozen=True)
class Outcome:
    """What came out of one or more tests.

    Attributes
    ----------
    how : str
        How the rows were tested, in words.
    classes : list
        The classes.
    scores : list of dict
        The metrics of each test.
    confusion : int array of shape (n_classes, n_classes)
        Rows by true and predicted class, of all tests together.
    """

    how: str
    classes: list[Any]
    scores: list[dict[str, float]]
    confusion: NDArray[np.int64]

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics that every test has."""
        return [metric for metric in METRICS if all(metric in score for score in self.scores)]

    def mean(self, metric: str) -> float:
        """Return a metric's average over the tests."""
        return sum(score[metric] for score in self.scores) / len(self.scores)

    def as_dict(self) -> dict[str, Any]:
        """Return everything in plain types."""
        return {
            "how": self.how,
            "rows": int(self.confusion.sum()),
            **{metric: self.mean(metric) for metric in self.metrics},
            "tests": self.scores,
            "classes": self.classes,
            "confusion_matrix": self.confusion.tolist(),
        }


def _outcome(how: str, classes: NDArray[Any], tests: list[tuple[Any, Any, Any]]) -> Outcome:
    """Make an outcome of true classes and predicted ones, as positions, and of scores."""
    import numpy as np
    from sklearn.metrics import confusion_matrix

    positions = np.arange(len(classes))
    metrics, confusion = [], np.zeros((len(classes), len(classes)), dtype=np.int64)
    for true, predicted, scores in tests:
        metrics.append(metrics_of(true, predicted, scores, len(classes)))
        confusion += confusion_matrix(true, predicted, labels=positions)
    return Outcome(how, classes.tolist(), metrics, confusion)


def _of_training(
    data: LabelledTable, model: BaseKFHE, folds: int, holdout: float | None, advance: Callable[[int], None]
) -> Outcome:
    import numpy as np
    from sklearn.base import clone

    classes, labels = np.unique(data.y, return_inverse=True)
    tests = []
    for train, test in _splits(data, labels, folds, holdout, model.random_state):
        trained = clone(model).fit(data.X.take(train), data.y[train], callbacks=[lambda row: advance(1)])
        X = data.X.take(test)
        tests.append((labels[test], np.searchsorted(classes, trained.predict(X)), trained.predict_proba(X)))
    how = f"{folds}-fold cross-validation" if holdout is None else "hold-out"
    return _outcome(f"{data.name}: {how}", classes, tests)


def _splits(
    data: LabelledTable, labels: NDArray[np.intp], folds: int, holdout: float | None, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the rows to train on and to test, with all classes in the same shares as far as can be."""
    import warnings

    import numpy as np
    from sklearn.model_selection import StratifiedKFold, train_test_split

    from kfhe.table_files import TableFileError

    data.check_can_be_split()
    if holdout is not None:
        train, test = train_test_split(
            np.arange(len(labels)), test_size=holdout, stratify=labels, random_state=seed
        )
        yield train, test
        return
    if max(data.class_counts().values()) < folds:
        raise TableFileError(f"{data.name}: no class has as many as {folds} rows; use fewer --folds")
    with warnings.catch_warnings():  # a class of fewer rows than folds is in as many as it can
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        yield from StratifiedKFold(folds, shuffle=True, random_state=seed).split(labels, labels)


def _model_file(name: str) -> Path:
    path = Path(name)
    if name != "-" and not path.exists():
        known = ", ".join(options.Model)
        raise typer.BadParameter(
            f"there is no model file {name}; kfhe fit writes one. Or train one of {known}",
            param_hint="--model",
        )
    return path


def _of_model(path: Path, labelled: options.LabelledInput, advance: Callable[[int], None]) -> Outcome:
    import numpy as np

    from kfhe.cli.models import read_forest
    from kfhe.cli.scoring import ModelReader
    from kfhe.table_files import open_table

    saved = read_forest(path)
    reader = ModelReader(saved.forest.schema, saved.forest.classes, named=saved.named)
    true, predictions = [], []
    with open_table(labelled.table, labelled.dialect) as rows:
        reader.match(rows, labelled.target)
        for features, labels in reader.labelled_batches(rows, labelled.target):
            true.append(labels)
            predictions.append(saved.predict(features))
            advance(len(labels))
    for note in reader.notes(rows):
        echo(f"kfhe: {note}", err=True)
    predicted, probabilities = map(np.concatenate, zip(*predictions, strict=True))
    tests = [(np.concatenate(true), predicted, probabilities)]
    return _outcome(f"{rows.name}: the model {path}", reader.classes, tests)


def _print(outcome: Outcome, target: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    from kfhe.cli.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 150  # room for all columns
    several = len(outcome.scores) > 1
    console.print(f"{outcome.how}, {outcome.confusion.sum():,} rows", markup=False, soft_wrap=True)
    metrics = Table("metric", "mean" if several else "value")
    if several:
        metrics.add_column("from")
        metrics.add_column("to")
    for metric in outcome.metrics:
        values = [score[metric] for score in outcome.scores]
        extremes = [f"{min(values):.4f}", f"{max(values):.4f}"] if several else []
        metrics.add_row(METRICS[metric], f"{outcome.mean(metric):.4f}", *extremes)
    console.print(metrics)
    if len(outcome.classes) > MOST_CLASSES:
        console.print(f"{len(outcome.classes)} classes: --json prints the confusion matrix.")
        return
    console.print("Rows by true class (down) and predicted class (across):")
    matrix = Table(escape(target))
    for label in outcome.classes:
        matrix.add_column(escape(str(label)), justify="right")
    matrix.add_column("right", justify="right")
    for position, label in enumerate(outcome.classes):
        counts = outcome.confusion[position]
        cells = [f"[bold]{count}[/]" if j == position else str(count) for j, count in enumerate(counts)]
        share = f"{counts[position] / counts.sum():.0%}" if counts.sum() else ""
        matrix.add_row(escape(str(label)), *cells, share)
    console.print(matrix)
