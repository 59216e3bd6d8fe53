"""The tables of a report, with values for sorting and csv, and text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from kfhe.study.analysis import ALPHA, Analysis
from kfhe.study.dataset import import_pandas
from kfhe.study.paper import published
from kfhe.study.paper.catalogue import catalogue

MOST_COLUMNS = 9  # of a table with few rows
STARS = "* below 0.1, ** below 0.05, *** below 0.01"

Format = Callable[[Any], str]


@dataclass(frozen=True)
class Value:
    """A cell of a table: a value, its text, and a note in small print."""

    raw: Any
    text: str
    beside: str = ""
    strong: bool = False


@dataclass(frozen=True)
class Table:
    """A table of a report.

    Attributes
    ----------
    key : str
        Name of its files.
    section : str
        Key of its section.
    title, note : str
        Title and explanation.
    head : list of str
        Names of the columns.
    rows : list of list of Value
        The cells.
    noise : float or None
        Noise level, if there is a table for each.
    """

    key: str
    section: str
    title: str
    head: list[str]
    rows: list[list[Value]]
    note: str = ""
    noise: float | None = None

    def upright(self) -> Table:
        """Return the table, transposed if it is too wide and has few rows."""
        if len(self.head) <= MOST_COLUMNS or 2 * len(self.rows) >= len(self.head):
            return self
        head = [self.head[0], *(row[0].text for row in self.rows)]
        names = [Value(name, name) for name in self.head[1:]]
        fields = zip(*(row[1:] for row in self.rows), strict=True)
        rows = [[name, *column] for name, column in zip(names, fields, strict=True)]
        return replace(self, head=head, rows=rows)

    def csv(self) -> str:
        """Return the values as csv."""
        rows = [[value.raw for value in row] for row in self.rows]
        frame = import_pandas().DataFrame(rows, columns=self.head, dtype=object)
        return str(frame.to_csv(index=False, lineterminator="\n"))

    def latex(self) -> str:
        """Return the texts as a LaTeX ``table`` environment that needs no packages."""
        strong = [["font-weight: bold" if value.strong else "" for value in row] for row in self.rows]
        frame = import_pandas().DataFrame([[v.text for v in row] for row in self.rows], columns=self.head)
        style = frame.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis=1)
        return str(
            style.apply(lambda _: np.array(strong), axis=None).to_latex(
                caption=re.sub(r"([&%#_$])", r"\\\1", f"{self.title}. {self.note}"),
                label=f"tab:{self.key}",
                column_format="l" + "r" * (len(self.head) - 1),
                convert_css=True,
            )
        )


def all_tables(analysis: Analysis) -> list[Table]:
    """Return every table, in the order of the page."""
    series = [
        maker(analysis, noise)
        for maker in (scores, posthoc, wilcoxon)
        for noise in analysis.noise_levels
        if maker is scores or analysis.can_test(noise)
    ]
    tables = [average_ranks(analysis), mean_scores(analysis), friedman(analysis)]
    tables += [*map(ranks_and_means, analysis.other_metrics), *series]
    tables += [comparison(analysis), times(analysis), datasets(analysis), failures(analysis)]
    return [table for table in tables if table.rows]


def finding(analysis: Analysis) -> str:
    """Describe in one sentence which algorithms have the best average rank at which noise levels."""
    levels: dict[str, list[str]] = {}
    for noise, ranks in analysis.average_ranks.iterrows():
        best = " and ".join(ranks.index[ranks == ranks.min()])
        levels.setdefault(best, []).append(share(noise))
    firsts = "; ".join(f"{best} at {', '.join(at)}" for best, at in levels.items() if best)
    return f"Best average rank by {analysis.metric_name}, by {analysis.plan.level}: {firsts}."


def average_ranks(analysis: Analysis) -> Table:
    """Return average ranks by noise level, with those of the paper."""
    beside: dict[tuple[float, str], str] = {}
    for noise in analysis.noise_levels if analysis.compares else ():
        used = [name for name in analysis.complete(noise).index if published.comparable(name)]
        same, printed = published.average_ranks(noise, used), published.average_ranks(noise)
        if same is not None and printed is not None:
            beside |= {(noise, name): f"paper {same[name]:.2f} / {printed[name]:.2f}" for name in same.index}
    note = "1 is the best. Datasets for which every algorithm has a score."
    if beside:
        note += (
            " In small print, those of the paper: first computed from its scores on the same datasets "
            "(without those whose data differ), then as published, over 30 datasets."
        )
    title = f"Average ranks by {analysis.plan.level}"
    return _by_level("average_ranks", "ranks", title, analysis.average_ranks, 2, beside=beside, note=note)


def mean_scores(analysis: Analysis) -> Table:
    """Return the mean over all datasets, by noise level."""
    title = f"Mean {analysis.metric_name} over the datasets, by {analysis.plan.level}"
    low = analysis.lower_is_better
    return _by_level("mean_scores", "ranks", title, analysis.mean_scores, 3, lower_is_better=low)


def ranks_and_means(analysis: Analysis) -> Table:
    """Return average ranks by noise level for another metric, with the means."""
    beside = {key: number(mean, 3) for key, mean in analysis.mean_scores.stack().items()}
    title = f"Average ranks by {analysis.metric_name}"
    key = f"average_ranks_{analysis.metric}"
    return _by_level(key, "metrics", title, analysis.average_ranks, 2, beside=beside)


def _by_level(
    key: str,
    section: str,
    title: str,
    values: Any,
    digits: int,
    *,
    lower_is_better: bool = True,
    beside: Mapping[Any, str] | None = None,
    note: str = "",
) -> Table:
    """Return a table of values for each noise level and algorithm, with the best in bold."""
    rows, beside = [], beside or {}
    for noise, row in values.iterrows():
        best = row.min() if lower_is_better else row.max()
        fields = [
            Value(value, number(value, digits), beside.get((noise, name), ""), value == best)
            for name, value in row.items()
        ]
        rows.append([Value(noise, share(noise)), *fields])
    return Table(key, section, title, ["noise", *values.columns], rows, note)


def friedman(analysis: Analysis) -> Table:
    """Return the Friedman aligned ranks test of each noise level."""
    title = "Friedman aligned ranks test: are there any differences?"
    columns = {"noise": share, "datasets": "{:.0f}".format, "T": "{:.2f}".format, "p-value": pvalue_text}
    tests = analysis.friedman.rename(columns={"statistic": "T", "pvalue": "p-value"})
    strong = {"p-value": lambda value: value < ALPHA}
    return _of_frame(
        "friedman_aligned_ranks", "tests", title, tests.reset_index(names="noise"), columns, strong
    )


def scores(analysis: Analysis, noise: float) -> Table:
    """Return the mean, deviation and rank of every algorithm on every dataset."""
    means, deviations, ranks = analysis.means(noise), analysis.deviations(noise), analysis.ranks(noise)
    printed = published.scores(noise) if analysis.has_published else means.iloc[:0]
    rows = []
    for dataset in means.index:
        row = [Value(dataset, dataset)]
        for name in analysis.algorithms:
            mean, rank = means.at[dataset, name], ranks.at[dataset, name]
            if math.isnan(mean):
                row.append(Value(None, "–"))
                continue
            beside = ""
            if dataset in printed.index and name in printed.columns:
                theirs = printed.at[dataset, name]
                beside = f"paper {theirs:.4f} ({mean - theirs:+.3f})"
                beside += "" if published.comparable(dataset) else ", other data"
            text = f"{mean:.4f} ± {number(deviations.at[dataset, name], 2)} ({rank:g})"
            row.append(Value(mean, text, beside, ranks.loc[dataset].min() == rank))
        rows.append(row)
    title = f"{analysis.metric_name} with {analysis.plan.noise_done(noise)}"
    note = (
        f"Mean ± standard deviation over {analysis.plan.repeats} × {analysis.plan.folds} folds, and rank. "
        "Best in bold; beside it the paper's figure and the difference, where there is one."
    )
    head = ["dataset", *analysis.algorithms]
    return Table(f"scores_{percent(noise)}", "scores", title, head, rows, note, noise)


def posthoc(analysis: Analysis, noise: float) -> Table:
    """Return the adjusted p-values of the aligned-rank post-hoc test, below the diagonal."""
    pvalues, printed = analysis.posthoc(noise), published.posthoc(noise) if analysis.compares else {}
    names, fields = analysis.algorithms, {}
    for first, second in combinations(names, 2):
        theirs = printed.get(frozenset((first, second)))
        fields[second, first] = _pvalue(pvalues.at[second, first], theirs)
    note = f"P-values of the pairs, two-sided, adjusted by Finner's procedure; {STARS}."
    return _of_pairs("posthoc", "Post-hoc Friedman aligned ranks test", names, fields, note, noise)


def wilcoxon(analysis: Analysis, noise: float) -> Table:
    """Return wins, losses and ties above the diagonal, and p-values of each pair below it."""
    printed = published.wilcoxon(noise) if analysis.compares else {}
    fields = {}
    for pair in analysis.wilcoxon(noise).itertuples(index=False):
        theirs = printed.get((pair.first, pair.second))
        fields[pair.first, pair.second] = Value(
            pair.wins,
            f"{pair.wins}/{pair.losses}/{pair.ties}",
            f"paper {theirs[0]}/{theirs[1]}/{theirs[2]}" if theirs else "",
        )
        fields[pair.second, pair.first] = _pvalue(pair.pvalue, 2 * theirs[3] if theirs else None)
    note = (
        "Above the diagonal: datasets on which the row's algorithm wins, loses, ties against the column's. "
        f"Below: two-sided p-values, each pair in isolation; {STARS}."
    )
    if printed:
        note += (
            " The p-values of the paper are one-tailed, although its text calls them two-tailed; "
            "here they are doubled."
        )
    return _of_pairs("wilcoxon", "Wilcoxon signed-ranks test", analysis.algorithms, fields, note, noise)


def _pvalue(value: float, theirs: float | None) -> Value:
    beside = "" if theirs is None else f"paper {pvalue_text(theirs)}"
    reached = sum(value < limit for limit in (0.01, 0.05, 0.1))
    return Value(value, f"{pvalue_text(value)} {'*' * reached}".strip(), beside, value < ALPHA)


def _of_pairs(
    test: str, title: str, names: list[str], fields: dict[tuple[str, str], Value], note: str, noise: float
) -> Table:
    """Return a square table of a test for pairs of algorithms at one noise level."""
    nothing = Value(None, "")
    rows = [[Value(name, name), *(fields.get((name, other), nothing) for other in names)] for name in names]
    title = f"{title}, {share(noise)} noise"
    return Table(f"{test}_{percent(noise)}", "tests", title, ["", *names], rows, note, noise)


def comparison(analysis: Analysis) -> Table:
    """Return our scores, the published ones, and those of the authors' own program."""
    four = "{:.4f}".format
    columns: dict[str, Format] = {
        "dataset": str,
        "algorithm": str,
        "noise": share,
        "ours": four,
        "published": four,
        "difference": "{:+.4f}".format,
        "authors' program": four,
        "same data": lambda same: "yes" if same else "no",
    }
    rows = analysis.comparison.rename(
        columns={"authors_program": "authors' program", "comparable": "same data"}
    )
    note = (
        "Macro F1. Differences of more than 0.03 in bold. 'authors' program': their own program on the same "
        "files, 2 × 4 folds, no noise. The paper drew its noise once for each dataset and level."
    )
    strong = {"difference": lambda value: abs(value) > 0.03}
    return _of_frame("comparison", "paper", "Beside the published figures", rows, columns, strong, note)


