"""Counts of parts of a table add up to those of the whole, and pieces of rows find back."""

from itertools import pairwise

import numpy as np
import pytest
from cluster_tables import arrays, cuts, numbers

import kfhe
from kfhe.dask.reading import Reader
from kfhe.dask.tables import recut
from kfhe.dask.workers import Workers, as_is
from kfhe.target_encoding import ClassShares, Counts, Target, cross_fitted
from kfhe.tree_settings import TreeSettings


def column(n, n_categories):
    """A column of numbers and words as categories, with gaps; and labels that they say something of."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, n_categories, size=n)
    values = [f"v{k}" if k % 3 else k for k in rng.permutation(n_categories).tolist()]
    labels = np.where(rng.random(n) < 0.3, rng.integers(0, 3, size=n), codes % 3).astype(np.int32)
    ids, weights = np.arange(n) // 2, rng.exponential(size=n)
    return codes, values, Target(labels, np.array(["a", "b", "c"]), weights, ids, np.full(n, 2), seed=5)


def part_of(codes, values, target, begin, end):
    """A part as a worker has it: with a list of the categories that it has itself, in any order."""
    own, renamed = np.unique(codes[begin:end], return_inverse=True)
    there = [values[k] for k in own[own >= 0]][::-1]
    found = np.where(codes[begin:end] < 0, -1, len(own) - 1 - renamed)
    some = slice(begin, end)
    return (found, there), Target(
        target.labels[some],
        target.classes,
        target.weights[some],
        target.ids[some],
        target.sizes[some],
        target.seed,
    )


@pytest.mark.parametrize("n_categories", [40, 2000])
def test_parts_are_encoded_as_the_whole(n_categories):
    codes, values, target = column(6000, n_categories)
    parts = [part_of(codes, values, target, *span) for span in pairwise((0, 10, 10, 900, 5999, 6000))]
    whole = target.count((codes, values)).settled()
    merged = Counts.merged([own.count(factorized) for factorized, own in parts]).settled()
    assert (merged.values, merged.n_classes) == (whole.values, whole.n_classes)
    np.testing.assert_array_equal(merged.cells, whole.cells)
    np.testing.assert_array_equal(merged.units, whole.units)
    shares = ClassShares(target.classes, sum(own.shares.counts for _, own in parts))
    np.testing.assert_array_equal(shares.counts, target.shares.counts)
    local, spread = cross_fitted(whole, target.shares), cross_fitted(merged, shares)
    expected = local.values((codes, values), target.folds)
    found = [spread.values(factorized, own.folds) for factorized, own in parts]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert np.isnan(expected).any(axis=1).mean() == (codes < 0).mean()


def test_pieces_of_rows_find_back(client):
    rows = Reader(kfhe.KFHEClassifier(), *arrays(6, *numbers())).rows()
    back = rows.workers.result(rows.X.cut.back(rows.workers, rows.labels))
    assert [len(part) for part in back] == [*cuts(6)]
    np.testing.assert_array_equal(np.concatenate(back), numbers()[1])


def test_pieces_of_rows_of_several_kinds(client):
    workers = Workers(client, 2)
    given = [workers.run(as_is, np.arange(6).reshape(2, 3)), workers.run(as_is, np.arange(4).reshape(2, 2))]
    made = workers.result(recut(workers, given, [0, 3, 5], [0, 0, 2, 5, 5], [None] * 4))
    assert [part.shape for part in made] == [(2, 0), (2, 2), (2, 3), (2, 0)]
    np.testing.assert_array_equal(made[2], [[2, 0, 1], [5, 2, 3]])


def test_trees_of_single_columns_are_told_apart(client):
    settings = TreeSettings(max_depth=2)
    rows = Reader(kfhe.KFHEClassifier(), *arrays(3, *numbers())).rows()
    table, counts = rows.table(settings), rows.draws().draw(rows.base, 1, 0)
    first, second = (rows.grower(settings, table.of_column(j)).grow(counts, True, 1) for j in (0, 1))
    assert first.nodes.tobytes() != second.nodes.tobytes()
