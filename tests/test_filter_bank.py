"""The bank of filters and the measurement that feeds it: what labels say of their own noise."""

import numpy as np
import pytest

from kfhe.filter_bank import READ_EVERY, SHRINKAGES, STEERING, WARM_UP, FilterBank, TreeVotes, Unseen
from kfhe.measurement import OutOfBag
from kfhe.rows import TrainingRows

N_ROWS = 12


@pytest.fixture
def rows():
    labels = np.arange(N_ROWS, dtype=np.int32) % 3
    base = np.arange(1.0, N_ROWS + 1)
    return TrainingRows(None, labels, np.array(["a", "b", "c"]), base / base.sum(), seed=0, n_threads=1)


@pytest.fixture
def bank(rows):
    return FilterBank(rows)


def votes_for(labels, shrinkages):
    """Return votes of a tree with a leaf per row: these labels under some shrinkages, else all alike."""
    votes = np.full((len(SHRINKAGES), len(labels), 3), 1 / 3)
    votes[shrinkages] = np.eye(3)[labels]
    return TreeVotes(np.arange(len(labels), dtype=np.int32), votes)


@pytest.mark.parametrize("position", range(STEERING))
def test_leaves_grow_larger_after_the_pilot_if_a_large_shrinkage_is_right(bank, rows, position):
    measurement = Unseen(votes_for(rows.labels, position), np.zeros(N_ROWS, dtype=np.int32))
    for n_components in range(1, WARM_UP + 1):
        assert not bank.coarse
        bank.update(measurement, 0.0)
        assert bank.chosen == (position if n_components >= READ_EVERY else 0)
    assert bank.coarse == (SHRINKAGES[position] == 30)
    assert bank.clean == (SHRINKAGES[position] <= 1)


def test_the_highest_shrinkage_never_steers(bank, rows):
    """All rows would be shrunken to the shares of the classes: it has a say in the verdict only."""
    unseen = np.zeros(N_ROWS, dtype=np.int32)
    for _ in range(READ_EVERY):  # the highest is right, the one below nearly so
        bank.update(Unseen(confident(rows.labels, [0.3, 0.3, 0.3, 0.3, 0.6, 0.9]), unseen), 0.0)
    assert bank.shrinkage == 30
    assert SHRINKAGES[bank.verdict()] == 100


def test_the_robust_error_is_the_share_of_unseen_weight_that_is_missed(bank, rows):
    voted = np.where(np.arange(N_ROWS) < 4, (rows.labels + 1) % 3, rows.labels)  # the first four are missed
    counts = np.array([1, 1, 0, 0] + [0, 2] * 4, dtype=np.int32)
    reading = OutOfBag(rows, bank).take(bank.state, votes_for(voted, slice(None)), counts)
    np.testing.assert_array_equal(np.flatnonzero(reading.missed), [2, 3])
    assert reading.error == reading.component_error == pytest.approx((3 + 4) / (3 + 4 + 5 + 7 + 9 + 11))


@pytest.mark.parametrize("times_drawn", [0, 1], ids=["all unseen", "none unseen"])
def test_the_robust_error_is_0_where_no_unseen_row_is_missed(bank, rows, times_drawn):
    voted = (rows.labels + times_drawn) % 3  # rows that the tree has seen may well be missed
    counts = np.full(N_ROWS, times_drawn, dtype=np.int32)
    reading = OutOfBag(rows, bank).take(bank.state, votes_for(voted, slice(None)), counts)
    assert not reading.missed.any()
    assert reading.error == reading.component_error == 0


# A little worse on the whole, and better in half of the rows: within a standard error of none
MORE_OR_LESS = np.where(np.arange(N_ROWS) % 2, -0.05, 0.05)


def confident(labels, shares):
    """Return votes of a tree with a leaf per row: under each shrinkage, this share for the row's label."""
    votes = np.empty((len(SHRINKAGES), len(labels), 3))
    for filtered, share in zip(votes, shares, strict=True):
        right = np.eye(3)[labels] > 0
        filtered[:] = np.where(right, np.reshape(share, (-1, 1)), np.reshape(1 - share, (-1, 1)) / 2)
    return TreeVotes(np.arange(len(labels), dtype=np.int32), votes)


def verdict(bank, rows, shares):
    bank.update(Unseen(confident(rows.labels, shares), np.zeros(N_ROWS, dtype=np.int32)), 0.0)
    return SHRINKAGES[bank.verdict()]


def test_of_shrinkages_that_are_as_good_the_verdict_is_for_the_most(bank, rows):
    shares = np.full((6, N_ROWS), 0.5)
    shares[1], shares[3] = 0.8, 0.8 + MORE_OR_LESS
    assert verdict(bank, rows, shares) == 10


def test_the_verdict_is_for_the_best_where_more_is_surely_worse(bank, rows):
    shares = np.array([0.5, 0.8, 0.79, 0.79, 0.79, 0.79])[:, np.newaxis] * np.ones(N_ROWS)
    assert verdict(bank, rows, shares) == 1


@pytest.mark.parametrize(("share", "expected"), [(0.8, 30), (0.7, 100)])
def test_the_highest_shrinkage_has_to_be_the_best_itself(bank, rows, share, expected):
    shares = np.full((6, N_ROWS), 0.5)
    shares[4], shares[5] = share, 0.8 + MORE_OR_LESS
    assert verdict(bank, rows, shares) == expected


def test_weights_speak_in_the_verdict(rows):
    heavy = TrainingRows(None, rows.labels, rows.classes, np.array([0.89] + [0.01] * 11), 0, 1)
    shares = np.full((6, N_ROWS), 0.5)
    shares[0, 0], shares[3, 1:] = 0.8, 0.8
    assert verdict(FilterBank(heavy), heavy, shares) == 0
    even = TrainingRows(None, rows.labels, rows.classes, np.full(N_ROWS, 1 / N_ROWS), 0, 1)
    assert verdict(FilterBank(even), even, shares) == 10