def times(analysis: Analysis) -> Table:
    """Return the time per algorithm."""
    found = analysis.times
    frame = found[["cells", "failed"]].assign(
        **{
            "minutes in all": found["total_seconds"] / 60,
            "ms to fit": 1000 * found["fit_seconds"],
            "ms to predict": 1000 * found["predict_seconds"],
            "components": found["components"],
        }
    )
    columns: dict[str, Format] = {"algorithm": str, **dict.fromkeys(frame, "{:.1f}".format)}
    columns["cells"] = columns["failed"] = "{:,.0f}".format
    note = "Means over all cells, each with one thread. Components: of ensembles that tell their number."
    frame = frame.reset_index(names="algorithm")
    return _of_frame("times", "times", "Time per algorithm", frame, columns, note=note)


def datasets(analysis: Analysis) -> Table:
    """Return the datasets, with the paper's sizes."""
    frame = analysis.datasets.rename(columns={"wrong": "wrong labels"}).reset_index(names="dataset")
    frame[["in the paper", "note"]] = None
    for row, name in enumerate(frame["dataset"]):
        facts = catalogue().get(name)
        if facts and facts.paper:
            frame.at[row, "in the paper"] = "{rows} × {columns} × {classes}".format(**facts.paper)
        frame.at[row, "note"] = analysis.left_out.get(name) or (facts.note if facts else None)
    columns: dict[str, Format] = dict.fromkeys(("dataset", "target"), str)
    columns |= dict.fromkeys(("rows", "features", "classes", "categorical"), "{:.0f}".format)
    if analysis.plan.given is not None:
        columns["wrong labels"] = "{:.1%}".format
    columns |= dict.fromkeys(("in the paper", "note"), str)
    note = (
        "'target': the predicted column. 'in the paper': its rows × dimensions × classes; the dimensions "
        "mostly include the class."
    )
    return _of_frame("datasets", "datasets", "Datasets", frame, columns, note=note)


