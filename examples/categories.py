"""
Native categories and missing values
====================================

A table has a column of postcodes, and missing values. The trees of kfhe split categories into two sets and
learn where missing values go; most other libraries need numbers. This page compares both ways.
"""

# %%
# A table
# -------
#
# The postcodes that mean "yes" are in no order. A reading matters as well, but a quarter of the readings are
# missing.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from kfhe import KFHEClassifier

n_estimators = 100


def make_table(n_postcodes, n_rows=2000, seed=0):
    """Return a table and its labels."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_postcodes, size=n_rows)
    near = rng.permutation(n_postcodes) < n_postcodes / 2
    reading = rng.normal(size=n_rows)
    chance = np.where(near[codes] ^ (reading > 1), 0.95, 0.05)
    table = pd.DataFrame({"postcode": [f"P{code:03}" for code in codes], "reading": reading})
    table.loc[rng.random(n_rows) < 0.25, "reading"] = np.nan
    return table, np.where(rng.random(n_rows) < chance, "yes", "no")


table, y = make_table(20)
print(table.head())

# %%
# Two ways
# --------
#
# The table can be passed to ``fit`` directly. The other way is a pipeline that makes a column for each
# postcode and fills missing values with the median.


def as_it_is():
    """Return KFHE."""
    return KFHEClassifier(n_estimators=n_estimators, random_state=0)


def prepared():
    """Return KFHE behind an encoder and an imputer."""
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    columns = make_column_transformer(
        (encoder, ["postcode"]), (SimpleImputer(strategy="median"), ["reading"])
    )
    return make_pipeline(columns, as_it_is())


counts = (5, 10, 20, 50, 100, 200)
accuracy = {"as it is": [], "one-hot, gaps filled": []}
for count in counts:
    table, y = make_table(count)
    X_train, X_test, y_train, y_test = train_test_split(table, y, random_state=0)
    for scores, model in zip(accuracy.values(), (as_it_is(), prepared()), strict=True):
        scores.append(model.fit(X_train, y_train).score(X_test, y_test))
for name, scores in accuracy.items():
    print(f"{name:21}", *(f"{score:.3f}" for score in scores))

# %%
# The figure
# ----------
#
# One split can send any set of postcodes to one side. With one column per postcode, each of them needs a
# split, and soon there are too few rows.
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, scores), style in zip(accuracy.items(), ("o-", "s--"), strict=True):
    ax.plot(counts, scores, style, label=name)
ax.set(
    xscale="log",
    xlabel="number of postcodes",
    ylabel="accuracy on new rows",
    title="A category of many values, and a column with gaps",
)
ax.set_xticks(counts, counts)
ax.minorticks_off()
ax.legend(frameon=False)
plt.show()
