"""
Six kinds of noise in training rows
===================================

Labels are not only wrong at random, and not only labels can be wrong. These are the noise models of
`kfhe.noise`, each at the same level on the same rows: two half-moons and a third class.
"""

# %%
# The data
# --------
#
# The order of the classes matters for pairwise noise, which changes *above* to *below*, *below* to *right*,
# and *right* to *above*.
import numpy as np
from sklearn.datasets import make_moons

random = np.random.default_rng(0)
X, moon = make_moons(400, noise=0.15, random_state=0)
X = np.vstack([X, random.normal((2.6, 0.6), 0.3, size=(200, 2))])
y = np.concatenate([moon, np.full(200, 2)])
names = ["above", "below", "right"]

# %%
# The noise models
# ----------------
#
# A noise model gets rows, labels, a level and a random state, and returns new rows and labels.
from kfhe.noise import NOISE_MODELS

level = 0.15
noisy = {name: model.disturb(X, y, level, 0) for name, model in NOISE_MODELS.items()}
for name, (_, labels) in noisy.items():
    wrong = np.mean(labels != y) if len(labels) == len(y) else 0.0
    print(f"{name:14} {len(labels)} rows, {wrong:4.0%} wrong labels")

# %%
# The figure
# ----------
#
# Rows with a changed label are filled, in the colour of the new class. Uniform and pairwise noise occur
# anywhere. Mistakes of border and neighbourhood are mostly where classes meet, according to a forest or by
# distance. Noise in the inputs keeps the labels and moves the rows, some of them across the border. Imbalance
# removes rows of some classes.
import matplotlib.pyplot as plt

from kfhe.display.palette import PALETTE

figure, axes = plt.subplots(2, 3, figsize=(10, 6), sharex=True, sharey=True, layout="constrained")
for ax, (name, (rows, labels)) in zip(axes.flat, noisy.items(), strict=True):
    changed = labels != y if len(labels) == len(y) else np.zeros(len(labels), dtype=bool)
    for code, colour in enumerate(PALETTE[:3]):
        here = labels == code
        ax.scatter(*rows[here & ~changed].T, s=12, facecolors="none", edgecolors=colour, linewidths=0.7)
        ax.scatter(*rows[here & changed].T, s=18, color=colour, label=names[code])
    ax.set_title(f"{name}, {level:.0%}")
    ax.set_ylabel("second input")
for ax in axes[1]:
    ax.set_xlabel("first input")
handles, classes = axes[0, 0].get_legend_handles_labels()
axes[1, 2].legend(handles, classes, title="taken for", loc="lower right", fontsize="small")
plt.show()
