"""What ``kfhe audit`` does for people who review labels: earlier decisions, how many are wrong, the page."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from kfhe.cli import options

if TYPE_CHECKING:
    from kfhe.audit import LabelAudit
    from kfhe.review import Decision
    from kfhe.tables.labelled import LabelledTable


def check_files(page: Path | None, decisions: Path | None, table: Path, output: Path | None) -> None:
    """Raise if the page can't be written, before anything takes long."""
    if page is None:
        return
    if page.suffix not in (".html", ".htm"):
        raise typer.BadParameter(f"the name must end in .html, got {page}", param_hint="--page")
    inputs = [path for path in (table, decisions, output) if path is not None]
    options.check_writable(page, *inputs, option="--page")


def audited(
    data: LabelledTable, decisions: Path | None, **settings: Any
) -> tuple[LabelAudit, str, list[Decision]]:
    """Audit a table; return as well what to say of the share of wrong labels, and the decisions so far."""
    from kfhe.audit import label_quality
    from kfhe.cli.remarks import without_warnings

    settings["groups"] = data.groups
    if decisions is None:
        with without_warnings():
            found = label_quality(data.X, data.y, **settings)
        return found, _by_chance(found), []
    from kfhe.review import apply_decisions, read_decisions
    from kfhe.review.decisions import DecisionError
    from kfhe.review.reaudit import audit_cleaned

    judged = read_decisions(decisions)
    if judged and judged[0].target != data.target:
        raise DecisionError(
            f"{decisions}: is about the labels in {judged[0].target!r}, but --target is {data.target!r}"
        )
    shown = data.all_columns.drop_columns([data.target])
    try:
        cleaned = apply_decisions(judged, shown, data.y, row_numbers=data.row_numbers)
    except DecisionError as error:
        raise DecisionError(f"{data.name}: {error}") from None
    with without_warnings():
        found, chances = audit_cleaned(data.X, data.y, cleaned, **settings)
    if not chances.n_judged:
        return found, f"None of them was judged. {_by_chance(found)}", judged
    verbs = ["was" if number == 1 else "were" for number in (chances.n_judged, chances.n_wrong)]
    return (
        found,
        f"{chances.n_judged:,} of them {verbs[0]} judged, {chances.n_wrong:,} of these {verbs[1]} wrong; by "
        f"that, {chances.low:.1%} to {chances.high:.1%} of all are.",
        judged,
    )


def _by_chance(found: LabelAudit) -> str:
    """Say which share of the labels is wrong by the votes alone."""
    low, high = found.share_range
    return (
        f"{low:.1%} to {high:.1%} of them seem to be wrong, if mistakes happened by chance, in all "
        "classes alike; those that follow a pattern look right, and are not counted."
    )


def write_page_of(
    data: LabelledTable,
    found: LabelAudit,
    judged: list[Decision],
    page: Path,
    labelled: options.LabelledInput,
) -> str:
    """Write the page for a table that was audited, and say where; pictures are those beside the table."""
    from kfhe.look.counts import counted
    from kfhe.review import write_page

    n_rows = write_page(
        page,
        found,
        data.X,
        all_columns=data.all_columns.drop_columns([data.target]),
        target=data.target,
        name=data.name,
        row_numbers=data.row_numbers,
        decisions=judged,
        pictures=None if str(labelled.table) == "-" else labelled.table.parent,
        categorical_features=labelled.categorical_features(data),
    )
    table = Path("table.csv") if str(labelled.table) == "-" else labelled.table
    ending = "".join(table.suffixes[-2:] if table.suffix == ".gz" else [table.suffix])
    cleaned = f"cleaned{ending if ending.endswith(('.csv', '.gz', '.parquet')) else '.csv'}"
    return (
        f"The page is in {page}: {counted(n_rows, 'label')} to look at. It opens in any browser; export your "
        f"decisions there, then: kfhe apply decisions.csv {quote(str(table))} -o {cleaned}"
    )
