"""The bank of filters and the measurement that feeds it: what labels say of their own noise."""

import numpy as np
import pytest

from kfhe.bank import PILOT, READ_EVERY, SHRINKAGES, STEERING, FilterBank, TreeVotes, Unseen
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
    return FilterBank(rows, ("sqrt",))


def votes_for(labels, shrinkages):
    """Return votes of a tree with a leaf per row: these labels under some shrinkages, else all alike."""
    votes = np.full((len(SHRINKAGES), len(labels), 3), 1 / 3)
    votes[shrinkages] = np.eye(3)[labels]
    return {"sqrt": TreeVotes(np.arange(len(labels), dtype=np.int32), votes)}


@pytest.mark.parametrize("position", range(STEERING))
def test_leaves_grow_larger_after_the_pilot_if_a_large_shrinkage_is_right(bank, rows, position):
    measurement = Unseen(votes_for(rows.labels, position), np.zeros(N_ROWS, dtype=np.int32))
    for n_components in range(1, PILOT + 1):
        assert not bank.coarse
        bank.update(measurement, 0.0)
        assert bank.chosen == (position if n_components >= READ_EVERY else 0)
    assert bank.coarse == (SHRINKAGES[position] == 30)
    assert bank.clean == (SHRINKAGES[position] <= 1)


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
