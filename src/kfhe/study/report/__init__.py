"""The report of a study: a single page, and its tables and figures as files.

Figures are computed in `kfhe.study.analysis` and drawn by `kfhe.plotting`.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from kfhe.display.text import needed
from kfhe.study.analysis import Analysis
from kfhe.study.report.folder import ReportFolder
from kfhe.study.report.page import page
from kfhe.study.report.tables import all_tables

__all__ = ["PAGE", "write_report"]

PAGE = "index.html"


def write_report(analysis: Analysis, folder: str | Path, *, files: bool = True) -> Path:
    """Write a study's report.

    Parameters
    ----------
    analysis : Analysis
        The results.
    folder : path
        Where to write ``index.html``, and with `files` also ``tables/`` (csv, LaTeX, and all cells) and
        ``figures/`` (SVG, PNG). Files of an earlier report are removed; other files are kept.
    files : bool
        Whether to write tables and figures as files, which needs matplotlib.

    Returns
    -------
    Path
        The path of the page.
    """
    tables = all_tables(analysis)
    html = page(analysis, tables)
    with ReportFolder(folder) as report:
        if files:
            cells = analysis.cells.to_csv(index=False, float_format="%.6g", lineterminator="\n")
            # No time stamp: the same results give the same file
            report.write("tables/cells.csv.gz", gzip.compress(cells.encode(), mtime=0))
            for table in tables:
                report.write(f"tables/{table.key}.csv", table.csv())
                report.write(f"tables/{table.key}.tex", table.latex())
            with needed("without --no-files, a report needs matplotlib", "study"):
                from kfhe.study.report.figures import write_figures
            write_figures(analysis, report)
        return report.write(PAGE, html)
