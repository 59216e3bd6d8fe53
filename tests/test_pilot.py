"""The robust classifier's sensor grows what the bank asks for."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from kfhe import RobustKFHEClassifier
from kfhe.forest import LEAF
from kfhe.pilot import PilotSensor
from kfhe.robust import features_by_kind
from kfhe.rows import TrainingRows
from kfhe.tree_settings import TreeSettings

FEATURES = {"sqrt": 2, "double": 5}


@pytest.mark.parametrize(
    ("n_features", "kinds"),
    [
        (1, {"sqrt": 1}),
        (2, {"sqrt": 1, "double": 2}),
        (4, {"sqrt": 2, "double": 4}),
        (30, {"sqrt": 5, "double": 10}),
        (100, {"sqrt": 10, "double": 20}),
    ],
)
def test_a_split_looks_at_the_square_root_of_the_features_or_at_twice_as_many(n_features, kinds):
    assert features_by_kind(n_features) == kinds


def grown(features=FEATURES, **bank):
    """Return each row's leaf in the tree of each kind that a sensor grows under such a bank, and counts."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = TrainingRows(X, y.astype(np.int32), np.arange(2), np.full(len(y), 1 / len(y)), seed=0, n_threads=1)
    bank = SimpleNamespace(**({"kinds": ("sqrt",), "clean": False, "coarse": False} | bank))
    sensor = PilotSensor(rows, TreeSettings(max_depth=None, min_samples_split=2), features, bank)
    sensor.initial()
    counts = rows.draws().draw(rows.base, 1, 0)
    votes = sensor.read(counts, 1, 0)
    return {kind: tree.leaves.tolist() for kind, tree in votes.items()} | {"counts": counts}


def test_kinds_differ_in_the_features_per_split_only():
    both = grown(kinds=("sqrt", "double"))
    assert both["sqrt"] != both["double"]
    assert both["sqrt"] == grown()["sqrt"] == grown({"sqrt": 2})["sqrt"]
    assert both["double"] == grown({"sqrt": 5})["sqrt"]


def test_while_labels_look_clean_splits_look_at_more_features():
    assert grown(clean=True)["sqrt"] == grown(kinds=("double",))["double"]


def test_leaves_are_larger_once_labels_are_plainly_noisy():
    smallest = []
    for coarse in (False, True):
        found = grown(coarse=coarse)
        smallest.append(np.bincount(found["sqrt"], weights=found["counts"]).min())
    assert smallest == [1, 5]


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
