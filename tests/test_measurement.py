"""Measurements: a new one is a piece beside the others, and the loop takes it as it is."""

import numpy as np
import pytest

from kfhe import KFHEClassifier
from kfhe.measurement import FUSION, OnTrainingRows


class OutOfBag(OnTrainingRows):
    """Judges a component by the rows that were not in its sample, and notes the samples."""

    def take(self, state, votes, counts):
        reading = super().take(state, votes, counts)
        self.samples = [*getattr(self, "samples", []), counts.copy()]
        weights = self.rows.base * (counts == 0)
        return reading._replace(error=weights @ reading.missed / weights.sum())


class OutOfBagKFHE(KFHEClassifier):
    def make_measurement(self, rows):
        self.measurement = OutOfBag(rows)
        return self.measurement


class QuarterKFHE(KFHEClassifier):
    def make_measurement(self, rows):
        return OnTrainingRows(rows, fusion=0.25)


def test_a_measurement_sees_which_rows_were_drawn(iris):
    X, y = iris
    model = OutOfBagKFHE(n_estimators=6, random_state=0).fit(X, y)
    samples = np.array(model.measurement.samples)
    assert samples.shape == (6, len(y))
    assert (samples.sum(axis=1) == len(y)).all()
    assert 0.2 < (samples == 0).mean() < 0.6
    assert model.n_iter_ == 6
    assert model.score(X, y) > 0.8


def test_its_error_is_the_noise_of_the_filter(iris):
    model = OutOfBagKFHE(n_estimators=6, random_state=0).fit(*iris)
    priors = model.variances_[:-1]
    np.testing.assert_allclose(model.gains_, priors / (priors + model.measurement_errors_), rtol=1e-12)


def test_errors_of_the_state_are_those_of_the_model(iris):
    X, y = iris
    model = OutOfBagKFHE(n_estimators=6, random_state=0).fit(X, y)
    assert model.trace_["training_error"][-1] == pytest.approx(1 - model.score(X, y))


def test_a_step_is_the_gain_times_the_fusion(iris):
    X, y = iris
    for kind, fusion in ((KFHEClassifier, FUSION), (QuarterKFHE, 0.25)):
        model = kind(n_estimators=5, voting="soft", random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.trace_["step"], fusion * model.gains_)
        scores = model.estimators_[0].predict_proba(X)
        for step, tree in zip(model.trace_["step"], model.estimators_[1:], strict=True):
            scores = scores + step * (tree.predict_proba(X) - scores)
        np.testing.assert_allclose(model.predict_proba(X), scores, atol=1e-12)
        errors = (scores.argmax(axis=1) != y).mean()
        assert model.trace_["training_error"][-1] == pytest.approx(errors)


def test_the_papers_measurement_lies_half_way():
    assert FUSION == 0.5
