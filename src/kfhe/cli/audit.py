"""``kfhe audit``: find labels that look wrong."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kfhe.cli import options
from kfhe.cli.echo import echo

if TYPE_CHECKING:
    from polars import DataFrame, Series

    from kfhe.audit import LabelAudit
    from kfhe.review import Decision
    from kfhe.tables.labelled import LabelledTable

EXAMPLES = """\b
Examples:
  kfhe audit data.csv --target label -o suspects.csv
  kfhe audit data.csv -t label --drop id --all -o quality.parquet
  kfhe audit visits.csv -t label --groups patient
  kfhe audit data.csv -t label --plot audit.svg
  kfhe audit data.csv -t label --page review.html
  kfhe audit data.csv -t label --decisions decisions.csv --page review.html
"""
SHOWN = 10  # number of suspects on the terminal
OURS = 4  # columns of the audit, plus the verdict
OWN = 6  # columns of the table that fit on a terminal


@options.spread
def audit(
    labelled: options.LabelledInput,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the suspects to a .csv, .csv.gz, .parquet or .xlsx file; - for standard output.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Write an .html page for reviewing the suspects in a browser.", show_default=False),
    ] = None,
    decisions: Annotated[
        Path | None,
        typer.Option(
            help="Decisions exported from the page, a .csv file, to learn from.",
            show_default=False,
        ),
    ] = None,
    all_rows: Annotated[bool, typer.Option("--all", help="Write all rows, not only the suspects.")] = False,
    n_estimators: Annotated[
        int, typer.Option("--n-estimators", min=1, help="Number of trees that vote.")
    ] = 1000,
    random_state: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed; the same seed gives the same suspects.")
    ] = 0,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of threads; default: all.", show_default=False)
    ] = None,
    device: options.Device = options.Place.cpu,
    escape_formulas: options.EscapeFormulas = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the audit to a .png, .svg or .pdf file.", show_default=False),
    ] = None,
) -> None:
    """Find the labels of a table that look wrong.

    Each label is judged by trees that have not seen it. The output lists the suspects, most suspicious
    first: the number of the row (the header of a csv is row 1), the given label, the suggested label, the
    quality (the share of the votes for the given label), and the rest of the row, with columns ignored by
    --drop. The last column notes duplicates, nearly equal rows with other labels, and outliers. If the
    table has a column of the same name, the audit's is called 'audit row' and so on.

    Hard rows look like wrong ones, so check the suspects before you change them. --page writes a page for
    that, which works in any browser, offline; kfhe apply writes the corrected table. With --decisions,
    reviewed labels count as certain, and similar rows are judged again.
    """
    from kfhe.cli.console import Console, tell
    from kfhe.display.text import counted

    labelled.check()
    if all_rows and output is None:
        raise typer.BadParameter("name the file to write all rows to: --output", param_hint="--all")
    if output is not None:
        options.check_table_output(output, labelled.table, *([decisions] if decisions else []))
    _check_page(page, decisions, labelled.table, output)
    if plot is not None:
        others = [path for path in (labelled.table, decisions, output, page) if path is not None]
        options.check_picture(plot, *others, option="--plot")
    data = labelled.read_file(labelled.table)
    found, share, judged = _audited(
        data,
        decisions,
        n_estimators=n_estimators,
        categorical_features=labelled.categorical_features(data),
        random_state=random_state,
        n_jobs=jobs,
        device=device,
        verbose=int(Console(stderr=True).is_terminal),
    )
    tell(found.remarks)
    listed = _listed(data, found)
    suspects = listed.filter(listed.to_series(OURS)).drop(listed.columns[OURS])
    said = [] if plot is None else [_draw(found, plot)]
    if page is not None:
        said.append(_write_page(data, found, judged, page, labelled))
    what = f"All {len(listed):,} rows are" if all_rows else f"The {counted(len(suspects), 'suspect', 'are')}"
    # Printing comes last, because the reader of a pipe may stop early
    try:
        if output is not None:
            from kfhe.tables.output import write_table

            write_table(output, listed if all_rows else suspects, escape_formulas=escape_formulas)
        if output is not None and str(output) != "-":
            said.insert(0, f"{what} in {output}, the most suspicious first.")
        _show(data, found, share, suspects, to_stderr=str(output) == "-")
    finally:
        for line in said:
            echo(line, err=True)


def _check_page(page: Path | None, decisions: Path | None, table: Path, output: Path | None) -> None:
    """Raise early if the page can't be written."""
    if page is None:
        return
    if page.suffix not in (".html", ".htm"):
        raise typer.BadParameter(f"the name must end in .html, got {page}", param_hint="--page")
    inputs = [path for path in (table, decisions, output) if path is not None]
    options.check_writable(page, *inputs, option="--page")


def _audited(
    data: LabelledTable, decisions: Path | None, **settings: Any
) -> tuple[LabelAudit, str, list[Decision]]:
    """Audit a table; also return a sentence on the error rate, and the decisions."""
    from kfhe.audit import label_quality
    from kfhe.cli.console import without_warnings

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
    shown = data.all_columns.drop(data.target)
    try:
        cleaned = apply_decisions(judged, shown, data.y, row_numbers=data.row_numbers)
    except DecisionError as error:
        raise DecisionError(f"{data.name}: {error}") from None
    with without_warnings():
        found, chances = audit_cleaned(data.X, data.y, cleaned, **settings)
    if not chances.n_judged:
        return found, f"None of them was reviewed. {_by_chance(found)}", judged
    verbs = ["was" if number == 1 else "were" for number in (chances.n_judged, chances.n_wrong)]
    return (
        found,
        f"{chances.n_judged:,} {verbs[0]} reviewed, {chances.n_wrong:,} of these {verbs[1]} wrong. Estimated "
        f"error rate: {chances.low:.1%} to {chances.high:.1%}.",
        judged,
    )


