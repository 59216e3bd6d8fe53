"""Draws noise.svg and noise-ranks.svg from the scores in ../reproduction: ``python docs/images/noise.py``."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from kfhe.plotting import NoiseDisplay
from kfhe.stats import average_ranks

HERE = Path(__file__).parent
CELLS = HERE.parent / "reproduction" / "noise_cells.csv.gz"
OURS = ["Robust KFHE", "KFHE-l", "KFHE-e"]
KNOWN = ["Robust KFHE", "CleanLearning", "random forest", "CatBoost", "AdaBoost", "LightGBM", "XGBoost"]


def save(display, name, size):
    """Draw a display and save it; the same scores give the same file."""
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    display.plot(ax=ax)
    ax.set_xlabel("training labels that are wrong (%)")
    figure.savefig(HERE / name, metadata={"Date": None})


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "kfhe"
    scores = pd.read_csv(CELLS).groupby(["noise", "dataset", "algorithm"])["f1_macro"].mean().unstack()
    levels = scores.groupby("noise")
    means, ranks = levels.mean(), pd.DataFrame({noise: average_ranks(of) for noise, of in levels}).T
    ranks = ranks[[*OURS, *ranks.columns.drop(OURS)]]  # the first ones have the same colours in both
    save(
        NoiseDisplay(means.index, means[KNOWN], value_name="mean macro F1 on 29 datasets", marked=OURS),
        "noise.svg",
        (6.8, 3.7),
    )
    save(
        NoiseDisplay(ranks.index, ranks, value_name="average rank", lower_is_better=True, marked=OURS),
        "noise-ranks.svg",
        (7.2, 4.4),
    )
