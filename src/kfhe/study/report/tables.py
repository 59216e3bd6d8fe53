"""The tables of a report, each with its values (for sorting and csv) and its texts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from kfhe.study.analyse import ALPHA, Analysis
from kfhe.study.paper import claims, published
from kfhe.study.paper.catalogue import catalogue

MOST_COLUMNS = 9  # of a table that has few rows


@dataclass(frozen=True)
class Value:
    """A table's field: what it is, how it is written, and what stands beside it in small print."""

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
        Key of the section it belongs to.
    title, note : str
        What it shows, and how to read it.
    head : list of str
        Names of the columns.
    rows : list of list of Value
        The fields.
    noise : float or None
        Noise level, if it is one of a series.
    """

    key: str
    section: str
    title: str
    head: list[str]
    rows: list[list[Value]]
    note: str = ""
    noise: float | None = None

    def upright(self) -> Table:
        """Return the table with rows as columns if it is too wide to be read, and not half as high."""
        if len(self.head) <= MOST_COLUMNS or 2 * len(self.rows) >= len(self.head):
            return self
        head = [self.head[0], *(row[0].text for row in self.rows)]
        names = [Value(name, name) for name in self.head[1:]]
        fields = zip(*(row[1:] for row in self.rows), strict=True)
        rows = [[name, *column] for name, column in zip(names, fields, strict=True)]
        return replace(self, head=head, rows=rows)


def all_tables(analysis: Analysis) -> list[Table]:
    """Return every table, in the order of the page."""
    series = [
        maker(analysis, noise)
        for maker in (scores, posthoc, wilcoxon)
        for noise in analysis.noise_levels
        if maker is scores or analysis.can_test(noise)
    ]
    tables = [verdicts(analysis), average_ranks(analysis), mean_scores(analysis), friedman(analysis)]
    tables += [*map(ranks_and_means, analysis.other_metrics), *series]
    tables += [comparison(analysis), times(analysis), datasets(analysis), failures(analysis)]
    return [table for table in tables if table.rows]


def finding(analysis: Analysis) -> str:
    """Say in one sentence which algorithms have the best average rank, and at which noise levels."""
    levels: dict[str, list[str]] = {}
    for noise, ranks in analysis.average_ranks.iterrows():
        best = " and ".join(ranks.index[ranks == ranks.min()])
        levels.setdefault(best, []).append(f"{100 * noise:g}%")
    firsts = "; ".join(f"{best} at {', '.join(at)}" for best, at in levels.items() if best)
    return f"Best average rank by {analysis.metric_name}, by {analysis.plan.level}: {firsts}."


def average_ranks(analysis: Analysis) -> Table:
    """Return average ranks by noise level, and beside them those of the paper."""
    ranks = analysis.average_ranks
    rows = []
    for noise in analysis.noise_levels:
        used = [name for name in analysis.complete(noise).index if published.comparable(name)]
        same = published.average_ranks(noise, used) if analysis.compares else None
        printed = published.average_ranks(noise) if analysis.compares else None
        row = [number(noise, f"{100 * noise:g}%")]
        for name in analysis.algorithms:
            beside = ""
            if same is not None and printed is not None and name in same:
                beside = f"paper {same[name]:.2f} / {printed[name]:.2f}"
            best = ranks.at[noise, name] == ranks.loc[noise].min()
            row.append(Value(ranks.at[noise, name], fixed(ranks.at[noise, name], 2), beside, best))
        rows.append(row)
    note = "1 is the best. Over the datasets for which every algorithm has a score."
    if any(value.beside for row in rows for value in row):
        note += (
            " Beside them the paper's: first those that follow from its scores on the same datasets (without "
            "those whose data differ), then those that it prints, over 30 datasets."
        )
    head = ["noise", *analysis.algorithms]
    return Table("average_ranks", "ranks", f"Average ranks by {analysis.plan.level}", head, rows, note)


def mean_scores(analysis: Analysis) -> Table:
    """Return the mean over all datasets, by noise level."""
    rows = []
    for noise in analysis.noise_levels:
        means = analysis.means(noise).loc[analysis.complete(noise).index].mean()
        best = means.min() if analysis.lower_is_better else means.max()
        fields = [
            Value(means[name], fixed(means[name], 3), strong=means[name] == best) for name in means.index
        ]
        rows.append([number(noise, f"{100 * noise:g}%"), *fields])
    title = f"Mean {analysis.metric_name} over the datasets, by {analysis.plan.level}"
    return Table("mean_scores", "ranks", title, ["noise", *analysis.algorithms], rows)


def ranks_and_means(analysis: Analysis) -> Table:
    """Return average ranks by noise level for one more metric, and beside them the means."""
    rows = []
    for noise in analysis.noise_levels:
        complete = analysis.complete(noise).index
        ranks, means = analysis.average_ranks.loc[noise], analysis.means(noise).loc[complete].mean()
        fields = [
            Value(ranks[name], fixed(ranks[name], 2), fixed(means[name], 3), ranks[name] == ranks.min())
            for name in analysis.algorithms
        ]
        rows.append([number(noise, f"{100 * noise:g}%"), *fields])
    title = f"Average ranks by {analysis.metric_name}"
    head = ["noise", *analysis.algorithms]
    return Table(f"average_ranks_{analysis.metric}", "metrics", title, head, rows)


def friedman(analysis: Analysis) -> Table:
    """Return the Friedman aligned ranks test by noise level."""
    rows = [
        [
            number(noise, f"{100 * noise:g}%"),
            number(int(test.datasets), str(int(test.datasets))),
            number(test.statistic, fixed(test.statistic, 2)),
            Value(test.pvalue, pvalue_text(test.pvalue), strong=test.pvalue < ALPHA),
        ]
        for noise, test in analysis.friedman.iterrows()
    ]
    return Table(
        "friedman_aligned_ranks",
        "tests",
        "Friedman aligned ranks test: do the algorithms differ at all?",
        ["noise", "datasets", "T", "p-value"],
        rows,
    )


def scores(analysis: Analysis, noise: float) -> Table:
    """Return mean, deviation and rank of each dataset and algorithm at a noise level."""
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
            text = f"{mean:.4f} ± {fixed(deviations.at[dataset, name], 2)} ({rank:g})"
            row.append(Value(mean, text, beside, ranks.loc[dataset].min() == rank))
        rows.append(row)
    return Table(
        f"scores_{percent(noise)}",
        "scores",
        f"{analysis.metric_name} with {analysis.plan.noise_done(noise)}",
        ["dataset", *analysis.algorithms],
        rows,
        f"Mean ± standard deviation over {analysis.plan.repeats} × {analysis.plan.folds} folds, and rank. "
        "Best in bold; beside it the paper's figure and the difference, where there is one.",
        noise,
    )


def posthoc(analysis: Analysis, noise: float) -> Table:
    """Return the adjusted p-values of the aligned-rank post-hoc test at a noise level."""
    pvalues, printed = analysis.posthoc(noise), published.posthoc(noise)
    rows = []
    for position, first in enumerate(analysis.algorithms):
        row = [Value(first, first)]
        for second in analysis.algorithms[:position]:
            value, theirs = pvalues.at[first, second], printed.get(frozenset((first, second)))
            beside = f"paper {pvalue_text(theirs)}" if theirs is not None and analysis.compares else ""
            row.append(Value(value, pvalue_text(value) + stars(value), beside, value < ALPHA))
        rows.append(row + [Value(None, "")] * (len(analysis.algorithms) - position))
    return Table(
        f"posthoc_{percent(noise)}",
        "tests",
        f"Post-hoc Friedman aligned ranks test, {100 * noise:g}% noise",
        ["", *analysis.algorithms],
        rows,
        "P-values of the pairs, two-sided, adjusted by Finner's procedure; "
        "* below 0.1, ** below 0.05, *** below 0.01.",
        noise,
    )


def wilcoxon(analysis: Analysis, noise: float) -> Table:
    """Return the Wilcoxon signed-ranks test: win/lose/tie above the diagonal, p-values below it."""
    table, printed = analysis.wilcoxon(noise), published.wilcoxon(noise) if analysis.compares else {}
    order = analysis.algorithms
    fields = {(name, other): Value(None, "") for name in order for other in order}
    for pair in table.itertuples(index=False):
        theirs = printed.get((pair.first, pair.second))
        fields[pair.first, pair.second] = Value(
            pair.wins,
            f"{pair.wins}/{pair.losses}/{pair.ties}",
            f"paper {theirs[0]}/{theirs[1]}/{theirs[2]}" if theirs else "",
        )
        fields[pair.second, pair.first] = Value(
            pair.pvalue,
            pvalue_text(pair.pvalue) + stars(pair.pvalue),
            f"paper {pvalue_text(2 * theirs[3])}" if theirs else "",
            pair.pvalue < ALPHA,
        )
    rows = [[Value(name, name), *(fields[name, other] for other in order)] for name in order]
    note = (
        "Above the diagonal: datasets on which the row's algorithm wins, loses, ties against the column's. "
        "Below: two-sided p-values, each pair in isolation; * below 0.1, ** below 0.05, *** below 0.01."
    )
    if printed:
        note += (
            " The paper's p-values are one-tailed, though its text calls them two-tailed: "
            "they stand here doubled."
        )
    return Table(
        f"wilcoxon_{percent(noise)}",
        "tests",
        f"Wilcoxon signed-ranks test, {100 * noise:g}% noise",
        ["", *order],
        rows,
        note,
        noise,
    )


def comparison(analysis: Analysis) -> Table:
    """Return ours beside the published figure and the authors' own program."""
    rows = [
        [
            Value(row.dataset, row.dataset),
            Value(row.algorithm, row.algorithm),
            number(row.noise, f"{100 * row.noise:g}%"),
            number(row.ours, fixed(row.ours, 4)),
            number(row.published, fixed(row.published, 4)),
            Value(row.difference, f"{row.difference:+.4f}", strong=abs(row.difference) > 0.03),
            number(row.authors_program, fixed(row.authors_program, 4)),
            Value(row.comparable, "yes" if row.comparable else "no"),
        ]
        for row in analysis.comparison.itertuples(index=False)
    ]
    return Table(
        "comparison",
        "paper",
        "Beside the published figures",
        ["dataset", "algorithm", "noise", "ours", "published", "difference", "authors' program", "same data"],
        rows,
        "Macro F1. Differences of more than 0.03 in bold. 'authors' program': their own program on the same "
        "files, 2 × 4 folds, no noise. The paper drew its noise once for each dataset and level.",
    )


