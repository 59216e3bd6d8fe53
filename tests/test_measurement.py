"""Measurements: a new one is a piece beside the others, and the loop takes it as it is."""

import numpy as np
import pytest

from kfhe import CARTClassifier, KFHEClassifier, StateSpace
from kfhe.measurement import FUSION, OnTrainingRows, OnUnseenRows
from kfhe.rows import TrainingRows


class OutOfBag(OnTrainingRows):
    """Judges a component by the rows that were not in its sample, and notes the samples."""

    def take(self, state, votes, counts):
        reading = super().take(state, votes, counts)
        self.samples = [*getattr(self, "samples", []), counts.copy()]
        weights = self.rows.base * (counts == 0)
        return reading._replace(error=weights @ reading.missed / weights.sum())


class OutOfBagKFHE(KFHEClassifier):
    def make_measurement(self, rows):
        self.judge = OutOfBag(rows)
        return self.judge


class QuarterKFHE(KFHEClassifier):
    def make_measurement(self, rows):
        return OnTrainingRows(rows, fusion=0.25)


def test_a_measurement_sees_which_rows_were_drawn(iris):
    X, y = iris
    model = OutOfBagKFHE(n_estimators=6, random_state=0).fit(X, y)
    samples = np.array(model.judge.samples)
    assert samples.shape == (6, len(y))
    assert (samples.sum(axis=1) == len(y)).all()
    assert 0.2 < (samples == 0).mean() < 0.6
    assert model.n_iter_ == 6
    assert model.score(X, y) > 0.8


def test_its_error_is_the_noise_of_the_filter(iris):
    model = OutOfBagKFHE(n_estimators=6, random_state=0).fit(*iris)
    priors = model.trace_["prior_variance"]
    np.testing.assert_allclose(
        model.trace_["gain"], priors / (priors + model.trace_["measurement_error"]), rtol=1e-12
    )


def test_errors_of_the_state_are_those_of_the_model(iris):
    X, y = iris
    model = OutOfBagKFHE(n_estimators=6, random_state=0).fit(X, y)
    assert model.trace_["training_error"][-1] == pytest.approx(1 - model.score(X, y))


def test_a_step_is_the_gain_times_the_fusion(iris):
    X, y = iris
    for kind, fusion in ((KFHEClassifier, FUSION), (QuarterKFHE, 0.25)):
        model = kind(n_estimators=5, voting="soft", random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.trace_["step"], fusion * model.trace_["gain"])
        scores = model.estimators_[0].predict_proba(X)
        for step, tree in zip(model.trace_["step"], model.estimators_[1:], strict=True):
            scores = scores + step * (tree.predict_proba(X) - scores)
        np.testing.assert_allclose(model.predict_proba(X), scores, atol=1e-12)
        errors = (scores.argmax(axis=1) != y).mean()
        assert model.trace_["training_error"][-1] == pytest.approx(errors)


class Watched(OnUnseenRows):
    """Notes what it is asked, and what it answers."""

    def take(self, state, votes, counts):
        reading = super().take(state, votes, counts)
        self.seen = [*getattr(self, "seen", []), (votes.copy(), counts.copy(), reading)]
        return reading


class WatchedKFHE(KFHEClassifier):
    def make_measurement(self, rows):
        self.judge = Watched(rows)
        return self.judge


def test_out_of_bag_each_row_is_filtered_by_the_components_that_have_not_seen_it(iris):
    X, y = iris
    model = WatchedKFHE(
        state_space=StateSpace(measurement="out-of-bag"), n_estimators=12, random_state=0
    ).fit(X, y)
    states, variances = np.tile(np.bincount(y) / len(y), (len(y), 1)), np.ones(len(y))
    for (voted, counts, reading), error in zip(model.judge.seen, model.trace_["training_error"], strict=True):
        for i in np.flatnonzero(counts == 0):
            measured = (states[i] + np.eye(3)[voted[i]]) / 2
            gain = variances[i] / (variances[i] + reading.error)
            states[i] += gain * (measured - states[i])
            variances[i] -= gain * variances[i]
        assert error == pytest.approx((states.argmax(axis=1) != y).mean())


def test_out_of_bag_errors_are_those_of_unseen_rows_and_never_zero(iris):
    X, y = iris
    model = WatchedKFHE(
        state_space=StateSpace(measurement="out-of-bag"), n_estimators=12, random_state=0
    ).fit(X, y)
    for voted, counts, reading in model.judge.seen:
        unseen = counts == 0
        missed = reading.state.state.argmax(axis=1) != y
        np.testing.assert_array_equal(reading.missed, missed)
        assert reading.error == pytest.approx((missed[unseen].sum() + 1) / (unseen.sum() + 2))
        alone = (voted != y)[unseen].sum()
        assert reading.component_error == pytest.approx((alone + 1) / (unseen.sum() + 2))
    separable = KFHEClassifier(state_space=StateSpace(measurement="out-of-bag"), n_estimators=5).fit(
        [[0.0], [1.0]] * 20, [0, 1] * 20
    )
    assert separable.n_iter_ == 5


def test_out_of_bag_errors_are_shares_of_weight_and_a_guess_is_one_by_the_votes_alone():
    """The heavy row is missed by the votes; the state, which is sure of it, is not moved far enough."""
    labels, base = np.array([0, 1, 1, 0], dtype=np.int32), np.array([0.4, 0.2, 0.2, 0.2])
    rows = TrainingRows(None, labels, np.array(["a", "b"]), base, seed=0, n_threads=1)
    sure = np.eye(2)[labels] * 0.98 + 0.01
    voted, counts = np.array([1, 1, 1, 0], dtype=np.int32), np.array([0, 0, 0, 1], dtype=np.int32)
    reading = OnUnseenRows(rows).take(sure, voted, counts)
    assert reading.component_error == pytest.approx((0.4 / 0.8 * 3 + 1) / (3 + 2))
    assert reading.guessed  # by its own votes it errs in half of the weight
    assert reading.error == pytest.approx((0.4 / 0.8 * 3 + 1) / (3 + 2))
    surer = sure.copy()
    surer[0] = [1.02, -0.02]  # beyond what a vote can turn
    reading = OnUnseenRows(rows).take(surer, voted, counts)
    assert reading.guessed
    assert reading.error == pytest.approx(1 / (3 + 2))


def test_rows_that_are_all_in_the_sample_measure_nothing():
    labels, base = np.array([0, 1], dtype=np.int32), np.array([0.5, 0.5])
    rows = TrainingRows(None, labels, np.array(["a", "b"]), base, seed=0, n_threads=1)
    state = np.array([[0.9, 0.1], [0.8, 0.2]])
    reading = OnUnseenRows(rows).take(state, labels, counts=np.array([1, 1], dtype=np.int32))
    assert reading.error == 0.5
    np.testing.assert_array_equal(reading.state.state, state)
    assert not reading.state.measured.any()


def test_labels_without_sense_look_learnt_in_training_and_not_out_of_the_bag():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.integers(2, size=300)
    settings = {"estimator": CARTClassifier(min_samples_leaf=1, min_samples_split=2)}
    settings |= {"n_estimators": 40, "random_state": 0}
    by_rows, honest = (
        KFHEClassifier(state_space=StateSpace(measurement=measurement), **settings)
        .fit(X, y)
        .trace_["training_error"][-1]
        for measurement in ("training", "out-of-bag")
    )
    assert by_rows < 0.01
    assert 0.4 < honest < 0.6


def test_the_papers_measurement_lies_half_way():
    assert FUSION == 0.5
