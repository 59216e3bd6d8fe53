"""``kfhe data``: the catalogue of datasets."""

from __future__ import annotations

from typing import Annotated

import typer

from kfhe.cli.echo import echo
from kfhe.cli.options import DataDir, ReadingInput, StudyTarget, spread

app = typer.Typer(help="The datasets of studies: list, show, fetch.", no_args_is_help=True)


@app.command("list")
def list_datasets(data_dir: DataDir = None) -> None:
    """List the datasets of the catalogue, and whether they are available."""
    from kfhe.cli.console import Console, table
    from kfhe.study.paper.catalogue import catalogue
    from kfhe.study.sources import locate

    rows = []
    for name, facts in catalogue().items():
        source = locate(name, data_dir)
        here = source.kind if source else "unavailable" if facts.rows is None else "no"
        sizes = (facts.rows, facts.features, len(facts.categorical), len(facts.classes) or None)
        paper = ("yes" if facts.comparable else "other data") if facts.paper else ""
        rows.append([name, *("" if size is None else str(size) for size in sizes), paper, here])
    head = ["dataset", "rows", "features", "categorical", "classes", "in the paper", "here"]
    shown = table(head, rows)
    shown.columns[0].no_wrap = True
    for column in shown.columns:
        column.overflow = "fold"
    Console().print(shown)


@app.command()
@spread
def show(
    name: Annotated[str, typer.Argument(help="A dataset's name, or a csv, parquet or Excel file.")],
    reading: ReadingInput,
    data_dir: DataDir = None,
    target: StudyTarget = None,
) -> None:
    """Show the properties of a dataset."""
    from kfhe.display.text import counted
    from kfhe.study.dataset import Roles
    from kfhe.study.paper.catalogue import catalogue
    from kfhe.study.sources import load, locate

    facts = catalogue().get(name)
    source = locate(name, data_dir)
    lines = {"name": name, "here": str(source) if source else "no"}
    if facts:
        lines |= {"citation": facts.citation, "note": facts.note or "none"}
        if facts.paper:
            lines["paper"] = "{rows} rows, {columns} columns, {classes} classes".format(**facts.paper)
        lines |= {"checksum": facts.sha256 or "none", "OpenML": str(facts.openml or "no")}
    if source or not facts:
        roles = Roles(target=target, dialect=reading.dialect, read_as=tuple(reading.kinds.items()))
        dataset = load(name, data_dir, roles=roles)
        counts = {label: int((dataset.y == code).sum()) for code, label in enumerate(dataset.classes)}
        lines["size"] = f"{len(dataset.y)} rows, {counted(dataset.X.shape[1], 'feature')}"
        lines["target"] = dataset.target
        lines["classes"] = ", ".join(f"{label} ({count})" for label, count in counts.items())
        lines["categorical"] = ", ".join(dataset.categorical) or "none"
        gaps = dataset.X.isna().sum()
        lines["gaps"] = ", ".join(f"{column} ({gap})" for column, gap in gaps[gaps > 0].items()) or "none"
        if dataset.notes:
            lines["reading"] = "; ".join(dataset.notes)
    for key, value in lines.items():
        echo(f"{key + ':':13}{value}")


@app.command()
def fetch(
    names: Annotated[list[str] | None, typer.Argument(help="Names; default: all that are available.")] = None,
) -> None:
    """Download datasets from OpenML into the cache."""
    from kfhe.study.errors import StudyError
    from kfhe.study.paper.catalogue import catalogue
    from kfhe.study.sources import fetch as fetch_one

    wanted = names or [name for name, facts in catalogue().items() if facts.openml is not None]
    failed = 0
    for name in wanted:
        try:
            echo(f"{name}: {fetch_one(name)}")
        except (StudyError, OSError) as error:
            failed += 1
            echo(str(error), err=True)
    if failed:
        raise typer.Exit(1)
