"""The report: one page that needs nothing else, and the same tables and figures as files."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

from kfhe.files import write_whole
from kfhe.study.analyse import Analysis
from kfhe.study.errors import StudyError
from kfhe.study.report.latex import latex
from kfhe.study.report.page import page
from kfhe.study.report.tables import Table, all_tables
from kfhe.table_files import SUFFIXES

__all__ = ["PAGE", "write_cells", "write_report"]

PAGE = "index.html"


def write_report(analysis: Analysis, folder: str | Path, *, files: bool = True) -> Path:
    """Write a study's report.

    Parameters
    ----------
    analysis : Analysis
        What to report.
    folder : path
        Where to: ``index.html``, and with `files` also ``tables/`` (csv, LaTeX, and all cells) and
        ``figures/`` (SVG, PNG).
    files : bool
        Whether to write tables and figures as files too; figures need matplotlib.

    Returns
    -------
    Path
        The page.
    """
    folder = Path(folder)
    tables = all_tables(analysis)
    if files:
        write_cells(analysis, folder / "tables" / "cells.csv.gz")
        for table in tables:
            write_whole(folder / "tables" / f"{table.key}.csv", _csv(table))
            write_whole(folder / "tables" / f"{table.key}.tex", latex(table))
        try:
            from kfhe.study.report.figures import write_figures
        except ImportError as error:
            raise StudyError(
                "the figures of a report need matplotlib: pip install kfhe[study] "
                "(or leave them out: --no-files)"
            ) from error
        write_figures(analysis, folder / "figures")
    target = folder / PAGE
    write_whole(target, page(analysis, tables))
    return target


def write_cells(analysis: Analysis, path: str | Path) -> Path:
    """Write the results of all cells to a csv (or .csv.gz) or parquet file."""
    path = Path(path)
    if not path.name.endswith(SUFFIXES):
        raise StudyError(f"{path}: the file's name must end in {', '.join(SUFFIXES)}")
    if path.name.endswith(".parquet"):
        content: bytes = analysis.cells.to_parquet(index=False)
    else:
        content = analysis.cells.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()
    # No time stamp: the same results give the same file
    write_whole(path, gzip.compress(content, mtime=0) if path.name.endswith(".gz") else content)
    return path


def _csv(table: Table) -> str:
    """Return a table's values as csv."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.head)
    for row in table.rows:
        writer.writerow(["" if value.raw is None else value.raw for value in row])
    return text.getvalue()
