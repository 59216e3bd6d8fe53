"""What a labelled table looks like, for the terminal: its columns, and what may be wrong with them."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Any

from kfhe.tables.errors import some
from kfhe.tables.labels import notes_on_classes
from kfhe.tables.readings import DATES, NUMBERS, misfits, most_fitting
from kfhe.tables.types import is_date, is_text

if TYPE_CHECKING:
    from polars import Series

    from kfhe.tables.labelled import LabelledTable
    from kfhe.tables.schema import Schema

MOST_COLUMNS, SOME_COLUMNS = 60, 20  # that are shown one by one; of a wider table, some
MOST_NOTES = 20
MANY_NUMBERS = 20  # different numbers in a target from which on they may be a quantity
MOST_CATEGORIES = 255  # that a column tells apart
MANY_TEXTS = 1000  # that tell whether the others are worth a look
MARKS_OF_GAPS = ("?", "-", "--", ".")
NEARLY_ALL = 0.9  # share of numbers from which on other values look like mistakes


def summary(data: LabelledTable, schema: Schema) -> Any:
    """Return what was found in each column and how it is read, as a table for the terminal."""
    from rich.markup import escape
    from rich.table import Table

    shown = Table("column", "type", "values", "gaps")
    listed = data.X.width if data.X.width <= MOST_COLUMNS else SOME_COLUMNS
    for j, column in enumerate(data.X.get_columns()[:listed]):
        is_category = data.categorical[j]
        values = _categories(column) if is_category else _span(column)
        kind = "date" if is_date(column.dtype) else "number"
        if is_category:
            kind = f"category{_what_became(j, schema)}"
        shown.add_row(escape(column.name), kind, escape(values), str(column.null_count() or ""))
    if listed < data.X.width:
        shown.add_row(*_others(data, listed))
    if data.groups is not None:
        shown.add_row(*_groups(data))
    classes = [f"{label} ({count})" for label, count in data.class_counts().items()]
    shown.add_row(escape(data.target), "target", escape(some(classes)), "")
    return shown


def _what_became(j: int, schema: Schema) -> str:
    """Say what a column of categories is to the model, if trees don't split it as it is."""
    if j in schema.left_out:
        return ", left out"
    return ", as shares of the classes" if j in schema.encodings else ""


def _groups(data: LabelledTable) -> tuple[str, str, str, str]:
    """Return the row on the column that tells which rows belong together."""
    from rich.markup import escape

    assert data.group_column is not None
    return (
        escape(data.group_column),
        "groups",
        escape(_categories(data.all_columns[data.group_column])),
        "",
    )


def _others(data: LabelledTable, listed: int) -> tuple[str, str, str, str]:
    """Return the row that stands for all columns after the first few."""
    others = data.X.get_columns()[listed:]
    n_categories = sum(data.categorical[listed:])
    kinds = f"{n_categories:,} of categories, {len(others) - n_categories:,} of numbers"
    gaps = sum(column.null_count() for column in others)
    return f"{len(others):,} more", kinds, "", str(gaps or "")


def notes(data: LabelledTable, *, honest: bool) -> list[str]:
    """Return what may be wrong with a table, in sentences.

    Parameters
    ----------
    data : LabelledTable
        The table.
    honest : bool
        Whether columns of many categories are left out or encoded by themselves where trees can't split them.
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
                column.name, column, made=column.name in data.made_categories, honest=honest
            )
    found += _notes_on_marks(data)
    n_classes = len(class_counts)
    if data.y.dtype.kind in "iuf" and n_classes > MANY_NUMBERS:
        found.append(f"Target {data.target!r} has {n_classes} different numbers: each is taken for a class.")
    if len(found) > MOST_NOTES + 1:
        found[MOST_NOTES:] = [f"There are {len(found) - MOST_NOTES:,} more notes like these."]
    return found


def _notes_on_marks(data: LabelledTable) -> list[str]:
    """Name the columns in which a mark that stands for a gap elsewhere is a category."""
    marked: dict[str, list[str]] = {}
    for column, is_category in zip(data.X, data.categorical, strict=True):
        if is_category and is_text(column.dtype) and column.name not in data.made_categories:
            values = {*column.unique()}
            for mark in MARKS_OF_GAPS:
                if mark in values and len(values) > 2:
                    marked.setdefault(mark, []).append(column.name)
    return [
        f"{mark!r} is taken for a category in {some(columns)}. If it stands for a gap: --na {quote(mark)}"
        for mark, columns in marked.items()
    ]


def _notes_on_categories(name: str, column: Series, *, made: bool, honest: bool) -> list[str]:
    values = column.drop_nulls().unique(maintain_order=True)
    n_values = len(values)
    found = []
    if n_values > MOST_CATEGORIES and not honest:
        found.append(
            f"Column {name!r} has {n_values} categories; the rarest are taken for one, since a column tells "
            f"{MOST_CATEGORIES} apart."
        )
    kind, others = _almost([str(value) for value in values])
    if not made and others:
        named = some([other if other.strip() else repr(other) for other in others])  # blanks can't be seen
        found.append(
            f"Column {name!r} holds {kind} but for {named}, so it is taken for categories. Fix these "
            f"cells, or leave them empty, if it is a quantity; --na {quote(others[0])} makes gaps of them."
        )
    if n_values > len(column) / 2 and not honest:
        found.append(
            f"Column {name!r} has {n_values} categories in {len(column)} rows. If it names the rows, or "
            f"holds dates or free text, leave it out: --drop {quote(name)}"
        )
    return found


def _almost(texts: list[str]) -> tuple[str, list[str]]:
    """Return what nearly all categories of a column are, numbers or dates, and those few that are not."""
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
