"""The figures of a report as SVG and PNG files."""

from __future__ import annotations

import re

from kfhe.plotting import Display, NoiseDisplay, RankDisplay, TraceDisplay
from kfhe.plotting.base import entitle, rendered
from kfhe.study.analysis import Analysis
from kfhe.study.report.folder import ReportFolder
from kfhe.study.report.tables import percent


def write_figures(analysis: Analysis, report: ReportFolder) -> None:
    """Write every figure: ranks and scores against noise, rank plots, and training parameters."""
    levels, marked = analysis.noise_levels, analysis.marked
    if analysis.has_ranks:
        ranks = NoiseDisplay(
            levels, analysis.average_ranks, value_name="average rank", lower_is_better=True, marked=marked
        )
        _write(report, ranks, "Average ranks", "average_ranks", analysis.plan.level)
    for noise in filter(analysis.can_test, levels):
        ranks_here = RankDisplay(analysis.average_ranks.loc[noise], analysis.groups(noise))
        _write(report, ranks_here, f"Average ranks, {100 * noise:g}% noise", f"rank_plot_{percent(noise)}")
    means = [analysis.means(noise) for noise in levels]
    for dataset in means[0].index:
        scores = {name: [mean.at[dataset, name] for mean in means] for name in analysis.algorithms}
        chart = NoiseDisplay(
            levels,
            scores,
            value_name=analysis.metric_name,
            lower_is_better=analysis.lower_is_better,
            marked=marked,
        )
        _write(report, chart, dataset, f"scores_{dataset}", analysis.plan.level)
    for (dataset, algorithm, noise), trace in analysis.traces.items():
        if noise == levels[0]:  # as in the paper; the page has the others
            title = f"{dataset}, {algorithm}, {100 * noise:g}% noise"
            _write(report, TraceDisplay(trace), title, f"training_{dataset}_{algorithm}")


def _write(report: ReportFolder, display: Display, title: str, name: str, level: str = "") -> None:
    figure = display.to_figure()
    entitle(figure, title)
    if level:
        display.ax_.set_xlabel(f"{level} (%)")
    for suffix in ("svg", "png"):
        report.write(f"figures/{_file_name(name)}.{suffix}", rendered(figure, suffix))


def _file_name(name: str) -> str:
    """Return a name without characters that file names can't have."""
    return re.sub(r'[\x00-\x1f\x7f<>:"/\\|?*]', "-", name)
