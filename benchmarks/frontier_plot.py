"""The frontier as a picture: a panel for each dataset, a line for each of ours, a mark for each peer."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.frontier import CONTENDERS, FrontierRun
from kfhe.display.palette import PALETTE

MARKERS = "osD^vP*Xp"


def draw(run: FrontierRun) -> Figure:
    """Return the picture of a run: time to fit, on a logarithmic scale, against macro F1.

    Parameters
    ----------
    run : FrontierRun
        What was measured.
    """
    panels = [(dataset, threads) for dataset in run.tables for threads in run.settings["threads"]]
    figure = Figure(figsize=(3.6 * len(panels), 4.4), layout="constrained")
    for ax, (dataset, threads) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw_panel(ax, run, dataset, threads)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure


def _draw_panel(ax: Axes, run: FrontierRun, dataset: str, threads: int) -> None:
    """Draw one dataset at one number of threads."""
    shape, points = run.tables[dataset], run.of(dataset, threads)
    for place, contender in enumerate(CONTENDERS):
        own = [point for point in points if point.contender == contender.name]
        if own:
            ax.plot(
                [point.time for point in own],
                [point.f1_macro for point in own],
                marker=MARKERS[place],
                markersize=4 if contender.ours else 7,
                linestyle="-" if contender.ours else "",
                color=PALETTE[place % len(PALETTE)],
                label=contender.name,
            )
    ax.set_xscale("log")
    ax.set_title(
        f"{shape['rows']:,} x {shape['columns']}, {shape['classes']} classes, {threads} threads",
        fontsize="small",
    )
    ax.set_xlabel("seconds to fit")
    ax.set_ylabel("macro F1")
    ax.grid(alpha=0.3)