def failures(analysis: Analysis) -> Table:
    """Return the cells that ended in an error."""
    columns = dict.fromkeys(analysis.failures, str)
    return _of_frame("failures", "failures", "Cells that ended in an error", analysis.failures, columns)


def _of_frame(
    key: str,
    section: str,
    title: str,
    frame: Any,
    columns: Mapping[str, Format],
    strong: Mapping[str, Callable[[Any], bool]] | None = None,
    note: str = "",
) -> Table:
    """Return a table of columns of a data frame, each with a format; missing values are empty."""
    rows = [[Value(None, "")] * len(columns) for _ in range(len(frame))]
    for place, (name, written) in enumerate(columns.items()):
        for row, value in zip(rows, frame[name].tolist(), strict=True):
            if not import_pandas().isna(value):
                bold = strong is not None and name in strong and strong[name](value)
                row[place] = Value(value, written(value), strong=bold)
    return Table(key, section, title, list(columns), rows, note)


def number(value: float, digits: int) -> str:
    """Format a number with some decimals; NaN is empty."""
    return "" if math.isnan(value) else f"{value:.{digits}f}"


def pvalue_text(value: float) -> str:
    """Format a p-value."""
    return "< 0.0001" if value < 0.0001 else f"{min(value, 1):.4f}"


def share(noise: float) -> str:
    """Format a noise level."""
    return f"{100 * noise:g}%"


def percent(noise: float) -> str:
    """Format a noise level for file names."""
    return f"{100 * noise:g}".replace(".", "_")
