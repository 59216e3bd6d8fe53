"""The figures of a report as SVG and PNG files."""

from __future__ import annotations

from pathlib import Path

from kfhe.files import write_whole
from kfhe.plotting import Display, NoiseDisplay, RankDisplay, TraceDisplay
from kfhe.plotting.display import rendered
from kfhe.study.analyse import Analysis
from kfhe.study.report.tables import percent


def write_figures(analysis: Analysis, folder: Path) -> None:
    """Write every figure: ranks and scores against noise, rank plots, and training parameters."""
    levels = analysis.noise_levels
    ranks = NoiseDisplay(levels, analysis.average_ranks, value_name="average rank", lower_is_better=True)
    _write(ranks, "", folder / "average_ranks", analysis.plan.level)
    for noise in filter(analysis.can_test, levels):
        ranks_here = RankDisplay(analysis.average_ranks.loc[noise], analysis.groups(noise))
        _write(ranks_here, f"Average ranks, {noise:.0%} noise", folder / f"rank_plot_{percent(noise)}")
    means = [analysis.means(noise) for noise in levels]
    for dataset in means[0].index:
        scores = {name: [mean.at[dataset, name] for mean in means] for name in analysis.algorithms}
        chart = NoiseDisplay(
            levels, scores, value_name=analysis.metric_name, lower_is_better=analysis.lower_is_better
        )
        _write(chart, dataset, folder / f"scores_{dataset}", analysis.plan.level)
    for (dataset, algorithm, noise), trace in analysis.traces.items():
        if noise == levels[0]:  # as in the paper; the page has the others
            title = f"{dataset}, {algorithm}, {noise:.0%} noise"
            _write(TraceDisplay(trace), title, folder / f"training_{dataset}_{algorithm}")


def _write(display: Display, title: str, path: Path, level: str = "") -> None:
    figure = display.to_figure()
    display.ax_.set_title(title)
    if level:
        display.ax_.set_xlabel(f"{level} (%)")
    for suffix in ("svg", "png"):
        write_whole(path.with_name(f"{path.name}.{suffix}"), rendered(figure, suffix))
