"""From scores to probabilities of the true classes."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import kfhe.calibration
from kfhe import RobustKFHEClassifier
from kfhe.calibration import (
    ENOUGH,
    RATE_SPREAD,
    RATES,
    SHARPNESSES,
    best_rates,
    calibrate,
    calibrated,
    mean_sharpness,
    rate_among_the_surest,
    sampled,
)
from kfhe.engine.draws import ROWS_OF_BLOCK
from kfhe.exchange import Exchange
from kfhe.forest import sharpened
from kfhe.noise import flip_labels
from kfhe.rows import TrainingRows

POWERS = ["0x1.e29f855704bd3p-1", "0x1.8a10533864ee2p-5", "0x1.2fdd5d5d3cfaep-7"]  # of 0.7, 0.2 and 0.1


def timid(n_rows, n_classes, sharpness, rate, seed=0):
    """Return scores that have to be made sharper, labels of which some are wrong, and true probabilities."""
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.full(n_classes, 0.4), size=n_rows) * 0.98 + 0.02 / n_classes
    classes = (true.cumsum(axis=1) < rng.uniform(size=(n_rows, 1))).sum(axis=1)
    others = (classes + rng.integers(1, n_classes, size=n_rows)) % n_classes
    labels = np.where(rng.uniform(size=n_rows) < rate, others, classes).astype(np.int32)
    return sharpened(true, 1 / sharpness), labels, true


def calibration_of(scores, labels, weights=None):
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=float)
    prior = np.bincount(labels, weights=weights, minlength=scores.shape[1])
    return calibrated(np.column_stack([labels, weights / weights.sum(), scores]), prior / prior.sum())


def rows_of(labels, n_classes, seed=0):
    return TrainingRows(None, labels, np.arange(n_classes), np.full(len(labels), 1 / len(labels)), seed, 1)


def loss_of(k, rate, scores, labels, expected):
    """Return what calibration makes least, from the definition."""
    n_classes = scores.shape[1]
    right = sharpened(scores, SHARPNESSES[k])[np.arange(len(labels)), labels]
    chances = (1 - rate) * right + rate / (n_classes - 1) * (1 - right)
    told = 1 - expected * n_classes / (n_classes - 1)
    return (
        np.log(SHARPNESSES[k] * told**0.5) ** 2
        + ((rate - expected) / RATE_SPREAD) ** 2 / 2
        - np.log(chances).sum()
    )


class TestAmongTheSurest:
    def rate(self, confidences, right):
        votes = np.column_stack([confidences, 1 - np.array(confidences)])
        return rate_among_the_surest(votes, 1 - np.array(right, dtype=np.int32))

    def test_it_is_the_disagreement_among_the_surest(self):
        """The surest half is wrong in 1 of 10, the rest by chance."""
        right = np.tile([0, 1, 1, 1, 1, 1, 1, 1, 1, 1], 5).tolist() + [0, 1] * 25
        assert self.rate(np.linspace(1, 0.51, 100), right) == pytest.approx(0.1)

    def test_a_lucky_few_don_t_count(self):
        """A handful of rows without a mistake say little: at least a fifth has to be looked at."""
        assert self.rate(np.linspace(1, 0.51, 100), [1] * 10 + [0] * 90) == pytest.approx(11 / 21)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("sharpness", [0.6, 1.0, 2.0, 4.0, 7.5])
def test_sharpness_rate_and_shares_are_found(n_classes, rate, sharpness):
    scores, labels, true = timid(20_000, n_classes, sharpness, rate)
    found = calibration_of(scores, labels)
    assert found.sharpness == pytest.approx(sharpness, rel=0.2)
    assert found.noise_rate == pytest.approx(rate, abs=0.03)
    np.testing.assert_allclose(found.class_shares, true.mean(axis=0), atol=0.03)


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_the_rate_is_the_likeliest_and_the_sharpness_the_mean_of_all_that_are_likely(seed):
    scores, labels, _ = timid(30, 3, 2.0, 0.2, seed)
    labels[:3] = 0, 1, 2
    found = calibration_of(scores, labels)
    expected = rate_among_the_surest(scores, labels)
    rates = RATES[RATES <= 0.63]
    losses = np.array(
        [[loss_of(k, rate, scores, labels, expected) for rate in rates] for k in range(len(SHARPNESSES))]
    )
    _, j = np.unravel_index(losses.argmin(), losses.shape)
    assert found.noise_rate == rates[j]
    chances = np.exp(losses.min() - losses.min(axis=1)) / SHARPNESSES  # by which logarithms are spread evenly
    mean = np.exp(np.average(np.log(SHARPNESSES), weights=chances))
    assert found.sharpness == pytest.approx(mean, abs=1 / 8)


def test_of_values_that_are_about_as_likely_the_middle_is_believed():
    """Where right labels overlap, far too sharp a value is often the likeliest by a hair."""
    losses = np.full(len(SHARPNESSES), np.inf)
    losses[SHARPNESSES >= 1] = np.linspace(0.01, 0.0, (SHARPNESSES >= 1).sum())
    assert SHARPNESSES[mean_sharpness(losses)] == pytest.approx(8**0.5, abs=0.2)
    losses[SHARPNESSES != 2] += 100.0
    assert SHARPNESSES[mean_sharpness(losses + 1000)] == 2


def test_the_rate_has_a_prior_where_labels_say_nothing():
    undecided = np.full(50, 0.5)
    losses, rates = best_rates(undecided[None], 2, np.ones(50), 0.2)
    assert rates.tolist() == [0.2]
    assert losses == pytest.approx(50 * np.log(2))


def test_a_rate_leaves_something_to_know():
    always_wrong = np.full(500, 0.01)
    for n_classes in (2, 5):
        _, (rate,) = best_rates(always_wrong[None], n_classes, np.ones(500), 0.9)
        assert 0.9 * (1 - 1 / n_classes) < rate < 1 - 1 / n_classes


def test_each_fit_has_a_rate_of_its_own():
    rng = np.random.default_rng(0)
    right, weights = rng.uniform(0.05, 0.99, size=(7, 200)), rng.uniform(0.5, 2, size=200)
    together = best_rates(right, 3, weights, 0.1)
    alone = [best_rates(row[None], 3, weights, 0.1) for row in right]
    for found, parts in zip(together, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(found, np.concatenate(parts), rtol=1e-12)
    assert len(set(together[1])) > 1


def test_labels_that_look_wrong_let_few_rows_be_sharper():
    """Rows that say next to nothing: half way, in logarithms, between 1 and what would undo such labels."""
    for rate, expected in ((0.0, 1.0), (0.2, 0.6**-0.5), (0.4, 0.2**-0.5)):
        labels = (np.arange(10) < 10 * rate).astype(np.int32)
        found = calibration_of(np.tile([0.5001, 0.4999], (10, 1)), labels)
        assert found.sharpness == pytest.approx(expected, rel=0.15)  # values end at 0.5 and 8


@pytest.mark.parametrize("n_classes", [2, 5, 10])
def test_probabilities_are_not_timid_where_two_labels_in_five_are_wrong(n_classes):
    """Two classes are the hardest case, and no case of its own."""
    X, y = make_classification(
        4000, 15, n_informative=8, n_classes=n_classes, flip_y=0, random_state=n_classes
    )
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    model = RobustKFHEClassifier(random_state=0).fit(X, flip_labels(y, 0.4, random_state=0))
    shares = model.predict_proba(X_test)
    right = (model.classes_[shares.argmax(axis=1)] == y_test).mean()
    assert shares.max(axis=1).mean() == pytest.approx(right, abs=0.13 if n_classes == 2 else 0.1)
    assert model.noise_rate_ == pytest.approx(0.4, abs=0.05)


def test_labels_that_leave_it_open_leave_scores_as_they_are():
    found = calibration_of(np.array([[0.6, 0.4], [0.4, 0.6]]), np.array([0, 1], dtype=np.int32))
    assert 0.8 < found.sharpness < 1.4


def test_shares_have_six_digits():
    scores, labels, _ = timid(300, 3, 2.0, 0.2)
    for share in calibration_of(scores, labels).class_shares:
        assert share == float(f"{share:.6g}")


def test_weights_count_like_repeated_rows():
    scores, labels, _ = timid(600, 3, 2.0, 0.2)
    times = np.where(scores[:, 0] > 0.4, 20, 1)  # a part of the rows with other labels and scores
    weighted, plain = calibration_of(scores, labels, times), calibration_of(scores, labels)
    repeated = calibration_of(scores.repeat(times, axis=0), labels.repeat(times))
    np.testing.assert_allclose(weighted.class_shares, repeated.class_shares, atol=0.02)
    assert abs(plain.class_shares - weighted.class_shares).max() > 0.2
    assert weighted.sharpness == pytest.approx(repeated.sharpness, rel=0.15)


def test_few_heavy_rows_are_worth_few():
    scores, labels, _ = timid(2000, 2, 8.0, 0.0)
    heavy = np.concatenate([np.flatnonzero(scores[:, k] > 0.55)[:2] for k in (0, 1)])
    labels[heavy] = scores[heavy].argmax(axis=1)  # as if scores could not be sharp enough
    weights = np.full(2000, 1e-9)
    weights[heavy] = 1.0
    assert calibration_of(scores, labels, weights).sharpness < 4  # the prior has a say
    assert calibration_of(scores, labels).sharpness > 6


def test_rows_that_all_trees_have_seen_have_no_say():
    scores, labels, _ = timid(2000, 2, 2.0, 0.1)
    n_read = np.where((labels == 0) | (np.arange(2000) % 10 == 0), 5, 0).astype(np.int32)
    scores[n_read == 0] = 0.5
    sample = sampled(scores, labels, np.full(2000, 1 / 2000), n_read, 1, 0)
    found = calibrated(sample, np.bincount(labels) / 2000)
    assert found.sharpness == pytest.approx(2.0, rel=0.3)
    np.testing.assert_allclose(found.class_shares, 0.5, atol=0.05)  # by the weight of all rows of a class


@pytest.mark.parametrize("class_weight", [{0: 1, 1: 20}, "balanced"])
def test_weights_of_classes_don_t_spoil_probabilities(class_weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    y = (X[:, 0] + rng.normal(size=1500) > 2.3).astype(int)  # a twentieth
    model = RobustKFHEClassifier(class_weight=class_weight, random_state=0).fit(X, y)
    assert model.estimators_.sharpness < 4
    if class_weight == "balanced":
        np.testing.assert_allclose(model.estimators_.class_shares, 0.5, atol=0.1)
    else:  # no row of the heavy class is ever unseen
        assert model.estimators_.sharpness == 1
        np.testing.assert_allclose(
            model.estimators_.class_shares, model.estimators_.tree_votes(0)[0], atol=1e-6
        )


def test_one_class_has_nothing_to_calibrate():
    found = calibration_of(np.ones((3, 1)), np.zeros(3, dtype=np.int32))
    assert (found.sharpness, found.noise_rate, found.class_shares.tolist()) == (1.0, 0.0, [1.0])


# Many rows


@pytest.mark.parametrize(
    ("n_rows", "step"), [(1, 1), (2 * ENOUGH - 1, 1), (2 * ENOUGH, 2), (4 * ENOUGH - 1, 2), (10**9, 8192)]
)
def test_many_rows_are_thinned_out(monkeypatch, n_rows, step):
    monkeypatch.setattr(TrainingRows, "n_rows", n_rows)
    steps = []
    monkeypatch.setattr(kfhe.calibration, "sampled", lambda *given: steps.append(given[-2]))
    monkeypatch.setattr(Exchange, "all", lambda self, function, values: values)
    calibrate(rows_of(np.zeros(3, np.int32), 1), None, None, None)
    assert steps == [step]


@pytest.mark.parametrize("step", [1, 2, 64, 8192])
def test_one_row_of_each_stretch_is_picked_the_same_in_each_part(step):
    n_rows = 3 * ROWS_OF_BLOCK + 100
    numbers = np.arange(n_rows, dtype=np.int32)

    def picked(first, last):
        part = numbers[first:last]
        found = sampled(part[:, None], part, part, np.ones_like(part), step, 7)
        return found[:, 0].tolist()

    whole = picked(0, n_rows)
    assert whole == picked(0, ROWS_OF_BLOCK) + picked(ROWS_OF_BLOCK, n_rows)
    assert [number // step for number in whole] == list(range(len(whole)))
    assert len(whole) == -(-n_rows // step) or step == 8192 or len(whole) == n_rows // step


def test_rows_in_a_regular_order_are_no_trouble():
    scores, labels, _ = timid(40_000, 2, 2.0, 0.0)
    rng = np.random.default_rng(1)
    labels[::2] = np.where(rng.uniform(size=20_000) < 0.4, 1 - labels[::2], labels[::2])  # a bad annotator
    found = calibrate(rows_of(labels, 2), scores, np.ones(40_000, np.int32), np.array([0.5, 0.5]))
    assert found.noise_rate == pytest.approx(0.2, abs=0.03)


def test_a_thinned_out_sample_says_what_all_rows_do():
    scores, labels, _ = timid(40_000, 3, 3.0, 0.2)
    rows, prior = rows_of(labels, 3), np.bincount(labels) / 40_000
    found = calibrate(rows, scores, np.ones(40_000, np.int32), prior)
    whole = calibration_of(scores, labels)
    assert found.sharpness == pytest.approx(whole.sharpness, rel=0.1)
    assert found.noise_rate == pytest.approx(whole.noise_rate, abs=0.04)  # 5,000 rows know no more
    np.testing.assert_allclose(found.class_shares, whole.class_shares, atol=0.02)


def test_powers_have_the_same_bits_whatever_the_processor():
    scores = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0]])
    assert [value.hex() for value in sharpened(scores, 2.375)[0]] == POWERS
    np.testing.assert_allclose(
        sharpened(scores, 2.375), scores**2.375 / (scores**2.375).sum(1, keepdims=True)
    )
