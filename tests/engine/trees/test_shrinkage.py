"""Shrinkage: a leaf's votes are filtered on the way down from the root."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.engine.trees.leaf_votes import leaf_shares, shrunken_shares, shrunken_shares_of_all
from kfhe.forest import LEAF


@pytest.fixture(scope="module")
def tree():
    return CARTClassifier(min_samples_split=2, min_samples_leaf=1).fit(*load_iris(return_X_y=True)).tree_


def twin(tree, shrinkage):
    """The filter's recursion, node by node."""
    nodes, n_classes = tree.nodes, tree.leaf_weights.shape[1]
    totals = np.zeros((len(nodes), n_classes))
    for i in reversed(range(len(nodes))):
        left = nodes["left"][i]
        totals[i] = (
            tree.leaf_weights[left] if nodes["kind"][i] == LEAF else totals[left : left + 2].sum(axis=0)
        )
    shares = totals / totals.sum(axis=1, keepdims=True)
    estimates, votes = shares.copy(), np.empty(tree.leaf_weights.shape)
    for i, node in enumerate(nodes):
        if node["kind"] == LEAF:
            votes[node["left"]] = estimates[i]
            continue
        gain = totals[i].sum() / (totals[i].sum() + shrinkage)
        for child in (node["left"], node["left"] + 1):
            estimates[child] = estimates[i] + gain * (shares[child] - shares[i])
    return votes


def test_votes_are_those_of_the_recursion(tree):
    shrinkages = np.array([0.0, 1.0, 7.5, 1000.0])
    votes = shrunken_shares(tree.nodes, tree.leaf_weights, shrinkages)
    for found, shrinkage in zip(votes, shrinkages, strict=True):
        np.testing.assert_allclose(found, twin(tree, shrinkage), atol=1e-12)
        np.testing.assert_allclose(found.sum(axis=1), 1)


def test_without_shrinkage_they_are_exactly_the_shares(tree):
    votes = shrunken_shares(tree.nodes, tree.leaf_weights, np.zeros(1))
    np.testing.assert_array_equal(votes[0], leaf_shares(tree.leaf_weights))


def test_the_more_shrinkage_the_nearer_they_are_to_the_shares_of_all_rows(tree):
    prior = tree.leaf_weights.sum(axis=0) / tree.leaf_weights.sum()
    votes = shrunken_shares(tree.nodes, tree.leaf_weights, np.array([0.0, 3.0, 30.0, 1e9]))
    distances = np.abs(votes - prior).max(axis=(1, 2))
    assert (np.diff(distances) < 0).all()
    assert distances[-1] < 1e-5


def test_a_single_leaf_votes_for_its_shares():
    tree = CARTClassifier().fit([[0.0]] * 4, [0, 0, 0, 1]).tree_
    votes = shrunken_shares(tree.nodes, tree.leaf_weights, np.array([0.0, 10.0]))
    assert votes.tolist() == [[[0.75, 0.25]]] * 2


def test_many_trees_vote_as_each_does_alone():
    X, y = load_iris(return_X_y=True)
    forest = KFHEClassifier(n_estimators=5, random_state=0).fit(X, y).estimators_
    trees = forest.nodes, forest.leaf_weights, forest.tree_nodes, forest.tree_leaves
    expected = [shrunken_shares(tree.nodes, tree.leaf_weights, np.array([3.0]))[0] for tree in forest]
    np.testing.assert_array_equal(shrunken_shares_of_all(*trees, 3.0, 2), np.concatenate(expected))


@pytest.mark.parametrize("n_threads", [2, 3, 9])
def test_threads_make_no_difference(n_threads):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(20_000, 2)), random.integers(3, size=20_000)
    tree = CARTClassifier(min_samples_split=2, min_samples_leaf=1).fit(X, y).tree_
    assert len(tree.nodes) > 8192  # from so many on threads share them
    shrinkages = np.array([0.0, 1.0, 7.5, 30.0, 1000.0])
    votes = [shrunken_shares(tree.nodes, tree.leaf_weights, shrinkages, n) for n in (1, n_threads)]
    np.testing.assert_array_equal(*votes)
