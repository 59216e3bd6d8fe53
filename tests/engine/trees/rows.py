"""Random tables, labels and weights for tests of the trees."""

from dataclasses import asdict

import numpy as np
from hypothesis import strategies as st

from kfhe.engine.trees.grower import Grower
from kfhe.forest import NODE_DTYPE
from kfhe.tables.binned import BinnedTable
from kfhe.validation import integer_weights

from .twin import Settings


class Rows:
    """A binned table with labels and weights."""

    def __init__(self, table, labels, n_classes, weights, counts):
        self.table, self.labels, self.n_classes = table, labels, n_classes
        self.weights, self.counts = weights, counts

    def __repr__(self):
        return f"Rows({self.table.codes.tolist()}, {self.labels.tolist()}, {self.weights.tolist()})"

    @property
    def present(self):
        """The rows of positive weight, as the engine's pieces take them: numbers, classes and weights."""
        rows = np.flatnonzero(self.weights > 0).astype(np.uint32)
        return rows, self.labels[rows].astype(np.uint16), self.weights[rows]

    def grower(self, settings=None, *, cp=0.0, max_leaf_nodes=0, **threads):
        options = asdict(settings or Settings())
        del options["tree"]
        options["max_features"] = options["max_features"] or len(self.table.n_bins)
        return Grower(
            self.table.codes,
            self.table.n_bins,
            self.table.categorical,
            self.table.low,
            self.table.high,
            self.labels,
            self.n_classes,
            {"cp": cp, "max_leaf_nodes": max_leaf_nodes, **options},
            **threads,
        )

    def grow(self, settings=None, *, hard=True, **options):
        """Grow one tree; return its arrays and its votes."""
        settings = settings or Settings()
        grown = self.grower(settings, **options).grow(self.weights, self.counts, settings.tree)
        return as_tree(grown), grown.class_votes() if hard else grown.share_votes()


def as_tree(grown):
    names = ("gains", "leaf_weights", "category_sets", "leaves")
    return {"nodes": grown.nodes.view(NODE_DTYPE)} | {name: getattr(grown, name) for name in names}


def numeric_column(rng, n):
    """Few distinct values, far apart, close together, or all different; some missing."""
    scale = rng.choice([1.0, 1e-9, 1e300])
    column = scale * rng.choice(rng.normal(size=rng.integers(1, 12)), size=n)
    if rng.random() < 0.3:
        column = scale * rng.normal(size=n)
    column[rng.random(n) < rng.choice([0, 0, 0.2, 0.9])] = np.nan
    return column


def categorical_column(rng, n):
    column = rng.integers(rng.integers(1, 15), size=n).astype(float)
    column[rng.random(n) < rng.choice([0, 0, 0.2])] = np.nan
    return column


def weights_of(rng, n, kind):
    if kind == "counts":
        weights = rng.integers(0, 4, size=n, dtype=np.int32)
        weights[rng.integers(n)] = 1
        return weights, True
    if kind == "whole":
        return integer_weights(rng.integers(1, 6, size=n).astype(float))
    if kind == "real":
        return integer_weights(rng.exponential(size=n))
    if kind == "extreme":
        return integer_weights(10.0 ** rng.uniform(-12, 0, size=n))
    return integer_weights(np.ones(n))


WEIGHTS = ["ones", "counts", "whole", "real", "extreme"]


@st.composite
def random_rows(draw, max_rows=40, weights=WEIGHTS):
    kinds = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    n = draw(st.integers(1, max_rows))
    n_classes = draw(st.integers(2, 5))
    weighting = draw(st.sampled_from(weights))
    max_bins = draw(st.sampled_from([255, 2, 3, 6]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = [categorical_column(rng, n) if kind else numeric_column(rng, n) for kind in kinds]
    table = BinnedTable.from_table(np.column_stack(columns), np.array(kinds), max_bins, 1)
    # Labels that depend on the columns, so that trees are not all noise.
    signal = sum(np.nan_to_num(column / np.nanmax(np.abs(column), initial=1e-300)) for column in columns)
    labels = (np.abs(signal * 3).astype(int) + (rng.random(n) < 0.3)) % n_classes
    return Rows(table, labels.astype(np.int32), n_classes, *weights_of(rng, n, weighting))


tree_settings = st.builds(
    Settings,
    max_depth=st.sampled_from([0, 0, 1, 3]),
    min_samples_split=st.sampled_from([2, 2, 5, 20]),
    min_samples_leaf=st.sampled_from([1, 1, 2, 7]),
    max_features=st.sampled_from([0, 0, 1, 2]),
    random_cuts=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
    tree=st.integers(0, 300),
)
