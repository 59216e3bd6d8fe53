"""Tables with numbers, categories and gaps, and models of all kinds trained on them."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from kfhe import CARTClassifier, KFHEClassifier


def random_table(rng, n_rows, sizes, gaps, n_numeric=2):
    """Numeric columns, a column for each number of categories in `sizes`, and scores that depend on them."""
    X = pd.DataFrame({f"number {j}": rng.normal(size=n_rows).round(2) for j in range(n_numeric)})
    scores = X.sum(axis=1).to_numpy()
    for j, size in enumerate(sizes):
        codes = rng.integers(size, size=n_rows)
        X[f"category {j}"] = np.array([f"c{code}" for code in codes], dtype=object)
        scores = scores + rng.normal(size=size)[codes]
    for name in X:
        X.loc[rng.random(n_rows) < gaps, name] = np.nan
    return X, scores


def random_classes(scores, n_classes):
    return np.digitize(scores, np.quantile(scores, np.arange(1, n_classes) / n_classes))


@st.composite
def models(draw):
    """Return a model, and other rows: with categories that it doesn't know, and more gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.sampled_from([1, 2, 5, 30, 300]), max_size=3))
    n_classes = draw(st.sampled_from([1, 2, 3, 6]))
    X, scores = random_table(
        rng, draw(st.sampled_from([20, 100, 300])), sizes, draw(st.sampled_from([0, 0.2]))
    )
    model = KFHEClassifier(
        CARTClassifier(
            min_samples_split=2,
            min_samples_leaf=draw(st.sampled_from([1, 7])),
            max_features=draw(st.sampled_from([None, 0.5])),
            max_bins=draw(st.sampled_from([255, 4])),
        ),
        n_estimators=draw(st.sampled_from([1, 6])),
        voting=draw(st.sampled_from(["hard", "soft"])),
        random_state=0,
    ).fit(X, random_classes(scores, n_classes))
    others, _ = random_table(rng, 100, [size + 2 for size in sizes], 0.3)
    return model, pd.concat([X, others], ignore_index=True)
