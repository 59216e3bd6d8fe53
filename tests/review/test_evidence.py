"""Evidence on rows, beside plain loops: what moved the votes, and which rows are alike."""

from itertools import pairwise

import numpy as np
import pytest

from kfhe.audit import label_quality
from kfhe.audit.quality import tree_settings
from kfhe.audit.votes import drawn_rows
from kfhe.forest import LEAF, NODE_DTYPE
from kfhe.noise import flip_labels
from kfhe.review.evidence import N_TREES, SIMILAR, gather
from kfhe.rows import TrainingRows

ROWS = np.arange(0, 90, 6)


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = flip_labels((X[:, 0] > 0).astype(np.int32) + (X[:, 1] > 1), 0.2, random_state=0)
    return X, y, label_quality(X, y, random_state=0, n_estimators=50)


@pytest.fixture(scope="module")
def trees(audited):
    """The trees that are asked, and how often each row is in their samples."""
    X, y, audit = audited
    labels, settings = y.astype(np.int32), tree_settings("from_dtype")
    rows = TrainingRows(X, labels, audit.classes, np.full(90, 1 / 90), seed=3, n_threads=1)
    grower = rows.grower(settings, rows.table(settings))
    drawn = [drawn_rows(rows, t) for t in range(N_TREES)]
    return [(grower.grow(counts, True, t), counts) for t, counts in enumerate(drawn)]


@pytest.fixture(scope="module")
def evidence(audited):
    X, y, audit = audited
    return gather(X, y, audit, ROWS, np.ones(90, dtype=bool), seed=3, n_jobs=1)


def looks(tree, leaf, given, suggested):
    """Return by how much each split above a leaf moved the votes from a class to another, by feature."""
    nodes, votes = tree.nodes.view(NODE_DTYPE), tree.leaf_weights.reshape(-1, tree.n_classes)

    def below(node):
        if nodes["kind"][node] == LEAF:
            return votes[nodes["left"][node]].astype(float)
        return below(nodes["left"][node]) + below(nodes["left"][node] + 1)

    def path(node):
        if nodes["kind"][node] == LEAF:
            return [node] if nodes["left"][node] == leaf else []
        left = nodes["left"][node]
        rest = path(left) or path(left + 1)
        return [node, *rest] if rest else []

    moved = np.zeros(3)
    for above, here in pairwise(path(0)):
        before, after = (below(node) / below(node).sum() for node in (above, here))
        change = after - before
        moved[nodes["feature"][above]] += change[suggested] - change[given]
    return moved


def test_looks_are_the_mean_over_the_trees_that_have_not_seen_the_row(audited, trees, evidence):
    _, y, audit = audited
    for i, row in enumerate(ROWS):
        unseen = [tree for tree, counts in trees if not counts[row]]
        given, suggested = y[row], int(audit.suggested[row])
        expected = np.mean([looks(tree, tree.leaves[row], given, suggested) for tree in unseen], axis=0)
        np.testing.assert_allclose(evidence.weights[i], expected, atol=1e-12)
    assert (audit.suggested[ROWS] != y[ROWS]).any()


def test_similar_rows_share_the_most_leaves_of_trees_that_have_not_seen_the_row(audited, trees, evidence):
    _, y, audit = audited
    for row, found in zip(ROWS, evidence.similar, strict=True):
        unseen = [tree for tree, counts in trees if not counts[row]]
        together = np.sum([tree.leaves == tree.leaves[row] for tree in unseen], axis=0)
        together[row] = -1
        for label, others in zip((y[row], audit.suggested[row]), found, strict=True):
            assert row not in others
            of_class = np.flatnonzero((y == label) & (np.arange(90) != row))
            assert (y[others] == label).all()
            assert sorted(together[others]) == sorted(np.sort(together[of_class])[-SIMILAR:])