def verdicts(analysis: Analysis) -> Table:
    """Return the paper's claims, and whether they hold here."""
    rows = [
        [
            Value(verdict.claim, verdict.claim),
            Value(verdict.holds, "holds" if verdict.holds else "doesn't hold", strong=not verdict.holds),
            Value(verdict.found, verdict.found),
        ]
        for verdict in claims.verdicts(analysis)
    ]
    return Table("claims", "claims", "The paper's claims", ["claim", "here", "found"], rows)


def times(analysis: Analysis) -> Table:
    """Return the time per algorithm."""
    rows = [
        [
            Value(name, str(name)),
            number(row.cells, f"{row.cells:,.0f}"),
            number(row.failed, f"{row.failed:,.0f}"),
            number(row.total_seconds, fixed(row.total_seconds / 60, 1)),
            number(row.fit_seconds, fixed(1000 * row.fit_seconds, 1)),
            number(row.predict_seconds, fixed(1000 * row.predict_seconds, 1)),
            number(row.components, fixed(row.components, 1)),
        ]
        for name, row in analysis.times.iterrows()
    ]
    head = ["algorithm", "cells", "failed", "minutes in all", "ms to fit", "ms to predict", "components"]
    note = "Means over all cells, one thread each. Components: of ensembles that say how many they have."
    return Table("times", "times", "Time per algorithm", head, rows, note)


