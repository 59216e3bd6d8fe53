"""``kfhe evaluate``: how well a model does on rows that it was not trained on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from math import ceil
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from kfhe.cli import options
from kfhe.cli.bars import bar, rows_of
from kfhe.cli.echo import echo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kfhe.base import BaseKFHE
    from kfhe.cli.outcome import Outcome
    from kfhe.tables.labelled import LabelledTable

EXAMPLES = """\b
Examples:
  kfhe evaluate data.csv --target label --folds 10 --repeats 3 --model kfhe-l
  kfhe evaluate data.csv -t label --holdout 0.25
  kfhe evaluate visits.csv -t label --groups patient
  kfhe evaluate data.csv -t label --plots pictures
  kfhe evaluate test.csv -t label --model model.kfhe --json
"""


@options.spread
def evaluate(
    context: typer.Context,
    labelled: options.LabelledInput,
    training: options.Training,
    model: Annotated[
        str,
        typer.Option(
            help="Train robust, kfhe-e or kfhe-l; or a model file: test that one, instead of training."
        ),
    ] = options.Model.robust,
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Number of folds of cross-validation; default: 5.", metavar="N"),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Repeat it with other folds, or other rows.", metavar="N")
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(help="Train once, and test on this share of the rows, such as 0.25.", metavar="SHARE"),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            help="Also draw confusion matrix, calibration and ROC curves, as png files in this folder.",
            metavar="FOLDER",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")] = False,
) -> None:
    """Tell how well a model does on rows that it was not trained on.

    Models are trained on parts of the table and tested on the rest: each
    row is tested once, in one of the folds, or a share of the rows is held
    out. With --groups, no group is trained on and tested as well. Labels
    are taken to be right.
    """
    if folds is not None and holdout is not None:
        raise typer.BadParameter("choose one of --folds and --holdout")
    if holdout is not None and not 0 < holdout < 1:
        raise typer.BadParameter(f"must be between 0 and 1, got {holdout}", param_hint="--holdout")
    labelled.check()
    if plots is not None:
        _check_plots(plots, labelled.table, Path(model))
    if model in list(options.Model):
        name = options.Model(model)
        training.check(name)
        data = labelled.read()
        for note in data.notes:
            echo(f"kfhe: {note}", err=True)
        new = training.new_model(name, labelled.categorical_features(data))
        tests = Tests(folds or 5, repeats or 1, holdout, training.random_state)
        with bar("Trees", new.n_estimators * len(tests)) as advance:
            outcome = _of_training(data, new, tests, advance)
    else:
        of_training = {field.name for field in fields(options.Training)} - {"decision"}
        refused = [*of_training, "read_as", "drop", "groups", "folds", "repeats", "holdout"]
        options.refuse(context, refused, "with a model file nothing is trained; leave it out")
        with bar("Rows", rows_of(labelled.table)) as advance:
            outcome = _of_model(_model_file(model), labelled, training.decision, advance)
    if plots is not None:  # first, as whoever reads what is printed may stop reading
        _write_plots(outcome, plots)
    if as_json:
        echo(json.dumps(outcome.as_dict(), indent=2))
    else:
        outcome.print()


def _check_plots(folder: Path, *inputs: Path) -> None:
    """Raise before anything is trained if the pictures couldn't be written."""
    from kfhe.cli.outcome import PICTURES

    options.check_plotting()
    options.check_folder(folder, [f"{name}.png" for name in PICTURES], *inputs, option="--plots")


def _write_plots(outcome: Outcome, folder: Path) -> None:
    from kfhe.files import write_whole
    from kfhe.look.counts import counted
    from kfhe.plotting.display import entitle, rendered

    for name, display in outcome.pictures():
        entitle(display.figure_, f"{outcome.how}, {counted(int(outcome.confusion.sum()), 'row')}")
        write_whole(folder / f"{name}.png", rendered(display.figure_, "png"))
    echo(f"The pictures are in {folder}", err=True)


