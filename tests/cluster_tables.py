"""Tables for training on a cluster: of several blocks of rows, cut into uneven partitions."""

from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

N = 30_000  # rows: four blocks, the last one not full


def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6)).round(3)
    X[:, 5] = rng.integers(0, 9, size=N)
    X[rng.random((N, 6)) < 0.05] = np.nan
    known = np.nan_to_num(X)
    y = (known[:, 0] * known[:, 1] > 0).astype(int) + (known[:, 2] > 1)
    return X, np.where(rng.random(N) < 0.1, rng.integers(3, size=N), y)


def weights():
    rng = np.random.default_rng(1)
    return rng.exponential(size=N) * (rng.random(N) > 0.05)


def mixed():
    """A frame with categories, dates, gaps and a rare value, and labels that are words."""
    rng = np.random.default_rng(2)
    town = rng.integers(0, 40, size=N)
    days = rng.integers(0, 500, size=N)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=N).astype(np.float32),
            "town": np.array([f"t{code}" for code in town], dtype=object),
            "side": pd.Categorical(np.where(rng.random(N) < 0.5, "left", "right")),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D"),
            "rare": np.where(rng.random(N) < 0.0001, rng.random(N), 0.0),
        }
    )
    X.loc[rng.random(N) < 0.1, "town"] = None
    X.loc[rng.random(N) < 0.1, "size"] = np.nan
    hot = (town % 5 == 0) | (days % 7 > 4) & (X["side"] == "left")
    y = np.where(rng.random(N) < 0.1, "maybe", np.where(hot, "yes", "no"))
    return X, pd.Series(y, name="hot")


def coded(n=N):
    """A frame with categories that matter, others that don't, and names of rows; with gaps and dates."""
    rng = np.random.default_rng(4)
    clinic, street = rng.integers(0, n // 8, size=n), rng.integers(0, n // 4, size=n)
    noisy = rng.normal(size=n // 8)[clinic]
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n).round(4),
            "clinic": np.array([f"c{code}" for code in clinic], dtype=object),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, size=n), unit="D"),
            "name": np.array([f"row {row}" for row in rng.permutation(n)], dtype=object),
            "street": pd.Categorical.from_codes(street, [f"s{code}" for code in range(n // 4)]),
            "side": np.where(rng.random(n) < 0.5, "left", "right"),
            "same": 7.0,
            "once": np.where(np.arange(n) == n // 2, np.nan, 7.0),
        }
    )
    for column in ("clinic", "size"):
        X.loc[rng.random(n) < 0.1, column] = None
    y = np.where(rng.random(n) < 0.1, "maybe", np.where(noisy + X["size"].fillna(0) > 0, "yes", "no"))
    return X, pd.Series(y, name="hot")


def with_copies(X, y, share=0.3):
    """The rows of a frame, of which a share repeats others, in any order."""
    rng = np.random.default_rng(5)
    own = rng.permutation(len(X))[: round((1 - share) * len(X))]
    rows = rng.permutation(np.append(own, rng.choice(own, len(X) - len(own))))
    return X.iloc[rows].reset_index(drop=True), y.iloc[rows].reset_index(drop=True)


def patients():
    """Which rows belong together: of some there are many, of most one or two."""
    rng = np.random.default_rng(6)
    return pd.Series([f"p{round(number)}" for number in rng.exponential(5000, size=N)], name="patient")


def cuts(n_partitions, n=N):
    """Sizes of partitions: uneven, and if there are several, one empty."""
    if n_partitions == 1:
        return (n,)
    sizes = np.random.default_rng(n_partitions).multinomial(n, np.ones(n_partitions - 1) / (n_partitions - 1))
    return (*sizes[:1].tolist(), 0, *sizes[1:].tolist())


def arrays(n_partitions, *given):
    """Arrays as Dask has them."""
    sizes = cuts(n_partitions, len(given[0]))
    return [da.from_array(each, chunks=(sizes, *((size,) for size in each.shape[1:]))) for each in given]


def frames(n_partitions, *given):
    """Frames and series as Dask has them."""
    bounds = np.append(0, np.cumsum(cuts(n_partitions, len(given[0]))))
    spans = [slice(*pair) for pair in pairwise(bounds)]
    return [
        dd.from_map(
            lambda span, each=each: each.iloc[span], spans, meta=each.iloc[:0], enforce_metadata=False
        )
        for each in given
    ]