def datasets(analysis: Analysis) -> Table:
    """Return the datasets, with the paper's sizes."""
    rows = []
    for name, row in analysis.datasets.iterrows():
        facts = catalogue().get(str(name))
        paper = facts.paper if facts else None
        printed = f"{paper['rows']} × {paper['columns']} × {paper['classes']}" if paper else ""
        sizes = (row["rows"], row["features"], row["classes"], row["categorical"])
        note = analysis.left_out.get(str(name)) or (facts.note if facts else "") or ""
        fields = [number(size, fixed(size, 0)) for size in sizes]
        if analysis.plan.given is not None:
            fields.append(number(row["wrong"], f"{row['wrong']:.1%}"))
        target = row["target"] if isinstance(row["target"], str) else ""  # none of a dataset that is missing
        rows.append(
            [
                Value(name, str(name)),
                Value(target, target),
                *fields,
                Value(printed, printed),
                Value(note, note),
            ]
        )
    wrong = ["wrong labels"] if analysis.plan.given is not None else []
    head = ["dataset", "target", "rows", "features", "classes", "categorical", *wrong, "in the paper", "note"]
    note = (
        "'target': the column that is learnt. 'in the paper': its rows × dimensions × classes; its "
        "dimensions mostly count the class."
    )
    return Table("datasets", "datasets", "Datasets", head, rows, note)


def failures(analysis: Analysis) -> Table:
    """Return the cells that ended in an error."""
    head = list(analysis.failures.columns)
    rows = [[Value(value, str(value)) for value in row] for row in analysis.failures.itertuples(index=False)]
    return Table("failures", "failures", "Cells that ended in an error", head, rows)


def number(raw: Any, text: str) -> Value:
    """Return a field of a number; None for NaN."""
    missing = raw is None or (isinstance(raw, float) and math.isnan(raw))
    return Value(None if missing else raw, "" if missing else text)


def fixed(value: Any, digits: int) -> str:
    """Write a number with some digits after the point; nothing for NaN."""
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def pvalue_text(value: float) -> str:
    """Write a p-value."""
    return "< 0.0001" if value < 0.0001 else f"{min(value, 1):.4f}"


def stars(value: float) -> str:
    """Return the paper's marks of significance."""
    reached = sum(value < limit for limit in (0.01, 0.05, 0.1))
    return " " + "*" * reached if reached else ""


def percent(noise: float) -> str:
    """Write a noise level as it stands in file names."""
    return f"{100 * noise:g}".replace(".", "_")
