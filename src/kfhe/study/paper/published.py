"""The published scores, ranks and tests, and results of the authors' program."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from kfhe.stats import average_ranks as ranks_of
from kfhe.study.dataset import import_pandas
from kfhe.study.paper.catalogue import catalogue

ALGORITHMS = ("KFHE-e", "KFHE-l", "AdaBoost", "GBM", "S-GBM", "Bagging", "CART")
EMPHASES = {"KFHE-e": "exponential", "KFHE-l": "linear"}


def scores(noise: float) -> Any:
    """Return the published mean macro F1 at a noise level, datasets by algorithms; empty at other levels."""
    table = _level("f1_scores", noise)
    frame = table.pivot(index="dataset", columns="algorithm", values="f1_macro_mean")
    return frame.reindex(columns=list(ALGORITHMS))


def average_ranks(noise: float, datasets: list[str] | None = None) -> Any:
    """Return the published average ranks at a noise level, or those computed for some of the datasets."""
    if datasets is None:
        table = _level("average_ranks", noise)
        return table.iloc[0] if len(table) else None
    table = scores(noise).reindex(datasets).dropna()
    return ranks_of(table) if len(table) > 1 else None


def posthoc(noise: float) -> dict[frozenset[str], float]:
    """Return the published adjusted p-values of the aligned-rank post-hoc test, by pair of algorithms."""
    table = _level("aligned_ranks_posthoc", noise)
    return {
        frozenset((row.first, row.second)): row.pvalue
        for row in table.rename_axis(None).itertuples(index=False)
    }


def wilcoxon(noise: float) -> dict[tuple[str, str], tuple[int, int, int, float]]:
    """Return the published wins, losses, ties and (one-tailed) p-values by pair of algorithms."""
    return {
        (row.first, row.second): (row.wins, row.losses, row.ties, row.pvalue)
        for row in _level("wilcoxon", noise).itertuples(index=False)
    }


def authors_program() -> Any:
    """Return macro F1 of the authors' own program on the catalogue's files, datasets by KFHE-e and KFHE-l."""
    table = _read("authors_program").pivot(index="file", columns="emphasis", values="f1_macro_mean")
    table = table.rename(columns={emphasis: name for name, emphasis in EMPHASES.items()})
    return table.rename(index={"monks1": "monks"})


def comparable(dataset: str) -> bool:
    """Whether the catalogue's dataset of this name is that of the paper, as far as is known."""
    facts = catalogue().get(dataset)
    return facts is not None and facts.paper is not None and facts.comparable


@cache
def _read(name: str) -> Any:
    with files("kfhe.study.paper").joinpath("published", f"{name}.csv").open(encoding="utf-8") as file:
        return import_pandas().read_csv(file)


def _level(name: str, noise: float) -> Any:
    table = _read(name)
    return table[table["noise_percent"] == round(100 * noise, 6)].drop(columns="noise_percent")
