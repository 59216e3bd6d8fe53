"""Metrics agree with scikit-learn's where it has them, and with what they say where it has not."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, brier_score_loss, log_loss, roc_auc_score

from kfhe.metrics import METRICS, CalibrationBins, calibration_error, class_metrics, metrics_of


@pytest.fixture
def rows(rng):
    true = np.arange(90) % 3
    scores = rng.dirichlet([1, 1, 1], size=90)
    scores[np.arange(90), true] += 0.3
    return true, scores / scores.sum(axis=1, keepdims=True)


def test_every_metric_is_there_and_as_scikit_learn_has_it(rows):
    true, shares = rows
    found = metrics_of(true, shares.argmax(axis=1), shares, 3)
    assert list(found) == list(METRICS)
    assert found["roc_auc"] == pytest.approx(roc_auc_score(true, shares, multi_class="ovr"))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(true, shares.argmax(axis=1)))
    assert found["log_loss"] == pytest.approx(log_loss(true, shares))
    one_by_one = sum(brier_score_loss(true == code, shares[:, code]) for code in range(3))
    assert found["brier"] == pytest.approx(one_by_one)


def test_of_two_classes_auroc_is_the_usual_one(rows):
    true, shares = rows[0] == 0, rows[1][:, 0]
    both = np.column_stack([1 - shares, shares])
    found = metrics_of(true.astype(int), true.astype(int), both, 2)["roc_auc"]
    assert found == pytest.approx(roc_auc_score(true, shares))


def test_scores_need_not_sum_to_1(rows):
    true, shares = rows
    predicted = shares.argmax(axis=1)
    once, thrice = metrics_of(true, predicted, shares, 3), metrics_of(true, predicted, 3 * shares, 3)
    assert once == pytest.approx(thrice)


def test_a_class_without_rows_is_no_trouble(rows):
    true, shares = rows
    few = true < 2
    found = metrics_of(true[few], shares[few].argmax(axis=1), shares[few], 3)
    each = [roc_auc_score(true[few] == code, shares[few, code]) for code in (0, 1)]
    assert found["roc_auc"] == pytest.approx(np.mean(each))
    alone = metrics_of(true[true == 0], true[true == 0], shares[true == 0], 3)
    assert set(METRICS) - set(alone) == {"roc_auc"}


def test_calibration_error_is_the_gap_between_said_and_found_in_each_bin():
    # Sure of 4 rows and right on 3; guesses on 2 and right on both
    shares = np.array([[0.95, 0.05]] * 4 + [[0.55, 0.45]] * 2)
    true = np.array([0, 0, 0, 1, 0, 0])
    assert calibration_error(true, shares) == pytest.approx((4 * 0.2 + 2 * 0.45) / 6)
    # Too sure and too unsure in one bin make up for each other, in two bins they don't
    assert calibration_error(np.array([0, 1]), np.array([[0.5, 0.5], [0.5, 0.5]])) == 0
    assert calibration_error(np.array([0, 0]), np.array([[1.0, 0.0], [1.0, 0.0]])) == 0


def test_the_bins_of_calibration_have_all_rows(rows):
    true, shares = rows
    bins = CalibrationBins.of(true, shares, 10)
    assert bins.n_rows.sum() == len(true)
    assert bins.said.sum() == pytest.approx(shares.max(axis=1).sum())
    assert bins.right.sum() == np.sum(shares.argmax(axis=1) == true)
    assert CalibrationBins.of(true, shares).error == calibration_error(true, shares)
    certain = CalibrationBins.of(np.array([0]), np.array([[1.0, 0.0]]), 10)
    assert certain.n_rows.tolist() == [0] * 9 + [1]


def test_balanced_accuracy_is_of_the_classes_that_have_rows():
    found = metrics_of(np.array([0, 0, 1]), np.array([0, 2, 1]), None, 4)
    assert found["balanced_accuracy"] == pytest.approx((0.5 + 1) / 2)


def test_what_nothing_can_be_said_of_is_none():
    seen, unseen = class_metrics(np.array([[0, 2], [0, 0]]))
    assert seen == (2, None, 0.0, 0.0)
    assert unseen == (0, 0.0, None, 0.0)
