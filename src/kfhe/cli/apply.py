"""``kfhe apply``: apply decisions about labels to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kfhe.cli import options
from kfhe.cli.echo import echo

EXAMPLES = """\b
Examples:
  kfhe apply decisions.csv customers.csv -o cleaned.csv
  kfhe apply decisions.csv customers.parquet -o clean.parquet --log log.csv
"""


@options.spread
def apply(
    decisions: Annotated[
        Path, typer.Argument(help="The decisions, as the page of kfhe audit --page exports them.")
    ],
    table: Annotated[Path, typer.Argument(help="The audited .csv, .csv.gz, .parquet or .xlsx file.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="The file to write, of the same kind; a .csv for .xlsx.",
            show_default=False,
        ),
    ],
    csv: options.CsvInput,
    log: Annotated[
        Path | None,
        typer.Option(
            help="A csv file that lists every change; default: named like the output, with _changes.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Apply decisions about labels to the table that was audited.

    Labels are changed and rows dropped according to the decisions. Everything else stays the same: a csv byte
    for byte, a parquet file value by value. If a decision does not match its row, nothing is written.
    """
    from kfhe.display.text import counted
    from kfhe.review import clean_file, read_decisions

    name = output.name.removesuffix(".gz")
    log = log or output.with_name(f"{Path(name).stem}_changes.csv")
    options.check_writable(output, table, decisions)
    options.check_writable(log, table, decisions, option="--log")
    if options.are_same(log, output):
        raise typer.BadParameter("the table and the list of changes need a file each", param_hint="--log")
    found = read_decisions(decisions)
    done = clean_file(found, table, output, log=log, dialect=csv.dialect)
    n_dropped, n_judged = int((~done.kept).sum()), int(done.judged.sum())
    n_changed = len(done.changes) - n_dropped
    echo(
        f"{counted(len(found), 'decision')}. Labels changed: {n_changed:,}, "
        f"found right: {n_judged - n_changed:,}, left open: {len(found) - n_dropped - n_judged:,}; "
        f"rows dropped: {n_dropped:,}."
    )
    echo(f"The table is in {output}, every change in {log}.", err=True)
