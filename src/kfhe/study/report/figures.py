"""The figures of a report as SVG and PNG files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from kfhe.study.analyse import Analysis
from kfhe.study.cells import TRACE_COLUMNS
from kfhe.study.files import write_whole
from kfhe.study.report.tables import percent

_MARKERS = "osD^vP*X<>hpd"
_TRACE_LABELS = dict(zip(TRACE_COLUMNS, ("R", "P", "K", "training error"), strict=True))
# Texts stay texts in SVG, and two runs give the same bytes
_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "kfhe", "font.size": 9.0}


def write_figures(analysis: Analysis, folder: Path) -> None:
    """Write every figure: ranks and scores against noise, rank plots, and training parameters."""
    with mpl.rc_context(_STYLE):
        _write(_ranks_figure(analysis), folder / "average_ranks")
        for noise in filter(analysis.can_test, analysis.noise_levels):
            _write(_rank_plot(analysis, noise), folder / f"rank_plot_{percent(noise)}")
        for dataset in analysis.means(analysis.noise_levels[0]).index:
            _write(_scores_figure(analysis, dataset), folder / f"scores_{dataset}")
        for (dataset, algorithm, noise), trace in analysis.traces.items():
            if noise == analysis.noise_levels[0]:  # as in the paper; the page has the others
                figure = _trace_figure(f"{dataset}, {algorithm}, {noise:.0%} noise", trace)
                _write(figure, folder / f"training_{dataset}_{algorithm}")


def _write(figure: Figure, path: Path) -> None:
    for suffix, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 150})):
        content = io.BytesIO()
        figure.savefig(content, format=suffix, bbox_inches="tight", **options)
        write_whole(path.with_name(f"{path.name}.{suffix}"), content.getvalue())


def _empty(width: float, height: float) -> tuple[Figure, Any]:
    # Without pyplot: no window, no state, safe in any thread
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _lines(axes: Any, analysis: Analysis, columns: Any) -> None:
    places = [100 * noise for noise in analysis.noise_levels]
    for position, name in enumerate(analysis.algorithms):
        marker = _MARKERS[position % len(_MARKERS)]
        axes.plot(places, columns[name], marker=marker, markersize=4, linewidth=1.3, label=name)
    axes.set_xticks(places)
    axes.set_xlabel("training labels changed (%)")
    axes.grid(alpha=0.3)


def _ranks_figure(analysis: Analysis) -> Figure:
    figure, axes = _empty(6, 3.8)
    _lines(axes, analysis, analysis.average_ranks)
    axes.invert_yaxis()
    axes.set_ylabel("average rank")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return figure


def _scores_figure(analysis: Analysis, dataset: str) -> Figure:
    figure, axes = _empty(4.5, 3)
    means = {
        name: [analysis.means(noise).at[dataset, name] for noise in analysis.noise_levels]
        for name in analysis.algorithms
    }
    _lines(axes, analysis, means)
    axes.set_title(dataset)
    axes.set_ylabel(analysis.metric_name)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)
    return figure


def _rank_plot(analysis: Analysis, noise: float) -> Figure:
    """Algorithms along an axis of average ranks, with bars over groups that don't differ."""
    ranks = analysis.average_ranks.loc[noise].sort_values(kind="stable")
    groups = analysis.groups(noise)
    half = (len(ranks) + 1) // 2
    figure, axes = _empty(6, 0.9 + 0.2 * (half + len(groups)))
    axes.set(xlim=(1, len(ranks)), ylim=(-1.2 - half - 0.6 * len(groups), 0))
    axes.set_xticks(range(1, len(ranks) + 1))
    axes.xaxis.tick_top()
    axes.spines[["left", "right", "bottom"]].set_visible(False)
    axes.set_yticks([])
    for position, group in enumerate(groups):
        ends = [ranks[group].min() - 0.04, ranks[group].max() + 0.04]
        axes.plot(ends, [-0.5 - 0.6 * position] * 2, color="black", linewidth=3, clip_on=False)
    for position, (name, rank) in enumerate(ranks.items()):
        left = position < half
        level = -1 - 0.6 * len(groups) - (position if left else len(ranks) - 1 - position)
        end = 1 - 0.1 if left else len(ranks) + 0.1
        axes.plot([rank, rank, end], [0, level, level], color="0.4", linewidth=0.9, clip_on=False)
        axes.text(end, level, f" {name} {rank:.2f} ", ha="right" if left else "left", va="center")
    axes.set_title(f"Average ranks, {noise:.0%} noise", pad=22)
    return figure


def _trace_figure(title: str, trace: dict[str, list[float]]) -> Figure:
    figure, axes = _empty(4.5, 2.8)
    for column, label in _TRACE_LABELS.items():
        axes.plot(range(1, len(trace[column]) + 1), trace[column], linewidth=1.2, label=label)
    axes.set(title=title, xlabel="iteration", ylim=(0, 1))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    return figure
