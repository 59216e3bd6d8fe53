"""``kfhe evaluate``: estimate how good a model is on rows that it was not trained on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from math import ceil
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfhe.cli import options
from kfhe.cli.bars import bar, rows_of
from kfhe.cli.echo import echo

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kfhe.base import BaseKFHE
    from kfhe.cli.evaluation import Outcome
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
        typer.Option(help="robust, kfhe-e or kfhe-l to train; or a model file to test as it is."),
    ] = options.Model.robust,
    folds: Annotated[
        int | None,
        typer.Option(min=2, help="Number of folds of cross-validation; default: 5.", metavar="N"),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Number of repeats, each with other folds or rows.", metavar="N")
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(help="Hold out this share of the rows for testing, such as 0.25.", metavar="SHARE"),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(
            help="Draw confusion matrix, calibration and ROC curves to png files in this folder.",
            metavar="FOLDER",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate how good a model is on rows that it was not trained on.

    By cross-validation: the model is trained on all folds but one and
    tested on that one, in turn. With --holdout, a share of the rows is held
    out instead. With --groups, no group is in both. The labels are assumed
    to be right.
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
        data = labelled.read_file(labelled.table)
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
    if plots is not None:  # before printing, because the reader of a pipe may stop early
        _write_plots(outcome, plots)
    if as_json:
        echo(json.dumps(outcome.as_dict(), indent=2))
    else:
        outcome.print()


def _check_plots(folder: Path, *inputs: Path) -> None:
    """Raise before training if the plots couldn't be written."""
    from kfhe.cli.evaluation import PICTURES

    options.check_plotting()
    options.check_folder(folder, [f"{name}.png" for name in PICTURES], *inputs, option="--plots")


def _write_plots(outcome: Outcome, folder: Path) -> None:
    from kfhe.display.text import counted
    from kfhe.files import write_whole
    from kfhe.plotting.base import entitle, rendered

    for name, display in outcome.pictures():
        entitle(display.figure_, f"{outcome.how}, {counted(int(outcome.confusion.sum()), 'row')}")
        write_whole(folder / f"{name}.png", rendered(display.figure_, "png"))
    echo(f"The plots are in {folder}", err=True)


@dataclass(frozen=True)
class Tests:
    """How rows are split into training and testing: by folds, or with a share held out."""

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
        """Yield the rows for training and testing: stratified, and no group in both."""
        import warnings

        import numpy as np
        from sklearn import model_selection as split

        data.check_can_be_split()
        groups = None if data.groups is None else np.unique(data.groups, return_inverse=True)[1]
        n = len(labels) if groups is None else int(groups.max()) + 1
        n_test = 0 if self.holdout is None else ceil(self.holdout * n)
        self._check(data, labels, groups, n, n_test)
        held_out = split.StratifiedShuffleSplit if groups is None else split.GroupShuffleSplit
        folds = split.StratifiedKFold if groups is None else split.StratifiedGroupKFold
        for seed in range(self.seed, self.seed + self.repeats):
            random: dict[str, Any] = {"random_state": seed % 2**32}
            splitter: Any = folds(self.folds, shuffle=True, **random)
            if n_test:
                splitter = held_out(1, test_size=n_test, **random)
            with warnings.catch_warnings():  # a class with fewer rows than folds is in as many as possible
                warnings.filterwarnings("ignore", "The least populated class", UserWarning)
                yield from splitter.split(labels, labels, groups)

    def _check(self, data: LabelledTable, labels: NDArray[np.intp], groups: Any, n: int, n_test: int) -> None:
        """Raise if there are too few rows or groups to split."""
        from kfhe.display.text import counted
        from kfhe.tables.errors import TableFileError

        counts, problem = data.class_counts(), None
        if groups is None:
            if n_test and min(n_test, n - n_test) < len(counts):
                problem = (
                    f"--holdout {self.holdout:g} tests {n_test} of {n} rows; training and testing need "
                    f"at least {len(counts)} each, one of each class"
                )
            elif not n_test and max(counts.values()) < self.folds:
                problem = f"no class has as many as {self.folds} rows; use fewer --folds"
        else:
            in_one = [name for label, name in enumerate(counts) if len({*groups[labels == label]}) < 2]
            if in_one:
                problem = (
                    f"class {in_one[0]!r} is in one group only, so it can't be both trained on and tested; "
                    "leave its rows out, or merge the class with another"
                )
            elif n_test == n:
                problem = (
                    f"--holdout {self.holdout:g} tests all of {n} groups; at least one is needed for training"
                )
            elif n < self.folds and not n_test:
                problem = f"there are only {counted(n, 'group')}; use fewer than {self.folds} --folds"
        if problem:
            where = "" if groups is None else f" column {data.roles.groups!r} of groups:"
            raise TableFileError(f"{data.name}:{where} {problem}")


def _of_training(data: LabelledTable, model: BaseKFHE, how: Tests, advance: Callable[[int], None]) -> Outcome:
    import numpy as np
    from sklearn.base import clone

    from kfhe.cli.console import tell, without_warnings
    from kfhe.cli.evaluation import Outcome, Predictions

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
        scores = np.zeros((len(test), len(classes)))  # 0 for a class that is in none of the other groups
        scores[:, np.searchsorted(classes, trained.classes_)] = trained.predict_proba(X)
        tests.append(Predictions(labels[test], predicted, scores))
        remarks.append(getattr(trained, "remarks_", ()))
    tell(_remarks_of_tests(remarks))
    grouped = "" if data.groups is None else f", groups by {data.roles.groups!r}"
    return Outcome(f"{data.name}: {how}{grouped}", data.target, classes, tests)


def _remarks_of_tests(remarks: Sequence[Sequence[str]]) -> list[str]:
    """Return the notes on a table that several models were trained on, from their remarks."""
    from kfhe.remarks import COPIES, Remark

    found = [[isinstance(each, Remark) and each.topic == COPIES for each in some] for some in remarks]
    told = [each for each, is_of_copies in zip(remarks[0], found[0], strict=True) if not is_of_copies]
    if any(map(any, found)):
        told.insert(
            0,
            "there are copies of rows. A model that is trained on a row and tested on its copy looks better "
            "than it is: leave copies out, or name a column of groups: "
            "--groups COLUMN",
        )
    return told


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

    from kfhe.cli.evaluation import Outcome, Predictions
    from kfhe.cli.models import read_forest
    from kfhe.cli.scoring import ModelReader
    from kfhe.tables.errors import TableFileError
    from kfhe.tables.files import open_table

    saved = read_forest(path).deciding(options.decision_of(decision))
    reader = ModelReader(saved.forest, named=saved.named)
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
            f"kfhe: {rows.name}: has as many rows of each class as the training table. If it is the same, "
            f"the scores are too good; for unbiased ones: kfhe evaluate {quote(str(labelled.table))} "
            f"--target {quote(labelled.target)}",
            err=True,
        )
    return Outcome(f"{rows.name}: the model {path}", labelled.target, reader.classes, [test])
