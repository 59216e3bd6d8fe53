"""Decisions about labels, one row of a csv each."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from kfhe.files import write_whole

KEEP, CHANGE, DROP, UNSURE = KINDS = ("keep", "change", "drop", "unsure")


class DecisionError(ValueError):
    """Decisions can't be used. The message says which one, and why."""


@dataclass(frozen=True)
class Decision:
    """A decision about a label.

    Attributes
    ----------
    row : int
        Number of the row; the header of a csv is row 1.
    digest : str
        A digest that identifies the row, without its label.
    target : str
        The column of labels.
    given : str
        The reviewed label.
    decision : {"keep", "change", "drop", "unsure"}
        Keep the label, change it, drop the row, or unsure.
    decided : str
        The correct label; empty for "drop" and "unsure".
    note : str
        Any remark.

    Examples
    --------
    >>> from kfhe.review import Decision
    >>> Decision(175, "r0f3a", "outcome", "leaves", "change", "stays").decided
    'stays'
    """

    row: int
    digest: str
    target: str
    given: str
    decision: str
    decided: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if self.decision not in KINDS:
            raise DecisionError(
                f"row {self.row}: there is no decision {self.decision!r}; accepted are {', '.join(KINDS)}"
            )
        right = {KEEP: self.given, DROP: "", UNSURE: ""}.get(self.decision, self.decided)
        if self.decided != right or (self.decision == CHANGE and self.decided in ("", self.given)):
            raise DecisionError(
                f"row {self.row}: the label {self.given!r} and the new one {self.decided!r} don't go "
                f"with the decision {self.decision!r}"
            )


COLUMNS = tuple(field.name for field in fields(Decision))


def read_decisions(path: str | os.PathLike[str]) -> list[Decision]:
    """Read a csv file of decisions, exported by the page and possibly edited in a spreadsheet.

    Raises
    ------
    DecisionError
        The file has another format, or contradictory rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from kfhe.review import Decision, read_decisions, write_decisions
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "decisions.csv"
    ...     write_decisions(path, [Decision(7, "r0f3a", "outcome", "leaves", "drop", note="a test")])
    ...     read_decisions(path)[0].note
    'a test'
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise DecisionError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise DecisionError(f"{path}: there are bytes that are not UTF-8; save it as UTF-8") from None
    header = text.partition("\n")[0]
    sep = next((mark for mark in ",;\t" if mark in header), ",")
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=sep)
    missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise DecisionError(
            f"{path}: there is no column {missing[0]!r}; decisions have the columns {', '.join(COLUMNS)}"
        )
    found: dict[int, Decision] = {}
    for number, row in enumerate(rows, start=2):
        try:
            decision = Decision(int(row["row"]), *(row[name] or "" for name in COLUMNS[1:]))
        except ValueError as error:
            reason = error if isinstance(error, DecisionError) else f"{row['row']!r} is no row number"
            raise DecisionError(f"{path}: line {number}: {reason}") from None
        other = found.setdefault(decision.row, decision)
        if astuple(other)[:-1] != astuple(decision)[:-1]:
            raise DecisionError(
                f"{path}: line {number}: row {decision.row} has two decisions, {_said(other)!r} and "
                f"{_said(decision)!r}; remove one of them"
            )
    targets = sorted({decision.target for decision in found.values()})
    if len(targets) > 1:
        raise DecisionError(f"{path}: decisions are about one column of labels, got {', '.join(targets)}")
    return list(found.values())


def write_decisions(path: str | os.PathLike[str], decisions: Iterable[Decision]) -> None:
    """Write decisions as a csv file, completely or not at all."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)  # with \r\n, so that all line breaks in values are quoted
    writer.writerow(COLUMNS)
    writer.writerows(astuple(decision) for decision in decisions)
    write_whole(path, text.getvalue())


def _said(decision: Decision) -> str:
    return f"{decision.decision} {decision.decided}".strip()
