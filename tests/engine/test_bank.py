"""The bank's states are means of the votes of components that have not seen a row."""

import pickle

import numpy as np
import pytest

from kfhe.engine.bank import HonestBank


@pytest.fixture(params=[60, 30_000], ids=["small", "shared out among threads"])
def table(request):
    rng = np.random.default_rng(request.param)
    n, n_classes, n_filters = request.param, 3, 4
    labels = rng.integers(n_classes, size=n, dtype=np.int32)
    base = rng.exponential(size=n)
    components = [
        (
            rng.integers(5, size=n, dtype=np.int32),
            rng.dirichlet(np.ones(n_classes), size=(n_filters, 5)),
            rng.poisson(1.0, size=n).astype(np.int32),
        )
        for _ in range(6)
    ]
    return labels, base / base.sum(), np.array([0.5, 0.3, 0.2]), n_filters, components


def filled(table, n_threads):
    labels, base, prior, n_filters, components = table
    bank = HonestBank(labels, base, prior, n_filters, n_threads)
    for leaves, votes, counts in components:
        bank.update(leaves, votes, counts)
    return bank


def test_a_state_is_the_mean_of_the_votes_that_a_row_got(table):
    _, _, prior, _, components = table
    bank = filled(table, 1)
    unseen = np.array([counts == 0 for *_, counts in components])
    votes = np.array([votes[:, leaves] for leaves, votes, _ in components])  # component, filter, row, class
    np.testing.assert_array_equal(bank.n_read, unseen.sum(axis=0))
    for row in range(50):
        if unseen[:, row].any():
            np.testing.assert_allclose(bank.states[:, row], votes[unseen[:, row], :, row].mean(axis=0))
        else:
            np.testing.assert_array_equal(bank.states[:, row], np.broadcast_to(prior, (4, 3)))


def test_it_is_judged_by_weighted_brier_score(table):
    labels, base, *_ = table
    bank = filled(table, 1)
    expected = ((bank.states - np.eye(3)[labels]) ** 2).sum(axis=2) @ base
    np.testing.assert_allclose(bank.brier_scores(), expected, rtol=1e-9)


def test_a_label_has_a_score_in_each_state(table):
    bank = filled(table, 3)
    expected = bank.states[2][np.arange(len(table[0])), table[0]]
    np.testing.assert_array_equal(bank.label_scores(2), expected)


def test_a_component_misses_unseen_rows_whose_leaf_votes_for_another_class(table):
    labels, base, *_, components = table
    leaves, votes, counts = components[0]
    missed, wrong, weight = filled(table, 1).misses(leaves, votes[1], counts)
    unseen = counts == 0
    np.testing.assert_array_equal(missed, unseen & (votes[1].argmax(axis=1)[leaves] != labels))
    assert (wrong, weight) == pytest.approx((base[missed].sum(), base[unseen].sum()))


def test_threads_make_no_difference(table):
    alone, shared = filled(table, 1), filled(table, 3)
    assert alone.states.tobytes() == shared.states.tobytes()
    assert alone.brier_scores().tobytes() == shared.brier_scores().tobytes()
    leaves, votes, counts = table[-1][0]
    (missed, *sums), (same, *same_sums) = (bank.misses(leaves, votes[1], counts) for bank in (alone, shared))
    assert missed.tobytes() == same.tobytes()
    assert sums == same_sums


def test_a_copy_goes_on_alone(table):
    bank = filled(table, 1)
    copied = pickle.loads(pickle.dumps(bank))
    assert copied.states.tobytes() == bank.states.tobytes()
    copied.update(*table[-1][0])
    assert copied.states.tobytes() != bank.states.tobytes()
    bank.update(*table[-1][0])
    assert copied.states.tobytes() == bank.states.tobytes()
    assert copied.n_read.tolist() == bank.n_read.tolist()
