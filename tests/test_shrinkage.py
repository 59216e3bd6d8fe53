"""Shrinkage of leaves: a filter down each tree, and the amount that unseen rows speak for."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.filter_bank import SHRINKAGES
from kfhe.forest import LEAF
from kfhe.noise import flip_labels
from kfhe.rows import TrainingRows
from kfhe.shrinkage import resolve, soft_votes
from kfhe.tree_settings import TreeSettings

PURE = {"min_samples_leaf": 1, "min_samples_split": 2}


def slow_estimates(tree, shrinkage):
    """Return what each leaf says: a filter from the root down."""
    nodes, leaf_weights, estimates = tree.nodes, tree.leaf_weights.astype(float), {}

    def total(i):
        left = nodes["left"][i]
        return leaf_weights[left] if nodes["kind"][i] == LEAF else total(left) + total(left + 1)

    def go_down(i, estimate):
        left, own = nodes["left"][i], total(i)
        if nodes["kind"][i] == LEAF:
            estimates[left] = estimate
            return
        gain = own.sum() / (own.sum() + shrinkage)
        for child in (left, left + 1):
            shares = total(child) / total(child).sum()
            go_down(child, estimate + gain * (shares - own / own.sum()))

    go_down(0, total(0) / total(0).sum())
    return np.array([estimates[leaf] for leaf in range(len(estimates))])


@pytest.mark.parametrize("shrinkage", [0, 0.5, 30])
def test_a_leaf_says_what_a_filter_down_the_tree_says(iris, shrinkage):
    X, y = iris
    tree = CARTClassifier(shrinkage=shrinkage, **PURE).fit(X, y)
    expected = slow_estimates(tree.tree_, shrinkage)[tree.tree_.apply(X)]
    np.testing.assert_allclose(tree.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_array_equal(tree.predict(X), expected.argmax(axis=1))
    assert tree.shrinkage_ == shrinkage
    assert tree.tree_.export_text() == CARTClassifier(**PURE).fit(X, y).tree_.export_text()


@pytest.fixture(scope="module")
def tables():
    """Rows, right labels, and labels a fifth of which is wrong."""
    X, y = load_breast_cancer(return_X_y=True)
    return X, y, flip_labels(y, 0.2, random_state=0)


def test_the_noisier_the_labels_the_more_is_found_to_be_right(tables):
    X, clean, noisy = tables
    tree = CARTClassifier(shrinkage="auto", **PURE, random_state=0)
    for model in (tree, KFHEClassifier(tree, voting="soft", n_estimators=1, random_state=0)):
        found = [found_by(clone(model).fit(X, y)) for y in (clean, noisy)]
        assert set(found) <= set(SHRINKAGES)
        assert found[0] < found[1]


def found_by(model):
    return model.shrinkage_ if isinstance(model, CARTClassifier) else model.trace_["shrinkage"][0]


def test_what_is_found_is_the_best_of_those_tried_on_rows_to_come(tables):
    """A single tree that is grown to purity has much to gain."""
    X, clean, noisy = tables
    train, test = np.arange(len(clean)) % 2 == 0, np.arange(len(clean)) % 2 == 1

    def brier(shrinkage):
        tree = CARTClassifier(shrinkage=shrinkage, **PURE).fit(X[train], noisy[train])
        return ((tree.predict_proba(X[test]) - np.eye(2)[clean[test]]) ** 2).sum(axis=1).mean()

    assert brier("auto") < 0.7 * brier(0)


class Watched:
    """A grower that notes what it grew."""

    def __init__(self, grower, log):
        self.grower, self.log = grower, log

    def grow(self, counts, is_counts, number):
        tree = self.grower.grow(counts, is_counts, number)
        self.log.append((self, tree, counts == 0))
        return tree


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("wrong", [0.0, 0.05, 0.1, 0.2])
def test_it_is_the_one_with_the_lowest_brier_score_on_rows_that_pilot_trees_have_not_seen(iris, alone, wrong):
    """Of each tree by itself, or of the trees' mean, by a plain loop over rows."""
    X, y = iris
    y = flip_labels(y, wrong, random_state=0)
    labels, base = y.astype(np.int32), np.full(len(y), 1 / len(y))
    rows = TrainingRows(X, labels, np.arange(3), base, seed=3, n_threads=1)
    settings, log = TreeSettings(**PURE), []
    table = settings.binned(X, 1)
    grower = settings.grower(table, labels, 3, 3, 1)
    first, second = Watched(grower, log), Watched(grower, log)
    found = resolve("auto", [first, second], rows, alone=alone)
    assert {id(who) for who, *_ in log[::2]} != {id(who) for who, *_ in log[1::2]}
    assert len(log) == 20
    scores = []
    for shrinkage in SHRINKAGES:
        votes = [soft_votes(tree, shrinkage) for _, tree, _ in log]
        losses = 0.0
        for i in range(len(y)):
            unseen = [vote[i] for vote, (_, _, out) in zip(votes, log, strict=True) if out[i]]
            judged = unseen if alone else [np.mean(unseen, axis=0)]
            losses += sum(((vote - np.eye(3)[y[i]]) ** 2).sum() for vote in judged)
        scores.append(losses)
    assert found == SHRINKAGES[np.argmin(scores)]
    assert min(scores) < scores[0]


def test_a_tree_alone_is_shrunken_more_than_one_of_many(tables):
    X, clean, _ = tables
    alone = CARTClassifier(shrinkage="auto", **PURE).fit(X, clean)
    many = KFHEClassifier(
        CARTClassifier(shrinkage="auto", **PURE), voting="soft", n_estimators=1, random_state=0
    ).fit(X, clean)
    assert found_by(alone) > found_by(many.fit(X, clean))


def test_it_is_found_again_whatever_the_random_state(iris):
    X, y = iris
    trees = [CARTClassifier(shrinkage="auto", random_state=seed, **PURE).fit(X, y) for seed in (0, 1, None)]
    assert len({tree.shrinkage_ for tree in trees}) == 1


@pytest.mark.parametrize("labels", [[0, 1], [1, 1], [0, 1, 1]])
def test_a_table_can_be_as_small_as_it_likes(labels):
    X = np.arange(len(labels), dtype=float).reshape(-1, 1)
    tree = CARTClassifier(shrinkage="auto", **PURE).fit(X, labels)
    assert tree.shrinkage_ in SHRINKAGES
    KFHEClassifier(CARTClassifier(shrinkage="auto", **PURE), voting="soft", random_state=0).fit(
        X, labels
    ).predict(X)


def test_a_cart_component_has_its_own(iris):
    X, y = iris
    by_tree = KFHEClassifier(CARTClassifier(shrinkage=3), voting="soft", n_estimators=4, random_state=0)
    by_name = KFHEClassifier(CARTClassifier(shrinkage=3), voting="soft", n_estimators=4, random_state=0)
    assert by_tree.fit(X, y).fingerprint() == by_name.fit(X, y).fingerprint()
    plain = KFHEClassifier(voting="soft", n_estimators=4, random_state=0).fit(X, y)
    assert plain.fingerprint() != by_name.fingerprint()


def test_an_estimators_own_shrinkage_is_its_own_affair(iris):
    X, y = iris
    component = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    assert KFHEClassifier(component, n_estimators=2, random_state=0).fit(X, y).score(X, y) > 0.8