@dataclass(frozen=True)
class Tests:
    """How the rows are parted to train and to test: by folds, unless a share of them is held out."""

    folds: int
    repeats: int
    holdout: float | None
    seed: int

    def __len__(self) -> int:
        return self.repeats * (self.folds if self.holdout is None else 1)

    def __str__(self) -> str:
        how = f"{self.folds}-fold cross-validation" if self.holdout is None else "hold-out"
        return how if self.repeats == 1 else f"{how}, {self.repeats} times"

    def splits(
        self, data: LabelledTable, labels: NDArray[np.intp]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows to train on and to test; all classes have the same shares as far as can be."""
        data.check_can_be_split()
        parted = _splits if data.groups is None else _splits_of_groups
        for seed in range(self.seed, self.seed + self.repeats):
            yield from parted(data, labels, self.folds, self.holdout, seed % 2**32)


def _of_training(data: LabelledTable, model: BaseKFHE, how: Tests, advance: Callable[[int], None]) -> Outcome:
    import numpy as np
    from sklearn.base import clone

    from kfhe.cli.outcome import Outcome, Predictions
    from kfhe.cli.remarks import remarks_of_tests, tell, without_warnings

    classes, labels = np.unique(data.y, return_inverse=True)
    tests, remarks = [], list[tuple[str, ...]]()
    for train, test in how.splits(data, labels):
        groups = None if data.groups is None else data.groups[train]
        with without_warnings():
            trained = clone(model).fit(
                data.X[train], data.y[train], groups=groups, callbacks=[lambda row: advance(1)]
            )
        X = data.X[test]
        predicted = np.searchsorted(classes, trained.predict(X))
        scores = np.zeros((len(test), len(classes)))  # 0 for a class that none of the other groups has
        scores[:, np.searchsorted(classes, trained.classes_)] = trained.predict_proba(X)
        tests.append(Predictions(labels[test], predicted, scores))
        remarks.append(getattr(trained, "remarks_", ()))
    tell(remarks_of_tests(remarks))
    grouped = "" if data.group_column is None else f", groups by {data.group_column!r}"
    return Outcome(f"{data.name}: {how}{grouped}", data.target, classes, tests)


def _splits(
    data: LabelledTable, labels: NDArray[np.intp], folds: int, holdout: float | None, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the rows to train on and to test, each class in the same shares."""
    import warnings

    import numpy as np
    from sklearn.model_selection import StratifiedKFold, train_test_split

    from kfhe.tables.files import TableFileError

    if holdout is not None:
        n_test, n_classes = ceil(holdout * len(labels)), len(data.class_counts())
        if min(n_test, len(labels) - n_test) < n_classes:
            raise TableFileError(
                f"{data.name}: --holdout {holdout:g} tests {n_test} of {len(labels)} rows; to train on and "
                f"to test there must be {n_classes} at least, one of each class"
            )
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


def _splits_of_groups(
    data: LabelledTable, labels: NDArray[np.intp], folds: int, holdout: float | None, seed: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Yield the same; no group is in both."""
    import warnings

    import numpy as np
    from sklearn.model_selection import GroupShuffleSplit, StratifiedGroupKFold

    from kfhe.look.counts import counted
    from kfhe.tables.files import TableFileError

    assert data.groups is not None
    groups = np.unique(data.groups, return_inverse=True)[1]
    called = f"{data.name}: column {data.group_column!r} of groups"
    n_groups = len(np.unique(groups))
    for label, name in enumerate(data.class_counts()):
        if len(np.unique(groups[labels == label])) < 2:
            raise TableFileError(
                f"{called}: class {name!r} is in one group only, so it can't be trained on and tested as "
                "well; leave its rows out, or join the class with another"
            )
    if holdout is not None:
        n_test = ceil(holdout * n_groups)
        if n_test == n_groups:
            raise TableFileError(
                f"{called}: --holdout {holdout:g} tests all of {n_groups} groups; one at least "
                "must be there to train on"
            )
        yield from GroupShuffleSplit(1, test_size=n_test, random_state=seed).split(labels, labels, groups)
        return
    if n_groups < folds:
        raise TableFileError(
            f"{called}: there are {counted(n_groups, 'group')} only; use fewer than {folds} --folds"
        )
    with warnings.catch_warnings():  # a class of fewer groups than folds is in as many as it can
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        kept_whole = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
        yield from kept_whole.split(labels, labels, groups)


def _model_file(name: str) -> Path:
    path = Path(name)
    if name != "-" and not path.exists():
        known = ", ".join(options.Model)
        raise typer.BadParameter(
            f"there is no model file {name}; kfhe fit writes one. Or train one of {known}",
            param_hint="--model",
        )
    return path


def _of_model(
    path: Path, labelled: options.LabelledInput, decision: str | None, advance: Callable[[int], None]
) -> Outcome:
    import numpy as np

    from kfhe.cli.models import read_forest
    from kfhe.cli.outcome import Outcome, Predictions
    from kfhe.cli.scoring import ModelReader
    from kfhe.tables.files import TableFileError, open_table

    saved = read_forest(path).deciding(options.decision_of(decision))
    reader = ModelReader(saved.forest.schema, saved.forest.classes, named=saved.named)
    true, predictions = [], []
    with open_table(labelled.table, labelled.dialect) as rows:
        reader.match(rows, labelled.target)
        for features, labels in reader.labelled_batches(
            rows, labelled.target, drop_unlabelled=labelled.drop_unlabelled
        ):
            true.append(labels)
            predictions.append(saved.predict(features))
            advance(len(labels))
    if not any(map(len, true)):
        raise TableFileError(f"{rows.name}: no row has a label in {labelled.target!r}")
    for note in reader.notes(rows):
        echo(f"kfhe: {note}", err=True)
    predicted, probabilities = map(np.concatenate, zip(*predictions, strict=True))
    test = Predictions(np.concatenate(true), predicted, probabilities)
    if np.array_equal(np.bincount(test.true, minlength=len(reader.classes)), saved.forest.class_counts):
        echo(
            f"kfhe: {rows.name}: has as many rows of each class as the model was trained on. If it is that "
            f"table, the figures are too good; for honest ones: kfhe evaluate {quote(str(labelled.table))} "
            f"--target {quote(labelled.target)}",
            err=True,
        )
    return Outcome(f"{rows.name}: the model {path}", labelled.target, reader.classes, [test])
