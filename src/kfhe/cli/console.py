"""The console: descriptions of tables, notes, and text from files made safe for terminals."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING, Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from kfhe.cli.echo import echo, mute_errors
from kfhe.display.text import plain, some
from kfhe.tables.readings import DATES, NUMBERS, is_date, is_text, misfits, most_fitting

if TYPE_CHECKING:
    from polars import Series

    from kfhe.tables.labelled import LabelledTable
    from kfhe.tables.schema import Schema

MOST_COLUMNS, SOME_COLUMNS = 60, 20  # wider tables are shown with only some columns
MOST_NOTES = 20
MANY_NUMBERS = 20  # distinct numbers from which on a target may be a quantity
MOST_CATEGORIES = 255  # that a column distinguishes
MANY_TEXTS = 1000  # values that are tried before all others
MARKS_OF_GAPS = ("?", "-", "--", ".")
NEARLY_ALL = 0.9  # share of numbers from which on other values look like mistakes


class Console(RichConsole):
    """A console of rich on which text can't control the terminal; styles and progress bars still work."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, highlight=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of an output, made plain."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(segment.text))

    def on_broken_pipe(self) -> None:
        """Exit if nobody reads standard output any more; ignore that for standard error."""
        if not self.stderr:
            super().on_broken_pipe()
        mute_errors()


def table(
    head: Sequence[str], rows: Iterable[Sequence[str | Text]], *, numbers: bool = False, **settings: Any
) -> Table:
    """Return a table for the terminal with cells as plain text, optionally with numbers on the right."""
    shown = Table(**settings)
    for position, name in enumerate(head):
        shown.add_column(Text(name), justify="right" if numbers and position else "left")
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return shown


def summary(data: LabelledTable, schema: Schema) -> Table:
    """Return a table of the columns, with their types and values, for the terminal."""
    listed = data.X.width if data.X.width <= MOST_COLUMNS else SOME_COLUMNS
    rows = []
    for j, column in enumerate(data.X.get_columns()[:listed]):
        kind, values = "date" if is_date(column.dtype) else "number", _span(column)
        if data.categorical[j]:
            became = ", as shares of the classes" if j in schema.encodings else ""
            kind = f"category{', left out' if j in schema.left_out else became}"
            values = _categories(column)
        rows.append([column.name, kind, values, str(column.null_count() or "")])
    if listed < data.X.width:
        rows.append(_others(data, listed))
    if data.groups is not None:
        column = data.all_columns[str(data.roles.groups)]
        rows.append([column.name, "groups", _categories(column), ""])
    classes = [f"{label} ({count})" for label, count in data.class_counts().items()]
    rows.append([data.target, "target", some(classes), ""])
    return table(["column", "type", "values", "gaps"], rows)


def _others(data: LabelledTable, listed: int) -> list[str]:
    """Return one row for all columns after the first few."""
    others = data.X.get_columns()[listed:]
    n_categories = sum(data.categorical[listed:])
    kinds = f"{n_categories:,} of categories, {len(others) - n_categories:,} of numbers"
    gaps = sum(column.null_count() for column in others)
    return [f"{len(others):,} more", kinds, "", str(gaps or "")]


def notes(data: LabelledTable, *, honest: bool) -> list[str]:
    """Return possible mistakes in a table, as sentences.

    Parameters
    ----------
    data : LabelledTable
        The table.
    honest : bool
        Whether the model leaves out or encodes columns of many categories itself.
    """
    class_counts = data.class_counts()
    found = [*data.notes, *notes_on_classes(data.target, class_counts)]
    for column, is_category in zip(data.X, data.categorical, strict=True):
        if column.name.startswith("Unnamed: "):
            found.append(
                f"Column {column.name!r} has no name in the header. If it numbers the rows, leave it out: "
                f"--drop {quote(column.name)}"
            )
        if is_category and len(column) >= MANY_NUMBERS:
            found += _notes_on_categories(
                column.name, column, made=column.name in data.roles.categories, honest=honest
            )
    found += _notes_on_marks(data)
    n_classes = len(class_counts)
    if data.y.dtype.kind in "iuf" and n_classes > MANY_NUMBERS:
        found.append(f"Target {data.target!r} has {n_classes} different numbers; each is treated as a class.")
    if len(found) > MOST_NOTES + 1:
        found[MOST_NOTES:] = [f"There are {len(found) - MOST_NOTES:,} more notes like these."]
    return found