def _by_chance(found: LabelAudit) -> str:
    """Describe the error rate that is estimated from the votes alone."""
    low, high = found.share_range
    return (
        f"Estimated error rate: {low:.1%} to {high:.1%}, if mistakes are random; those that follow a pattern "
        "look right and are not counted."
    )


def _write_page(
    data: LabelledTable,
    found: LabelAudit,
    judged: list[Decision],
    page: Path,
    labelled: options.LabelledInput,
) -> str:
    """Write the review page of an audited table, and say where; pictures are found next to the table."""
    from kfhe.display.text import counted
    from kfhe.review import write_page

    n_rows = write_page(
        page,
        found,
        data.X,
        all_columns=data.all_columns.drop(data.target),
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


def _listed(data: LabelledTable, found: LabelAudit) -> DataFrame:
    """Return all rows, most suspicious first, with both labels, quality and verdict."""
    import polars as pl

    order = found.rank.argsort()
    listed = data.all_columns.drop(data.target)[order]
    given = data.all_columns[data.target][order]
    columns: dict[str, Any] = {
        "row": data.row_numbers[order],
        "given": given,
        "suggested": pl.Series(found.suggested[order].tolist(), dtype=given.dtype),
        "quality": found.quality[order].round(4),
        "suspect": found.suspects[order],
    }
    for position, (name, column) in enumerate(columns.items()):
        listed = listed.insert_column(position, pl.Series(_free_name(name, listed), column))
    return listed.with_columns(_notes(data, found)[order].alias(_free_name("notes", listed)))


def _free_name(name: str, listed: DataFrame) -> str:
    while name in listed.columns:
        name = f"audit {name}"
    return name


def _notes(data: LabelledTable, found: LabelAudit) -> Series:
    """Return the verdict on each row, in the order of the table."""
    import polars as pl

    notes = found.findings.notes(data.row_numbers, found.given) if found.findings else [""] * len(found)
    return pl.Series([note or None for note in notes], dtype=pl.String)


def _draw(found: LabelAudit, picture: Path) -> str:
    """Draw the audit, and return where."""
    from kfhe.files import write_whole
    from kfhe.plotting import AuditDisplay
    from kfhe.plotting.base import rendered

    figure = AuditDisplay.from_audit(found).figure_
    write_whole(picture, rendered(figure, picture.suffix.lower().removeprefix(".")))
    return f"The picture is in {picture}"


def _show(
    data: LabelledTable, found: LabelAudit, share: str, suspects: DataFrame, *, to_stderr: bool
) -> None:
    from kfhe.cli.console import Console, notes, table

    console = Console(stderr=to_stderr, soft_wrap=True)
    if not console.is_terminal:
        console.width = 150  # for all columns
    for note in notes(data, honest=True):
        console.print(note, style="yellow")
    n_disputed = int((found.suggested != found.given).sum())
    console.print(f"{data.name}: {len(found):,} labels. {share} {_disputed(n_disputed, len(suspects))}")
    console.print(_by_label(found))
    _show_findings(console, data, found)
    if not len(suspects):
        return
    title = f"The {SHOWN} most suspicious" if len(suspects) > SHOWN else "The suspects"
    worst = suspects[:SHOWN, : OURS + OWN]
    shown = table(worst.columns, ([*map(_short, row)] for row in worst.iter_rows()), title=title)
    shown.title_justify = "left"
    for column in shown.columns[:OURS]:
        column.no_wrap = True
    console.print(shown, soft_wrap=False)
    console.print("Hard rows look like wrong ones, so check them before you change them.")


def _by_label(found: LabelAudit) -> str:
    """Describe the estimated error rate of each label, highest first."""
    from kfhe.display.text import some

    order = (-found.class_shares).argsort(kind="stable")
    shares = [f"{found.classes[k]} {found.class_shares[k]:.1%}" for k in order]
    return f"Estimated error rate by label: {some(shares)}."


def _disputed(n_disputed: int, n_suspects: int) -> str:
    """Describe how many labels the trees disagree with, and how to see them if there are no suspects."""
    if not n_disputed:
        return "The trees agree with all labels."
    if not n_suspects:
        return (
            f"The trees disagree with {n_disputed:,}, but with this error rate none is a suspect; --all "
            "writes them and --page shows them."
        )
    which = f"{n_suspects:,} most suspicious are the suspects"
    if n_suspects == 1:
        which = "most suspicious one is the suspect"
    return f"The trees disagree with {n_disputed:,}; the {which}."


def _short(value: Any) -> str:
    """Return a cell for the terminal, with numbers shortened."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _show_findings(console: Any, data: LabelledTable, found: LabelAudit) -> None:
    """Return the numbers of duplicates, conflicts and outliers, each with an example."""
    findings = found.findings
    if findings is None:
        return
    notes = findings.notes(data.row_numbers, found.given)
    for rows, what in (
        (findings.duplicate_of >= 0, "that repeat an earlier row"),
        (findings.conflicts_with >= 0, "that are nearly equal to a row with another label"),
        (findings.outlying != "", "that have a number far from all others"),
    ):
        if rows.any():
            first = int(rows.argmax())
            console.print(
                f"Rows {what}: {rows.sum():,}. The first is row {data.row_numbers[first]}: {notes[first]}."
            )
