"""The authors' own training runs, replayed through the public classifier."""

import json
from pathlib import Path

import numpy as np
import pytest
from components import rows_of
from sklearn.base import BaseEstimator, ClassifierMixin

from kfhe import KFHEClassifier
from kfhe.emphasis import exponential, linear

TRACES = sorted((Path(__file__).parent / "golden").glob("*.json"))


class Replay(ClassifierMixin, BaseEstimator):
    """Votes what a trace says; where the trace has a reset, the first attempt is wrong everywhere."""

    def __init__(self, trace=None):
        self.trace = trace

    def __sklearn_clone__(self):
        return self  # one object stands for all components, so that it can count them

    def fit(self, X, y):
        self.classes_ = np.arange(self.trace["classes"])
        self.n_fits_ = getattr(self, "n_fits_", -1) + 1
        if self.n_fits_ == 0:
            self.votes_ = []
            labels = np.array(self.trace["labels"])
            for votes, reset in zip(self.trace["component_classes"], self.trace["resets"], strict=True):
                if reset:
                    self.votes_.append((labels + 1) % self.trace["classes"])
                self.votes_.append(np.array(votes))
        return self

    def predict_proba(self, X):
        return np.array(self.trace["initial_scores"])

    def predict(self, X):
        return self.votes_[self.n_fits_ - 1]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_training_follows_the_authors_program(path):
    trace = json.loads(path.read_text())
    labels = np.array(trace["labels"])
    n = len(labels)
    recorded = []

    def spy(weights, missed):
        recorded.append(weights)
        if trace["emphasis"] == "linear":
            return linear(weights, missed, rows=rows_of(np.full(n, 1 / n)))
        return exponential(weights, missed, rows=rows_of(weights))

    by_name = KFHEClassifier(Replay(trace), emphasis=trace["emphasis"], n_estimators=trace["n_iter"])
    spied = KFHEClassifier(Replay(trace), emphasis=spy, n_estimators=trace["n_iter"])
    by_name.fit(np.zeros((n, 1)), labels)
    spied.fit(np.zeros((n, 1)), labels)
    np.testing.assert_array_equal(by_name.trace_["gain"], spied.trace_["gain"])

    # The authors' program trains one more component, with gain 0, after it has become certain.
    n_iter = trace["n_iter"] - (trace["K"][-1] == 0)
    assert by_name.n_iter_ == n_iter
    close = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(by_name.trace_["measurement_error"], trace["R"][:n_iter], **close)
    np.testing.assert_allclose(by_name.trace_["prior_variance"], trace["P_prior"][:n_iter], **close)
    np.testing.assert_allclose(by_name.trace_["gain"], trace["K"][:n_iter], **close)
    np.testing.assert_array_equal(by_name.trace_["resets"], trace["resets"][:n_iter])
    scores = replayed_scores(trace, by_name.component_weights_)
    np.testing.assert_allclose(scores, trace["final_scores"], **close)
    for t in range(1, len(recorded)):
        expected = np.full(n, 1 / n) if trace["resets"][t] else trace["weights_after"][t - 1]
        np.testing.assert_allclose(recorded[t], expected, **close)
    assert len(recorded) >= n_iter - 1


def replayed_scores(trace, component_weights):
    votes = np.array(trace["component_classes"][: len(component_weights) - 1])
    one_hot = np.eye(trace["classes"])[votes]
    return component_weights[0] * np.array(trace["initial_scores"]) + np.tensordot(
        component_weights[1:], one_hot, 1
    )


def test_traces_hold_an_early_stop_and_resets():
    traces = [json.loads(path.read_text()) for path in TRACES]
    assert {trace["emphasis"] for trace in traces} == {"exponential", "linear"}
    assert any(trace["K"][-1] == 0 for trace in traces)
    assert any(sum(trace["resets"]) == 10 for trace in traces)
