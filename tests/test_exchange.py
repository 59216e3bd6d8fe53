"""Workers that each have some of the rows do what one machine does with all of them."""

from dataclasses import replace

import numpy as np
import pytest
from cluster_tables import mixed, numbers, weights
from together import together

from kfhe.exchange import Exchange
from kfhe.tree_settings import TreeSettings

FULL = {"min_samples_leaf": 1, "min_samples_split": 2}


@pytest.mark.parametrize("size", [3, 50_000])
def test_sums_are_those_of_all(size):
    sums = together(3, lambda exchange: exchange.sum(np.arange(size) * (exchange.rank + 1)))
    for each in sums:
        np.testing.assert_array_equal(each, np.arange(size) * 6)


def test_what_is_asked_of_all_rows_is_asked_of_them_in_their_order():
    found = together(3, lambda exchange: exchange.all(lambda rows: rows.tolist(), np.full(2, exchange.rank)))
    assert found == [[0, 0, 1, 1, 2, 2]] * 3
    assert Exchange().all(len, np.zeros(4)) == 4


def test_work_is_shared_out_by_its_size():
    exchange = Exchange()
    exchange.n = 2
    assert exchange.shares([1, 5, 2, 3]) == [[1, 0], [3, 2]]


def grown(table, labels, settings, sample, counts, exchange=None):
    """The tree that is grown on a table, or on the part of a table that a worker has."""
    if exchange is not None:
        bounds = [len(labels) * q // exchange.n for q in range(exchange.n + 1)]
        own = slice(*bounds[exchange.rank : exchange.rank + 2])
        table = replace(table, codes=np.ascontiguousarray(table.codes[:, own]))
        labels, sample = labels[own], sample[own]
    given = () if exchange is None else (exchange,)
    return settings.grower(table, labels, 3, 7, 1, *given).grow(sample, counts, 5)


@pytest.mark.parametrize("n_workers", [2, 3])
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("given", [numbers, mixed])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        FULL,
        {"max_leaf_nodes": 12},
        {"max_leaf_nodes": 900, "min_samples_leaf": 1},
        {"cp": 0.002, "max_leaf_nodes": 30},
        {"cp": 0.0005},
        {"max_features": 2, **FULL},
        {"max_features": 3, "splitter": "random", **FULL},
        {"max_depth": 2},
    ],
    ids=str,
)
def test_trees_are_those_of_one_machine(given, settings, counts, n_workers):
    X, y = given()
    settings, labels = TreeSettings(**settings), np.unique(y, return_inverse=True)[1].astype(np.int32)
    table = settings.binned(X, 1)
    if counts:
        sample = np.random.default_rng(0).multinomial(len(y), np.ones(len(y)) / len(y)).astype(np.int32)
    else:
        sample = (weights() * 1000).astype(np.int32)
    expected = grown(table, labels, settings, sample, counts)
    trees = together(n_workers, lambda exchange: grown(table, labels, settings, sample, counts, exchange))
    for tree in trees:
        for name in ("nodes", "gains", "leaf_weights", "category_sets"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(expected, name), err_msg=name)
    np.testing.assert_array_equal(np.concatenate([tree.leaves for tree in trees]), expected.leaves)


class Broken(Exchange):
    """An exchange that is lost after some sums."""

    n, left = 2, 3

    def sum(self, values):
        self.left -= 1
        if not self.left:
            raise ConnectionError("nobody is there")
        return values


def test_a_worker_that_loses_the_others_says_so():
    X, y = numbers()
    settings = TreeSettings()
    with pytest.raises(ConnectionError, match="nobody is there"):
        grown(settings.binned(X, 1), y.astype(np.int32), settings, np.ones(len(y), np.int32), True, Broken())
