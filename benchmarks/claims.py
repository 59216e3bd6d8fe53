"""The paper's claims, each checked against the results of a study."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kfhe.study.analysis import ALPHA, Analysis
from kfhe.study.paper import published


class Verdict(NamedTuple):
    """A claim of the paper, whether it holds here, and what was found."""

    claim: str
    holds: bool
    found: str


def verdicts(analysis: Analysis) -> list[Verdict]:
    """Check the paper's claims; none unless the study has the paper's algorithms and its noise levels."""
    levels = (0.0, 0.05, 0.1, 0.15, 0.2)
    ready = (
        analysis.has_published
        and set(published.ALGORITHMS) == set(analysis.algorithms)
        and set(levels) <= set(analysis.noise_levels)
        and all(analysis.can_test(noise) for noise in levels)
    )
    if not ready:
        return []
    noisy = levels[2:]
    return [
        _friedman(analysis, levels),
        _best(analysis, "KFHE-e", levels[:1]),
        _best(analysis, "KFHE-l", noisy),
        _better(analysis, "KFHE-e", ("S-GBM", "Bagging", "CART"), levels[:1]),
        _better(analysis, "KFHE-l", ("S-GBM", "Bagging", "CART"), levels[:1]),
        _alike(analysis, "KFHE-e", ("AdaBoost", "GBM"), 0.0),
        _better(
            analysis,
            "KFHE-l",
            ("S-GBM", "Bagging"),
            levels[:4],
            "The paper's own table says otherwise at 15%: p = 0.056 and 0.077.",
        ),
        _better(analysis, "KFHE-l", ("AdaBoost",), noisy),
        _degrades(analysis, "AdaBoost", "KFHE-e"),
        _pairwise(analysis, "KFHE-e", ("KFHE-l", "GBM", "S-GBM", "Bagging", "CART"), 0.0),
        _pairwise(analysis, "KFHE-e", ("AdaBoost",), 0.2),
    ]


def _percent(levels: Iterable[float]) -> str:
    return ", ".join(f"{level:.0%}" for level in levels)


def _friedman(analysis: Analysis, levels: tuple[float, ...]) -> Verdict:
    pvalues = analysis.friedman.loc[list(levels), "pvalue"]
    return Verdict(
        "The Friedman aligned ranks test says at all noise levels that the algorithms differ (p < 0.001).",
        bool((pvalues < 0.001).all()),
        f"The largest p-value is {pvalues.max():.2g}.",
    )


def _best(analysis: Analysis, name: str, levels: tuple[float, ...]) -> Verdict:
    ranks = analysis.average_ranks.loc[list(levels)]
    found = "; ".join(
        f"{noise:.0%}: {name} {row[name]:.2f}, best {row.idxmin()} {row.min():.2f}"
        for noise, row in ranks.iterrows()
    )
    return Verdict(
        f"{name} has the best average rank at {_percent(levels)} noise.",
        bool((ranks[name] <= ranks.min(axis=1)).all()),
        found + ".",
    )


def _better(
    analysis: Analysis, name: str, rivals: tuple[str, ...], levels: tuple[float, ...], remark: str = ""
) -> Verdict:
    found, holds = [], True
    for noise in levels:
        pvalues, ranks = analysis.posthoc(noise).loc[name], analysis.average_ranks.loc[noise]
        holds &= all(pvalues[rival] < ALPHA and ranks[name] < ranks[rival] for rival in rivals)
        found.append(f"{noise:.0%}: " + ", ".join(f"{rival} p = {pvalues[rival]:.3g}" for rival in rivals))
    return Verdict(
        f"{name} is significantly better than {', '.join(rivals)} at {_percent(levels)} noise "
        f"(aligned-rank post-hoc test, {ALPHA}).",
        holds,
        f"{'; '.join(found)}. {remark}".strip(),
    )


def _alike(analysis: Analysis, name: str, rivals: tuple[str, ...], noise: float) -> Verdict:
    pvalues = analysis.posthoc(noise).loc[name]
    return Verdict(
        f"{name} doesn't differ significantly from {', '.join(rivals)} at {noise:.0%} noise.",
        all(pvalues[rival] >= ALPHA for rival in rivals),
        ", ".join(f"{rival} p = {pvalues[rival]:.3g}" for rival in rivals) + ".",
    )


def _degrades(analysis: Analysis, name: str, other: str) -> Verdict:
    ranks = analysis.average_ranks
    loss = ranks.loc[0.2] - ranks.loc[0.0]
    return Verdict(
        f"The average rank of {name} gets worse with noise, and by more than that of {other}.",
        bool(loss[name] > max(loss[other], 0)),
        f"From 0% to 20% noise: {name} {loss[name]:+.2f}, {other} {loss[other]:+.2f}.",
    )


def _pairwise(analysis: Analysis, name: str, rivals: tuple[str, ...], noise: float) -> Verdict:
    """Compare pairs in isolation: half of the two-sided p-value, which is what the paper prints."""
    found, holds = [], True
    for row in analysis.wilcoxon(noise).itertuples(index=False):
        if name in (row.first, row.second) and {row.first, row.second} & set(rivals):
            rival = row.second if row.first == name else row.first
            ranks = analysis.average_ranks.loc[noise]
            holds &= row.pvalue / 2 < ALPHA and ranks[name] < ranks[rival]
            found.append(f"{rival} p = {row.pvalue / 2:.3g}")
    return Verdict(
        f"In isolation (Wilcoxon, one-tailed as printed), {name} is significantly better than "
        f"{', '.join(rivals)} at {noise:.0%} noise.",
        holds,
        ", ".join(found) + ".",
    )
