"""``kfhe fit``: train a model on a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from math import log
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfhe.cli import options
from kfhe.files import standard_output

if TYPE_CHECKING:
    from kfhe import RobustKFHEClassifier
    from kfhe.base import BaseKFHE
    from kfhe.cli.console import Console

SMALL = 256 << 20  # bytes up to which a table is always read into memory
SHARE = 0.5  # maximum share of the free memory for a table that is read into memory

EXAMPLES = """\b
Examples:
  kfhe fit train.csv --target label -o model.kfhe
  kfhe fit visits.csv -t label --groups patient --as ward=category -o m.kfhe
  zcat train.csv.gz | kfhe fit - -t label -o model.kfhe
  kfhe fit big/*.parquet -t label -o model.kfhe
"""


@options.spread
def fit(
    labelled: options.LabelledFiles,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Model file to write; - for standard output.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    training: options.Training,
    model: Annotated[
        options.Model,
        typer.Option(
            help="robust adapts to wrong labels; kfhe-e (for clean labels) and kfhe-l (for noisy labels) are "
            "the variants of the paper."
        ),
    ] = options.Model.robust,
    scheduler: options.Scheduler = None,
) -> None:
    """Train a model on a table and save it.

    Numbers, dates, amounts such as $1,200, true and false are recognised; all
    other columns are categorical. Empty cells, NA, nan and the like are missing.
    """
    from kfhe.cli.console import Console

    labelled.check()
    training.check(model)
    options.refuse_jobs(training.n_jobs, scheduler)
    options.check_writable(output, *labelled.files)
    console = Console(stderr=True, soft_wrap=True)
    if scheduler is not None or is_large(labelled.tables):
        from kfhe.cli.cluster import train_in_parts

        trained = train_in_parts(labelled, training, model, scheduler, console)
    else:
        trained = _train(labelled, training, model, console)
    console.print(_summary(*trained))
    _save(trained[0], output)
    if str(output) != "-":
        console.print(f"The model is in {output}. Next: kfhe predict {output} new.csv -o out.csv")


def is_large(tables: Sequence[Path]) -> bool:
    """Whether to read tables part by part: several files, a folder, or one larger than half of the memory."""
    if len(tables) > 1 or tables[0].is_dir():
        return True
    if tables[0].suffix != ".parquet" or not tables[0].is_file() or find_spec("distributed") is None:
        return False
    from kfhe.dask.connection import free_memory
    from kfhe.tables.parts import table_bytes

    return max(SMALL, SHARE * free_memory()) < table_bytes(tables[0])


def _train(
    labelled: options.LabelledFiles,
    training: options.Training,
    model: options.Model,
    console: Console,
) -> tuple[BaseKFHE, dict[str, int], float]:
    """Train on a table in memory; return the model, the number of rows by class, and the seconds."""
    from kfhe.cli.console import notes, summary, tell, without_warnings
    from kfhe.display.text import counted

    data = labelled.read_file(labelled.tables[0])
    console.print(f"{data.name}: {counted(len(data.X), 'row')}")
    for note in notes(data, honest=model is options.Model.robust):
        console.print(note, style="yellow")
    classifier = training.new_model(model, labelled.categorical_features(data))
    classifier.set_params(verbose=int(console.is_terminal))
    started = perf_counter()
    with without_warnings():
        classifier.fit(data.X, data.y, groups=data.groups)
    seconds = perf_counter() - started
    forest = classifier.estimators_
    classifier.estimators_ = replace(forest, schema=forest.schema.with_readings(data.readings))
    console.print(summary(data, classifier.estimators_.schema), soft_wrap=False)
    tell(getattr(classifier, "remarks_", ()))
    return classifier, data.class_counts(), seconds


def _noise(model: RobustKFHEClassifier, class_counts: dict[str, int]) -> str:
    """Describe the estimated error rate of the labels, if the features say anything about them."""
    shares = [count / sum(class_counts.values()) for count in class_counts.values() if count]
    if model.oob_log_loss_ >= -sum(share * log(share) for share in shares):
        return "The features say nothing about the labels, so their error rate can't be estimated."
    return (
        f"Estimated error rate of the labels: {model.noise_rate_:.0%}, if mistakes are random; kfhe audit "
        "shows which ones to check."
    )


def _summary(model: BaseKFHE, class_counts: dict[str, int], seconds: float) -> str:
    from kfhe import RobustKFHEClassifier
    from kfhe.display.text import counted

    took = f"{seconds:.1f} s" if seconds >= 0.1 else f"{1000 * seconds:.0f} ms"
    trained = f"Trained {counted(model.n_iter_ + 1, 'tree')} in {took}"
    if isinstance(model, RobustKFHEClassifier):
        return (
            f"{trained}. Out of the bag, they agree with {model.oob_score_:.1%} of the labels. "
            f"{_noise(model, class_counts)}"
        )
    wrong = float(model.trace_["training_error"][-1])
    ended = (
        "; training stopped early, as the last one made no error"
        if model.trace_["posterior_variance"][-1] == 0
        else ""
    )
    return f"{trained}{ended}. Training error: {wrong:.1%}; kfhe evaluate estimates the error on new rows."


def _save(model: Any, output: Path) -> None:
    model.set_params(verbose=0, n_jobs=None, device="cpu")  # they are about this run, not about the model
    if str(output) == "-":
        model.save(standard_output())
        standard_output().flush()
    else:
        model.save(output)
