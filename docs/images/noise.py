"""Draws noise.svg and noise-ranks.svg from the scores in ../reproduction: ``python docs/images/noise.py``."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from kfhe.stats import average_ranks

HERE = Path(__file__).parent
CELLS = HERE.parent / "reproduction" / "noise_cells.csv.gz"
OURS = {"Robust KFHE": "#0b6fb8", "KFHE-l": "#d9822b", "KFHE-e": "#d9822b"}
KNOWN = ["Robust KFHE", "CleanLearning", "random forest", "CatBoost", "AdaBoost", "LightGBM", "XGBoost"]


def apart(places, distance):
    """Return the places, moved as little as it takes to keep them a distance apart."""
    order = np.argsort(places)
    moved = np.asarray(places, dtype=float)[order]
    for _ in range(1000):
        gaps = np.maximum(distance - np.diff(moved), 0) / 2
        moved[:-1] -= gaps
        moved[1:] += gaps
    return moved[np.argsort(order)]


def draw(values, value_name, name, size):
    """Draw one line for each column, its name at its end: ours in colour, the others grey."""
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12)
    levels = 100 * values.index.to_numpy()
    for column in values:
        colour, ours = OURS.get(column, "0.6"), column in OURS
        ax.plot(levels, values[column], color=colour, linewidth=2.4 if ours else 1.1, zorder=2 + ours)
    if value_name == "average rank":
        ax.invert_yaxis()
    ax.set(xlabel="training labels that are wrong (%)", ylabel=value_name, xlim=(0, levels[-1]))
    ax.set_xticks(levels)
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)

    lowest, highest = sorted(ax.get_ylim())
    ends = apart(values.iloc[-1].to_numpy(), 0.15 * (highest - lowest) / (size[1] - 0.6))
    for column, end in zip(values, ends, strict=True):
        ours = column in OURS
        ax.annotate(
            column,
            (1.015, end),
            xycoords=ax.get_yaxis_transform(),
            va="center",
            color=OURS.get(column, "0.35"),
            weight="bold" if ours else "normal",
            fontsize=9,
        )
    figure.savefig(HERE / name, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "kfhe"
    cells = pd.read_csv(CELLS)
    scores = cells.groupby(["noise", "dataset", "algorithm"])["f1_macro"].mean().unstack()
    means = scores.groupby("noise").mean()
    print(means.T.round(3).to_string())
    draw(means[KNOWN], f"mean macro F1 on {cells['dataset'].nunique()} datasets", "noise.svg", (6.6, 3.6))
    ranks = pd.DataFrame({noise: average_ranks(of_level) for noise, of_level in scores.groupby("noise")}).T
    print(ranks.T.round(2).to_string())
    draw(ranks, "average rank", "noise-ranks.svg", (7.2, 4.4))
