"""The review page: a single file that needs no server and no network."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from kfhe.audit import LabelAudit
from kfhe.audit.chances import BY_PATTERN, RANGE, VotedOdds, by_chance
from kfhe.files import write_whole
from kfhe.review.cells import cells, column_names, digest, label_text, plain_cell, row_digests
from kfhe.review.cleaning import apply_decisions
from kfhe.review.decisions import Decision
from kfhe.review.evidence import gather
from kfhe.review.pictures import ENDINGS, embedded
from kfhe.tables.columns import is_missing

SCRIPTS = ("chances.js", "decisions.js", "detail.js", "overview.js", "page.js")
MOST_ROWS = 10_000  # on a page
MOST_CELLS = 2_000_000  # on a page; with very many columns, there are fewer rows
FEWEST_ROWS = 50  # even if the votes disagree with fewer labels
MOST_PICTURES = 1000
MOST_LETTERS = 5000  # of a cell
LONG = 80  # characters from which on a column is text
SHOWN_VOTES = 4  # number of classes with votes
SHOWN_LOOKS = 6  # number of columns as evidence
BINS = 50  # of the quality
ODDS_STEPS = 5  # steps of the log-odds per unit, by which unlisted rows are grouped
SAMPLED = 1000  # rows by which the browser recognises a table


def write_page(
    path: str | os.PathLike[str],
    audit: LabelAudit,
    X: Any,
    *,
    all_columns: Any = None,
    target: str = "label",
    name: str = "table",
    first_row: int = 0,
    row_numbers: NDArray[np.intp] | None = None,
    decisions: Sequence[Decision] = (),
    pictures: str | os.PathLike[str] | None = None,
    categorical_features: Any = "from_dtype",
    n_jobs: int | None = None,
) -> int:
    """Write the page for reviewing the suspects of an audit.

    It lists the labels that the votes disagree with, the most suspicious first: at most 10,000, and fewer
    if there are more than 200 columns. The browser stores decisions, and exports them as a csv file for
    `read_decisions`.

    Parameters
    ----------
    path : path
        The .html file to write, completely or not at all.
    audit : LabelAudit
        The result of `label_quality` or `audit_again`.
    X : array or data frame of shape (n, n_features)
        The audited rows, without their labels.
    all_columns : data frame, optional
        The same rows, with additional columns to show; without the labels.
    target : str, default="label"
        Name of the column of labels.
    name : str, default="table"
        Name of the table.
    first_row : int, default=0
        Number of the first row: 2 for a csv file, where the header is row 1, and 1 for a parquet file.
    row_numbers : ndarray of int, optional
        Number of each row, if some were left out.
    decisions : sequence of Decision
        Earlier decisions, from which the page continues.
    pictures : path, optional
        Folder of pictures, if a column has names of files; files elsewhere are never shown.
    categorical_features, n_jobs
        As in `label_quality`.

    Returns
    -------
    int
        The number of rows on the page.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from kfhe.audit import label_quality
    >>> from kfhe.noise import flip_labels
    >>> from kfhe.review import write_page
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> audit = label_quality(X, flip_labels(y, 0.1, random_state=0), random_state=0, n_estimators=100)
    >>> with TemporaryDirectory() as folder:
    ...     write_page(Path(folder) / "review.html", audit, X, target="species")
    50
    """
    shown = X if all_columns is None else all_columns
    numbers = np.arange(len(audit)) + first_row if row_numbers is None else row_numbers
    cleaned = apply_decisions(decisions, shown, audit.given, row_numbers=numbers)
    most = max(FEWEST_ROWS, MOST_CELLS // len(column_names(shown)))
    rows = listed_rows(audit, [*np.flatnonzero(cleaned.judged | ~cleaned.kept)], most)
    sure = cleaned.judged | (cleaned.kept & (audit.suggested == audit.given) & ~audit.suspects)
    evidence = gather(
        X, cleaned.labels, audit, rows, sure, categorical_features=categorical_features, n_jobs=n_jobs
    )
    others = np.array(
        sorted({row for pair in evidence.similar for side in pair for row in side}), dtype=np.intp
    )
    content = _Content(audit, shown, rows, numbers, target, name)
    data = {
        **content.table(),
        "columns": content.columns(column_names(X), evidence.usual),
        "rows": content.rows_with(evidence.weights, evidence.similar, column_names(X)),
        "others": (compared := content.others(np.array(sorted(others), dtype=np.intp))),
        "pictures": content.pictures(None if pictures is None else Path(pictures), compared),
        "decisions": [vars(decision) for decision in decisions],
    }
    write_whole(path, html(data))
    return len(rows)


def listed_rows(audit: LabelAudit, also: Sequence[int] = (), most: int = MOST_ROWS) -> NDArray[np.intp]:
    """Return the rows of a page: those that the votes disagree with, the most suspicious first."""
    order = np.argsort(audit.rank)
    disputed = audit.suggested[order] != audit.given[order]
    disputed[:FEWEST_ROWS] = True
    first = order[disputed][: min(most, MOST_ROWS)]
    return np.concatenate([first, np.setdiff1d(np.asarray(also, dtype=np.intp), first)])


class _Content:
    """The data of a page, for JSON."""

    def __init__(
        self,
        audit: LabelAudit,
        shown: Any,
        rows: NDArray[np.intp],
        numbers: NDArray[np.intp],
        target: str,
        name: str,
    ) -> None:
        self.audit, self.shown, self.rows, self.numbers = audit, shown, rows, numbers
        self.target, self.name = target, name
        self.names = column_names(shown)
        self.cells = cells(shown, rows)
        self.kinds = [_kind([row[j] for row in self.cells]) for j in range(len(self.names))]
        self.given = np.searchsorted(audit.classes, audit.given).astype(np.int32)
        self.odds, self.level = VotedOdds.of(audit.votes, self.given)

    def table(self) -> dict[str, Any]:
        """Return the facts about the whole table."""
        audit = self.audit
        quality = np.where(np.isnan(audit.quality), 0.5, audit.quality)
        bins = np.minimum((quality * BINS).astype(int), BINS - 1)
        counts = np.zeros((len(audit.classes), BINS), dtype=int)
        np.add.at(counts, (self.given, bins), 1)
        suspicious = audit.quality[audit.suspects]
        return {
            "name": self.name,
            "target": self.target,
            "key": self._key(),
            "size": len(audit),
            "classes": [label_text(label) for label in audit.classes],
            "counts": counts.tolist(),
            "cut": float(suspicious.max()) if len(suspicious) else None,
            "share": audit.estimated_share,
            "explanations": [
                {"level": each.level, "slope": each.slope, "ofClass": each.of_class}
                for each in (by_chance(self.level), BY_PATTERN)
            ],
            "range": RANGE,
            "unlisted": self._unlisted(),
        }

    def _unlisted(self) -> list[dict[str, Any]]:
        """Return the rows that are not listed, grouped by label and by the odds against it."""
        rest = np.ones(len(self.audit), dtype=bool)
        rest[self.rows] = False
        odds, given = self.odds[rest], self.given[rest]
        steps = np.floor(ODDS_STEPS * odds)
        groups: dict[tuple[int, float], list[float]] = {}
        for label, step, each in zip(given.tolist(), steps.tolist(), odds.tolist(), strict=True):
            groups.setdefault((label, step), []).append(each)
        return [
            {"given": label, "count": len(of_group), "odds": round(sum(of_group) / len(of_group), 3)}
            for (label, _), of_group in sorted(groups.items())
        ]

    def _key(self) -> str:
        """Return a key of the table for the browser's storage, from labels and some rows."""
        n = len(self.audit)
        sample = np.unique(np.linspace(0, n - 1, min(SAMPLED, n)).astype(np.intp))
        parts = [
            self.target,
            *self.names,
            *row_digests(self.shown, sample),
            *map(label_text, self.audit.given),
        ]
        return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def columns(self, learnt: list[str], usual: list[list[Any] | None]) -> list[dict[str, Any]]:
        """Return the columns, and what is usual in those that the trees look at, in the table's own words."""
        known = dict(zip(learnt, usual, strict=True))
        return [
            {"name": name, "kind": kind, "usual": self._in_words(j, known.get(name))}
            for j, (name, kind) in enumerate(zip(self.names, self.kinds, strict=True))
        ]

    def _in_words(self, j: int, usual: list[Any] | None) -> list[Any] | None:
        """Return usual categories with 0 and 1 as false and true, if column j is written so."""
        words = {plain_cell(row[j]): _shown(row[j]) for row in self.cells}
        if usual is None or not words.keys() & {"true", "false"}:
            return usual
        shown = {"0": words.get("false", "false"), "1": words.get("true", "true")}
        return [
            [[shown.get(value, value), share] for value, share in each]
            if each and isinstance(each[0], list)
            else each
            for each in usual
        ]

    def rows_with(
        self, weights: NDArray[np.float64], similar: list[tuple[list[int], list[int]]], learnt: list[str]
    ) -> list[dict[str, Any]]:
        """Return the listed rows with their evidence."""
        audit = self.audit
        place = [self.names.index(name) for name in learnt]
        suggested = np.searchsorted(audit.classes, audit.suggested)
        digests = [digest(self.names, row) for row in self.cells]
        found = []
        for i, row in enumerate(self.rows.tolist()):
            votes = np.nan_to_num(audit.votes[row])
            top = np.argsort(-votes, kind="stable")[:SHOWN_VOTES].tolist()
            top += [position for position in (self.given[row],) if position not in top]
            looks = np.argsort(-np.abs(weights[i]), kind="stable")[:SHOWN_LOOKS]
            found.append(
                {
                    "row": int(self.numbers[row]),
                    "digest": digests[i],
                    "given": int(self.given[row]),
                    "suggested": int(suggested[row]),
                    "quality": None if math.isnan(audit.quality[row]) else round(audit.quality[row], 4),
                    "odds": round(self.odds[row], 3),
                    "suspect": bool(audit.suspects[row]),
                    "votes": [[int(position), round(votes[position], 4)] for position in top],
                    "looks": [[place[j], round(weights[i, j], 4)] for j in looks if weights[i, j]],
                    "similar": [[int(self.numbers[other]) for other in side] for side in similar[i]],
                    "cells": [_shown(value) for value in self.cells[i]],
                }
            )
        return found

    def others(self, rows: NDArray[np.intp]) -> dict[str, list[str | None]]:
        """Return similar rows, by their numbers."""
        shown = cells(self.shown, rows)
        return {
            str(self.numbers[row]): [_shown(value) for value in shown[i]]
            for i, row in enumerate(rows.tolist())
        }

    def pictures(self, folder: Path | None, compared: dict[str, list[str | None]]) -> dict[str, str]:
        """Return the pictures in the rows; if there are too many, those of the first rows."""
        columns = [j for j, kind in enumerate(self.kinds) if kind == "picture"]
        if folder is None or not columns:
            return {}
        try:
            import PIL  # noqa: F401
        except ImportError:
            warn(
                'to show the pictures in the table: pip install "kfhe[review]"',
                stacklevel=4,
            )
            return {}
        names = [row[j] for row in (*self.cells, *compared.values()) for j in columns]
        found: dict[str, str] = {}
        for name in dict.fromkeys(name for name in names if isinstance(name, str)):
            picture = embedded(name, folder) if len(found) < MOST_PICTURES else None
            if picture is not None:
                found[name] = picture
        return found


