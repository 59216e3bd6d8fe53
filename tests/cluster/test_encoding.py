"""Counts of parts of a table add up to those of the whole, and pieces of rows find back."""

from itertools import pairwise

import numpy as np
import pytest

from kfhe.dask.session import shares
from kfhe.dask.tables import recut
from kfhe.dask.workers import Parts, Workers
from kfhe.target_encoding import ClassShares, Counts, Target, cross_fitted


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
    whole_shares = ClassShares(target.classes, sum(own.shares.counts for _, own in parts))
    np.testing.assert_array_equal(whole_shares.counts, target.shares.counts)
    local, spread = cross_fitted(whole, target.shares), cross_fitted(merged, whole_shares)
    expected = local.values((codes, values), target.folds)
    found = [spread.values(factorized, own.folds) for factorized, own in parts]
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert np.isnan(expected).any(axis=1).mean() == (codes < 0).mean()


def test_pieces_of_rows_of_several_kinds(client):
    workers, home = Workers(client), next(iter(client.nthreads()))
    given = Parts([np.arange(6).reshape(2, 3), np.empty((2, 0), dtype=int), np.arange(4).reshape(2, 2)])
    made = workers.result(recut(workers, given, [0, 3, 3, 5], [0, 2, 4, 5], [home] * 3))
    assert [part.shape for part in made] == [(2, 2), (2, 2), (2, 1)]
    np.testing.assert_array_equal(made[1], [[2, 0], [5, 2]])


@pytest.mark.parametrize("threads", [[1], [1, 1], [1, 3, 4], [2, 1, 1, 1]])
@pytest.mark.parametrize("n_blocks", [1, 2, 7, 100])
def test_blocks_of_rows_are_shared_out_by_threads_and_nobody_has_none(threads, n_blocks):
    found = shares({f"worker {i}": n for i, n in enumerate(threads)}, n_blocks)
    assert len(found) == min(len(threads), n_blocks)
    assert found[0].first_block == 0
    assert found[-1].last_block == n_blocks
    assert all(one.last_block == other.first_block for one, other in pairwise(found))
    for share, n_threads in zip(found, threads, strict=False):
        n_own = share.last_block - share.first_block
        assert n_own >= 1
        assert n_blocks < 100 or abs(n_own - 100 * n_threads / sum(threads)) <= 1
