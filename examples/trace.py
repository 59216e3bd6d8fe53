"""
How training went
=================

Each iteration of training adds a row to ``trace_``: how wrong the measurement was, how certain the filter is,
and how far it moved. This page explains how to read it.
"""

# %%
# Two sets of labels, two variants
# --------------------------------
#
# The same rows are used twice: with their labels, and with a fifth of the labels changed. KFHE-l and KFHE-e
# are trained on both.
import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from kfhe import KFHEClassifier
from kfhe.noise import flip_labels
from kfhe.plotting import TraceDisplay

X, y = load_wine(return_X_y=True)
n_estimators = 100
labels = {"labels as they are": y, "a fifth of the labels changed": flip_labels(y, 0.2, random_state=0)}


def fit(emphasis, given):
    """Train on some labels."""
    return KFHEClassifier(emphasis=emphasis, n_estimators=n_estimators, random_state=0).fit(X, given)


linear = {title: fit("linear", given) for title, given in labels.items()}
exponential = {title: fit("exponential", given) for title, given in labels.items()}

# %%
# The trace is a table. ``to_frame()`` converts it to pandas:
columns = ["measurement_error", "posterior_variance", "gain", "training_error"]
print(linear["a fifth of the labels changed"].trace_.to_frame()[columns].head().round(3))

# %%
# The picture
# -----------
#
# Above, KFHE-l. The measurement error R goes up and down, since a new tree always has half of the votes in
# a measurement. The gain K falls as the filter becomes certain, so these ups and downs count less and
# less, and the ensemble itself, whose error is the purple line, settles down. With the right labels it
# soon agrees with all of them. With the changed ones it keeps contradicting some: that is what we want.
#
# Below, how many equally weighted rows the sampling weights are worth. KFHE-e gathers the weight on the
# rows that it misses. KFHE-l hardly does, so wrong labels don't get hold of it.
figure, axes = plt.subplots(
    2, 2, figsize=(9, 6.5), sharex=True, sharey="row", height_ratios=(3, 2), layout="constrained"
)
for title, (above, below) in zip(labels, axes.T, strict=True):
    TraceDisplay.from_estimator(linear[title], ax=above)
    above.set(title=f"KFHE-l, {title}", xlabel="", ylabel="share")
    for name, model, style in (("KFHE-l", linear[title], "-"), ("KFHE-e", exponential[title], "--")):
        below.plot(range(1, model.n_iter_ + 1), model.trace_["effective_sample_size"], style, label=name)
    below.set(xlabel="iteration", ylabel="effective sample size", ylim=(0, None))
    below.legend(fontsize="small")
plt.show()
