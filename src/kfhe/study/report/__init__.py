"""The report of a study: one page that needs nothing else, and the same tables and figures as files.

What the tables say is found out in `kfhe.study.analysis`, and figures are drawn by `kfhe.plotting`.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from kfhe.files import write_whole
from kfhe.study.analysis import Analysis
from kfhe.study.errors import StudyError
from kfhe.study.report.folder import ReportFolder
from kfhe.study.report.page import page
from kfhe.study.report.tables import all_tables
from kfhe.tables.files import SUFFIXES

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
        ``figures/`` (SVG, PNG). Files of an earlier report there are removed; all others stay.
    files : bool
        Whether to write tables and figures as files too; figures need matplotlib.

    Returns
    -------
    Path
        The page.
    """
    tables = all_tables(analysis)
    with ReportFolder(folder) as report:
        if files:
            report.write("tables/cells.csv.gz", _cells(analysis, "cells.csv.gz"))
            for table in tables:
                report.write(f"tables/{table.key}.csv", table.csv())
                report.write(f"tables/{table.key}.tex", table.latex())
            try:
                from kfhe.study.report.figures import write_figures
            except ImportError as error:
                raise StudyError(
                    'the figures of a report need matplotlib: pip install "kfhe[study]" '
                    "(or leave them out: --no-files)"
                ) from error
            write_figures(analysis, report)
        return report.write(PAGE, page(analysis, tables))


def write_cells(analysis: Analysis, path: str | Path) -> Path:
    """Write the results of all cells to a csv (or .csv.gz) or parquet file."""
    path = Path(path)
    if not path.name.endswith(SUFFIXES):
        raise StudyError(f"{path}: the file's name must end in {', '.join(SUFFIXES)}")
    write_whole(path, _cells(analysis, path.name))
    return path


def _cells(analysis: Analysis, name: str) -> bytes:
    """Return the results of all cells as the content of a file of this name."""
    if name.endswith(".parquet"):
        parquet: bytes = analysis.cells.to_parquet(index=False)
        return parquet
    text: str = analysis.cells.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    # No time stamp: the same results give the same file
    return gzip.compress(text.encode(), mtime=0) if name.endswith(".gz") else text.encode()
