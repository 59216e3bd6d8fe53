"""``python -m benchmarks.reproduction``: a study beside the paper's own, as a page of Markdown.

It writes ``docs/reproduction/results.md`` of the results of ``kfhe study run paper``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks import claims
from kfhe.files import write_whole
from kfhe.study.analysis import Analysis
from kfhe.study.errors import StudyError
from kfhe.study.paper import published
from kfhe.study.paper.catalogue import catalogue, paper_names
from kfhe.study.report.tables import Table, Value, average_ranks, friedman, posthoc, times, wilcoxon

CLOSE = 0.03


def reproduction(analysis: Analysis) -> str:
    """Return the page: what agrees with the paper, what doesn't, and what can't be compared."""
    if not len(analysis.comparison):
        raise StudyError("nothing of this study is in the paper: there is no reproduction to write about")
    plan = analysis.plan
    parts = [
        "# The paper's experiment, run again",
        "Pakrashi and Mac Namee (2019) compare KFHE with four other ensembles and a single tree. This page "
        "sets the results of `kfhe study run paper` beside their tables. It is written by "
        "`python -m benchmarks.reproduction`.",
        f"{len(plan.algorithms)} algorithms, {plan.repeats} × {plan.folds}-fold cross-validation, "
        f"{', '.join(f'{level:.0%}' for level in plan.noise_levels)} of the training labels changed; "
        f"{len(analysis.cells):,} cells, {len(analysis.failures):,} of them failed; "
        f"{analysis.times['total_seconds'].sum() / 3600:.2f} hours of computing in all.",
        "## Scores without noise",
        _agreement(analysis),
        _scores(analysis),
        "## Average ranks",
        _markdown(average_ranks(analysis)),
        "## Tests",
        _markdown(friedman(analysis)),
        *_claims(analysis),
        "## Pairs of algorithms",
        "The p-values of the paper's Wilcoxon tests are one-tailed (half of the two-sided ones), although "
        "its text calls them two-tailed. The tables hold two-sided ones, and the published ones doubled.",
        *_pairs(analysis),
        "## What can't be compared",
        _not_comparable(),
        "## Time",
        _markdown(times(analysis)),
        "## Versions",
        "; ".join(", ".join(f"{n} {v}" for n, v in versions.items()) for versions in analysis.versions) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _agreement(analysis: Analysis) -> str:
    """Say for each algorithm on how many comparable datasets it is close to the published figure."""
    clean = analysis.comparison
    clean = clean[clean["comparable"] & (clean["noise"] == 0)]
    lines = []
    for algorithm, rows in clean.groupby("algorithm", sort=False):
        close = int((rows["difference"].abs() <= CLOSE).sum())
        mean = rows["difference"].mean()
        lines.append(
            f"- {algorithm}: within {CLOSE} of the paper on {close} of {len(rows)}, {mean:+.4f} on average"
        )
    return "On the datasets that are the paper's, macro F1:\n\n" + "\n".join(lines)


def _scores(analysis: Analysis) -> str:
    clean = analysis.comparison[analysis.comparison["noise"] == 0]
    names = [name for name in published.EMPHASES if name in set(clean["algorithm"])]
    head = ["dataset", *(f"{name}{what}" for name in names for what in ("", ", paper", ", authors' program"))]
    lines = [head, ["---"] + ["--:"] * (len(head) - 1)]
    for dataset, rows in clean.groupby("dataset", sort=False):
        line = [f"{dataset}{'' if rows['comparable'].iloc[0] else ' (other data)'}"]
        for name in names:
            row = rows[rows["algorithm"] == name].iloc[0]
            numbers = (row["ours"], row["published"], row["authors_program"])
            line += ["" if number is None or number != number else f"{number:.4f}" for number in numbers]
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _claims(analysis: Analysis) -> list[str]:
    found = claims.verdicts(analysis)
    if not found:
        return []
    lines = [
        f"- {'Holds' if verdict.holds else '**Does not hold**'}: {verdict.claim} {verdict.found}"
        for verdict in found
    ]
    return ["## The paper's claims", "\n".join(lines)]


def _pairs(analysis: Analysis) -> list[str]:
    tables = [
        table(analysis, noise)
        for noise in filter(analysis.can_test, analysis.noise_levels)
        for table in (posthoc, wilcoxon)
    ]
    return [f"### {table.title}\n\n{_markdown(table)}" for table in tables]


def _not_comparable() -> str:
    facts = [catalogue()[name] for name in paper_names()]
    return "\n".join(f"- `{fact.name}`: {fact.note}" for fact in facts if not fact.comparable)


def _markdown(table: Table) -> str:
    lines = [table.head, ["---"] + ["--:"] * (len(table.head) - 1)]
    for row in table.rows:
        lines.append([_markdown_field(value) for value in row])
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{body}\n\n{_literal(table.note)}".strip()


def _markdown_field(value: Value) -> str:
    text = f"**{_literal(value.text)}**" if value.strong else _literal(value.text)
    return f"{text} ({value.beside})" if value.beside else text


def _literal(text: str) -> str:
    return text.replace("*", r"\*")


def main(
    results: Annotated[Path, typer.Argument(help="The result file of a study.")],
    page: Annotated[Path, typer.Argument(help="The Markdown file to write.")],
) -> None:
    """Set a study beside the paper's."""
    write_whole(page, reproduction(Analysis(results)))


if __name__ == "__main__":
    typer.run(main)
