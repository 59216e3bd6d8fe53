"""``kfhe demo``: KFHE beside its relatives, on clean and on noisy labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

NOISE_LEVELS = (0.0, 0.2)


def demo(
    output: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Also write the table as an HTML page.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Repeats of the 4-fold cross-validation.")] = 2,
) -> None:
    """Compare KFHE with AdaBoost, bagging and a single tree on scikit-learn's own datasets."""
    from rich.console import Console

    if output is not None:
        _make_folder(output.parent)
    console = Console(record=True)
    console.print(_table(_results(repeats)))
    if output is not None:
        console.save_html(str(output))
        typer.echo(f"The report is in {output}")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"no folder can be made for it: {error.strerror}"
        raise typer.BadParameter(reason, param_hint="--output") from error


def _algorithms() -> dict[str, Any]:
    from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier

    from kfhe import CARTClassifier, KFHEClassifier

    tree = CARTClassifier()  # what KFHE trains, too
    return {
        "KFHE-e": KFHEClassifier(emphasis="exponential", random_state=0),
        "KFHE-l": KFHEClassifier(emphasis="linear", random_state=0),
        "AdaBoost": AdaBoostClassifier(tree, n_estimators=100, random_state=0),
        "Bagging": BaggingClassifier(tree, n_estimators=100, random_state=0),
        "single tree": tree,
    }


def _results(repeats: int) -> dict[tuple[str, float, str], float]:
    """Return the mean macro F1 of each dataset, noise level and algorithm."""
    import numpy as np
    from rich.progress import track
    from sklearn.base import clone
    from sklearn.datasets import load_breast_cancer, load_iris, load_wine
    from sklearn.metrics import f1_score
    from sklearn.model_selection import RepeatedStratifiedKFold

    from kfhe.noise import flip_labels

    datasets = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
    algorithms = _algorithms()
    cells = [(dataset, noise, name) for dataset in datasets for noise in NOISE_LEVELS for name in algorithms]
    results = {}
    for dataset, noise, name in track(cells, description="Training", transient=True):
        X, y = datasets[dataset](return_X_y=True)
        folds = RepeatedStratifiedKFold(n_splits=4, n_repeats=repeats, random_state=0).split(X, y)
        scores = []
        for fold, (train, test) in enumerate(folds):
            noisy = flip_labels(y[train], noise, random_state=fold)
            model = clone(algorithms[name]).fit(X[train], noisy)
            scores.append(f1_score(y[test], model.predict(X[test]), average="macro"))
        results[dataset, noise, name] = float(np.mean(scores))
    return results


def _table(results: dict[tuple[str, float, str], float]) -> Table:
    from rich.table import Table

    table = Table(title="Macro F1, 4-fold cross-validation (best in bold)")
    table.add_column("dataset")
    table.add_column("labels changed", justify="right")
    names = list(dict.fromkeys(name for *_, name in results))
    for name in names:
        table.add_column(name, justify="right")
    for dataset, noise in dict.fromkeys((dataset, noise) for dataset, noise, _ in results):
        row = [results[dataset, noise, name] for name in names]
        cells = [f"[bold]{score:.3f}[/]" if score == max(row) else f"{score:.3f}" for score in row]
        table.add_row(dataset, f"{noise:.0%}", *cells)
    return table