def _notes_on_marks(data: LabelledTable) -> list[str]:
    """Name the columns where a common mark for missing values is a category."""
    marked: dict[str, list[str]] = {}
    for column, is_category in zip(data.X, data.categorical, strict=True):
        if is_category and is_text(column.dtype) and column.name not in data.roles.categories:
            values = {*column.unique()}
            for mark in MARKS_OF_GAPS:
                if mark in values and len(values) > 2:
                    marked.setdefault(mark, []).append(column.name)
    return [
        f"{mark!r} is treated as a category in {some(columns)}. If it means missing: --na {quote(mark)}"
        for mark, columns in marked.items()
    ]


def _notes_on_categories(name: str, column: Series, *, made: bool, honest: bool) -> list[str]:
    values = column.drop_nulls().unique(maintain_order=True)
    n_values = len(values)
    found = []
    if n_values > MOST_CATEGORIES and not honest:
        found.append(
            f"Column {name!r} has {n_values} categories; the rarest are merged, since a column distinguishes "
            f"{MOST_CATEGORIES}."
        )
    kind, others = _almost([str(value) for value in values])
    if not made and others:
        named = some([other if other.strip() else repr(other) for other in others])  # make blanks visible
        found.append(
            f"Column {name!r} has {kind} except for {named}, so it is treated as categories. If it is a "
            f"quantity, fix these cells or leave them empty, or use --na {quote(others[0])}."
        )
    if n_values > len(column) / 2 and not honest:
        found.append(
            f"Column {name!r} has {n_values} categories in {len(column)} rows. If it is a name, a "
            f"date or free text, leave it out: --drop {quote(name)}"
        )
    return found


def _almost(texts: list[str]) -> tuple[str, list[str]]:
    """Return the type of nearly all categories, numbers or dates, and the few that are different."""
    first = texts[:MANY_TEXTS]
    reading = most_fitting(first, (*NUMBERS, *DATES))
    if len(misfits(first, reading)) > len(first) / 2:
        return "", []
    others = misfits(texts, reading)
    kind = "dates" if reading in DATES else "numbers"
    return kind, others if len(others) <= (1 - NEARLY_ALL) * len(texts) else []


def _categories(column: Series) -> str:
    values = sorted(map(str, column.drop_nulls().unique()))
    return f"{len(values)}: {some(values)}" if values else ""


def _span(column: Series) -> str:
    import polars as pl

    if column.dtype == pl.Boolean:
        return "false (0), true (1)"
    low: Any = column.drop_nans().min() if column.dtype.is_float() else column.min()
    high: Any = column.max()
    if low is None:
        return ""
    if is_date(column.dtype):
        return f"{low:%Y-%m-%d} to {high:%Y-%m-%d}"
    is_plain = column.dtype.is_integer() or column.dtype.is_float()
    return f"{low:g} to {high:g}" if is_plain else str(column.dtype)


def notes_on_classes(target: str, counts: dict[str, int]) -> list[str]:
    """Name the classes that look alike: they differ in capitals and blanks, or are blank."""
    alike: dict[str, list[str]] = {}
    for label in counts:
        plain = unicodedata.normalize("NFKC", label)
        alike.setdefault(" ".join(plain.casefold().split()), []).append(label)
    blank = alike.pop("", [])
    return [
        f"Target {target!r} has a blank class, {label!r} ({counts[label]:,}). If it means missing: "
        f"--na {quote(label)} --drop-unlabelled"
        for label in blank
    ] + [
        f"Target {target!r} has classes that only differ in capitals or blanks, "
        f"{some([f'{label!r} ({counts[label]:,})' for label in labels])}; each is treated as a class of its "
        "own. If they are the same, write them alike."
        for labels in alike.values()
        if len(labels) > 1
    ]


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress warnings on tables, which `tell` prints with options of the command line."""
    from kfhe import TableWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        yield


def tell(remarks: Iterable[str]) -> None:
    """Print remarks on standard error, one per line."""
    for remark in remarks:
        echo(f"kfhe: {in_options(remark)}", err=True)


def in_options(remark: str) -> str:
    """Return a remark with options as advice, if there are any."""
    from kfhe.remarks import COPIES, LEAK, Remark

    if not isinstance(remark, Remark):
        return remark
    if remark.topic == COPIES:
        return (
            f"{remark.found}. If they are separate observations, name a column that has a different value "
            "in each row: --groups COLUMN"
        )
    if remark.topic == LEAK and remark.column is not None:
        return (
            f"{remark.found}. If it is only known after the label, leave it out: "
            f"--drop {quote(remark.column)}"
        )
    return remark