def _kind(values: list[Any]) -> str:
    """Return how to show a column, by its most frequent type of value."""
    known = [value for value in values if not is_missing(value)]
    texts = [value for value in known if isinstance(value, str)]
    if not texts:
        return "number" if known and all(isinstance(value, int | float) for value in known) else "text"
    half = len(known) / 2
    if (
        sum(text.lower().endswith(ENDINGS) and not text.startswith(("http:", "https:")) for text in texts)
        > half
    ):
        return "picture"
    if sum(text.startswith(("http://", "https://")) for text in texts) > half:
        return "link"
    return "prose" if sum(map(len, texts)) > LONG * len(texts) else "text"


def _shown(value: Any) -> str | None:
    """Return a cell as text; None if it is missing."""
    if is_missing(value):
        return None
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} …"


def html(data: dict[str, Any]) -> str:
    """Return the page; no cell can end its script, and no other script can run."""
    resources = files("kfhe.review")
    style, body, *scripts = (
        resources.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.html", *SCRIPTS)
    )
    script = '"use strict";\n(() => {\n' + "".join(scripts) + "})();\n"
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for mark in "<>&":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>Labels of {escape(data["name"])}</title>
<style>{style}</style>
</head>
<body>
{body}<script type="application/json" id="data">{text}</script>
<script>{script}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    """Return the source of a content security policy that allows exactly this text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
