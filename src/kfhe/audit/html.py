"""An audit in a notebook: the most suspicious labels, with their rows."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfhe.display.text import plain
from kfhe.tables.columns import open_columns, some_rows

if TYPE_CHECKING:
    from kfhe.audit.result import LabelAudit

SHOWN = 10  # rows
MOST_COLUMNS = 8  # of the table
WIDEST = 40  # letters of a cell


class WorstRows(NamedTuple):
    """Cells of the most suspicious rows, as text: names of the columns, and the cells of each row."""

    names: list[str]
    cells: list[list[str]]


def worst_rows(X: Any, rank: NDArray[np.int64]) -> WorstRows:
    """Take the cells of the most suspicious rows from a table: the first columns, worst row first."""
    columns = open_columns(some_rows(X, np.argsort(rank)[:SHOWN]))
    shown = range(min(columns.n_columns, MOST_COLUMNS))
    cells = []
    for j in shown:
        dates = columns.dates(j)
        if dates is not None:
            cells.append(["" if np.isnat(moment) else _moment(moment) for moment in dates])
        elif columns.is_text(j):
            codes, values = columns.factorize(j)
            cells.append(["" if code < 0 else str(values[code]) for code in codes])
        else:
            cells.append(["" if np.isnan(number) else f"{number:g}" for number in columns.numbers(j)])
    return WorstRows([columns.names[j] for j in shown], [list(row) for row in zip(*cells, strict=True)])


def _moment(moment: np.datetime64) -> str:
    """Format a date, without its time if that is midnight."""
    return str(moment.astype("M8[s]")).replace("T00:00:00", "")


def audit_html(audit: LabelAudit) -> str:
    """Return an audit as self-contained HTML, with all text of the table escaped."""
    order = np.argsort(audit.rank)[:SHOWN]
    names = [] if audit.worst is None else audit.worst.names
    row_names = range(len(audit)) if audit.index is None else audit.index
    head = _cells("th", ["row", "given", "suggested", "quality", *names])
    body = ""
    for place, row in enumerate(order.tolist()):
        own = [] if audit.worst is None else audit.worst.cells[place]
        ours = [row_names[row], audit.given[row], audit.suggested[row], f"{audit.quality[row]:.3f}"]
        weight = "bold" if audit.suspects[row] else "normal"
        body += f'<tr style="font-weight: {weight}">{_cells("td", [*ours, *own])}</tr>'
    findings = "" if audit.findings is None else f"<div>Rows: {audit.findings.summary()}.</div>"
    return (
        '<div class="kfhe-audit" style="font: 12px/1.4 system-ui, sans-serif; margin: 8px 2px">'
        f"<div>{_text(repr(audit))}</div>{findings}"
        '<table style="margin: 6px 0"><caption style="text-align: left">'
        f"The {len(order)} most suspicious labels; suspects are bold</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cells(kind: str, values: list[Any]) -> str:
    return "".join(f"<{kind}>{_text(_short(str(value)))}</{kind}>" for value in values)


def _short(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _text(text: str) -> str:
    return escape(plain(text))
