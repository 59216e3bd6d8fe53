"""The robust classifier's sensor grows what the bank asks for."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from kfhe import RobustKFHEClassifier
from kfhe.filter_bank import SHRINKAGES
from kfhe.forest import LEAF
from kfhe.robust_sensor import RobustSensor
from kfhe.rows import TrainingRows
from kfhe.tree_settings import TreeSettings


def grown(iteration=1, **bank):
    """Return each row's leaf in a tree that a sensor grows under such a bank, and counts."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = TrainingRows(X, y.astype(np.int32), np.arange(2), np.full(len(y), 1 / len(y)), seed=0, n_threads=1)
    bank = SimpleNamespace(**({"clean": False, "coarse": False, "shrinkage": 0.0} | bank))
    sensor = RobustSensor(rows, TreeSettings(max_depth=None, min_samples_split=2, min_samples_leaf=1), bank)
    sensor.initial()
    counts = rows.draws().draw(rows.base, 1, 0)
    return sensor.read(counts, iteration, 0).leaves.tolist(), counts


def expected(iteration, max_features, splitter):
    """Return the same of a tree that is grown without a sensor."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = TrainingRows(X, y.astype(np.int32), np.arange(2), np.full(len(y), 1 / len(y)), seed=0, n_threads=1)
    settings = TreeSettings(
        max_depth=None, min_samples_split=2, min_samples_leaf=1, max_features=max_features, splitter=splitter
    )
    counts = rows.draws().draw(rows.base, 1, 0)
    grower = rows.grower(settings, rows.table(settings))
    return grower.grow(counts, True, 2 * iteration).leaves.tolist()


def test_trees_have_the_best_and_random_cuts_in_turn():
    assert grown(1)[0] == expected(1, 5, "best")
    assert grown(2)[0] == expected(2, 10, "random")
    assert grown(3)[0] == expected(3, 5, "best")


def test_while_labels_look_clean_all_splits_look_at_more_features():
    assert grown(1, clean=True)[0] == expected(1, 10, "best")
    assert grown(2, clean=True)[0] == expected(2, 10, "random")


@pytest.mark.parametrize(
    ("n_features", "few", "more"), [(1, 1, 1), (2, 1, 2), (4, 2, 4), (30, 5, 10), (100, 10, 20)]
)
def test_a_split_looks_at_the_square_root_of_the_features_or_at_twice_as_many(
    monkeypatch, n_features, few, more
):
    seen = []
    grower = TreeSettings.grower
    monkeypatch.setattr(
        TreeSettings,
        "grower",
        lambda self, *rest: seen.append((self.splitter, self.max_features)) or grower(self, *rest),
    )
    X = np.random.default_rng(0).normal(size=(60, n_features))
    RobustKFHEClassifier(n_estimators=2, random_state=0).fit(X, np.arange(60) % 2)
    assert seen[:2] == [("best", few), ("random", more)]


@pytest.mark.parametrize("iteration", [1, 2])
def test_leaves_are_larger_once_labels_are_plainly_noisy(iteration):
    smallest = []
    for coarse in (False, True):
        leaves, counts = grown(iteration, coarse=coarse)
        smallest.append(np.bincount(leaves, weights=counts).min())
    assert smallest[0] == 1
    assert smallest[1] >= 5


@pytest.mark.parametrize("shrinkage", [0.0, 3.0, 30.0])
def test_other_rows_get_the_votes_of_the_shrinkage_that_a_tree_was_grown_under(shrinkage):
    """Even after the bank has changed its mind: else a run that goes on would score them otherwise."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = TrainingRows(X, y.astype(np.int32), np.arange(2), np.full(len(y), 1 / len(y)), seed=0, n_threads=1)
    bank = SimpleNamespace(clean=False, coarse=False, shrinkage=shrinkage)
    sensor = RobustSensor(rows, TreeSettings(max_depth=None, min_samples_split=2, min_samples_leaf=1), bank)
    sensor.initial()
    read = sensor.read(rows.draws().draw(rows.base, 1, 0), 1, 0)
    bank.shrinkage = 1.0
    position = SHRINKAGES.tolist().index(shrinkage)
    np.testing.assert_array_equal(sensor.votes(1, sensor.encode(X)), read.votes[position][read.leaves])


def test_nodes_of_fewer_than_four_rows_are_not_split():
    X, y = load_breast_cancer(return_X_y=True)
    y = np.random.default_rng(0).permutation(y)  # so that trees go as deep as they may
    forest = RobustKFHEClassifier(n_estimators=8, random_state=0).fit(X, y).estimators_
    sizes = []
    for tree in forest[1:]:
        weights = np.zeros(len(tree.nodes))
        for i in range(len(tree.nodes) - 1, -1, -1):  # children come after their parents
            left = tree.nodes["left"][i]
            leaf = tree.nodes["kind"][i] == LEAF
            weights[i] = tree.leaf_weights[left].sum() if leaf else weights[left] + weights[left + 1]
        sizes.extend(weights[tree.nodes["kind"] != LEAF])
    assert min(sizes) == 4
