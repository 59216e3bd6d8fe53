"""From scores to probabilities of the true classes."""

import numpy as np
import pytest

from kfhe.calibration import ENOUGH, RATES, SHARPNESSES, best_rate, calibrate, calibrated, thinned_out
from kfhe.forest import sharpened
from kfhe.noise import estimated_rate
from kfhe.rows import TrainingRows


def timid(n_rows, n_classes, sharpness, rate, seed=0):
    """Return scores that have to be made sharper, labels of which some are wrong, and true probabilities."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(n_classes, 0.4), size=n_rows) * 0.98 + 0.02 / n_classes
    classes = (true.cumsum(axis=1) < rng.uniform(size=(n_rows, 1))).sum(axis=1)
    others = (classes + rng.integers(1, n_classes, size=n_rows)) % n_classes
    labels = np.where(rng.uniform(size=n_rows) < rate, others, classes).astype(np.int32)
    return sharpened(true, 1 / sharpness), labels, true


def sample_of(scores, labels, weights=None):
    weights = np.full(len(labels), 1 / len(labels)) if weights is None else weights
    return thinned_out(scores, labels, weights, 1)


def loss_of(k, rate, scores, labels, expected):
    """Return what calibration makes least, from the definition."""
    n_classes = scores.shape[1]
    right = sharpened(scores, SHARPNESSES[k])[np.arange(len(labels)), labels]
    chances = (1 - rate) * right + rate / (n_classes - 1) * (1 - right)
    return np.log(SHARPNESSES[k]) ** 2 + ((rate - expected) / 0.1) ** 2 / 2 - np.log(chances).sum()


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("sharpness", [1.0, 2.0, 4.0])
def test_sharpness_rate_and_shares_are_found(n_classes, rate, sharpness):
    scores, labels, true = timid(4000, n_classes, sharpness, rate)
    found = calibrated(sample_of(scores, labels))
    assert found.sharpness == pytest.approx(sharpness, rel=0.2)
    assert found.noise_rate == pytest.approx(rate, abs=0.03)
    np.testing.assert_allclose(found.class_shares, true.mean(axis=0), atol=0.03)


def test_the_likeliest_of_all_steps_is_found():
    scores, labels, _ = timid(300, 3, 2.0, 0.2)
    found = calibrated(sample_of(scores, labels))
    expected = estimated_rate(scores, labels)
    rates = RATES[RATES <= 0.63]
    losses = [[loss_of(k, rate, scores, labels, expected) for rate in rates] for k in range(len(SHARPNESSES))]
    k, j = np.unravel_index(np.argmin(losses), (len(SHARPNESSES), len(rates)))
    assert found.sharpness == SHARPNESSES[k]
    assert abs(found.noise_rate - rates[j]) <= 0.0101  # the step before may be a little likelier


def test_the_rate_has_a_prior_where_labels_say_nothing():
    undecided = np.full(50, 0.5)
    loss, rate = best_rate(undecided, 2, np.ones(50), 0.2)
    assert rate == 0.2
    assert loss == pytest.approx(50 * np.log(2))


def test_labels_that_leave_it_open_leave_scores_as_they_are():
    found = calibrated(sample_of(np.array([[0.6, 0.4]]), np.array([0], dtype=np.int32)))
    assert 0.8 < found.sharpness < 1.3


def test_weights_count_like_repeated_rows():
    scores, labels, _ = timid(500, 3, 2.0, 0.2)
    times = np.random.default_rng(1).integers(1, 4, size=500)
    weighted = calibrated(sample_of(scores, labels, times / times.sum()))
    repeated = calibrated(sample_of(scores.repeat(times, axis=0), labels.repeat(times)))
    assert weighted.sharpness == pytest.approx(repeated.sharpness, rel=0.2)
    np.testing.assert_allclose(weighted.class_shares, repeated.class_shares, atol=0.02)


def test_one_class_has_nothing_to_calibrate():
    found = calibrated(sample_of(np.ones((3, 1)), np.zeros(3, dtype=np.int32)))
    assert (found.sharpness, found.noise_rate, found.class_shares.tolist()) == (1.0, 0.0, [1.0])


@pytest.mark.parametrize(
    ("n_rows", "step"), [(1, 1), (2 * ENOUGH - 1, 1), (2 * ENOUGH, 2), (4 * ENOUGH - 1, 2), (10**9, 8192)]
)
def test_many_rows_are_thinned_out(monkeypatch, n_rows, step):
    rows = TrainingRows(None, np.zeros(3, np.int32), np.array(["a"]), np.full(3, 1 / 3), 0, 1)
    monkeypatch.setattr(TrainingRows, "n_rows", n_rows)
    monkeypatch.setattr(TrainingRows, "map", lambda self, function, *arguments: arguments[-1])
    monkeypatch.setattr(TrainingRows, "all", lambda self, function, values: values)
    assert calibrate(rows, None) == step


def test_a_thinned_out_sample_says_what_all_rows_do():
    scores, labels, _ = timid(40_000, 3, 3.0, 0.2)
    rows = TrainingRows(None, labels, np.arange(3), np.full(40_000, 1 / 40_000), 0, 1)
    found, whole = calibrate(rows, scores), calibrated(sample_of(scores, labels))
    assert found.sharpness == pytest.approx(whole.sharpness, rel=0.1)
    assert found.noise_rate == pytest.approx(whole.noise_rate, abs=0.02)
    np.testing.assert_allclose(found.class_shares, whole.class_shares, atol=0.02)
