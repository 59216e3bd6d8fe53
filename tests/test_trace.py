"""The trace says what happened in each iteration."""

import sys
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from components import iteration
from sklearn.tree import DecisionTreeClassifier

from kfhe import KFHEClassifier
from kfhe.trace import Trace

COLUMNS = [
    "measurement_error",
    "prior_variance",
    "posterior_variance",
    "gain",
    "step",
    "transition",
    "shrinkage",
    "component_error",
    "training_error",
    "effective_sample_size",
    "resets",
    "seconds",
]


@pytest.fixture(scope="module")
def watched(request):
    """A fitted model, its data and the weights and misses of each iteration."""
    X, y = request.getfixturevalue("iris")
    seen = []

    def spy(weights, missed):
        seen.append((weights, missed))
        return weights * np.exp(missed)

    sample_weight = np.arange(len(y)) % 3 + 1.0
    model = KFHEClassifier(
        DecisionTreeClassifier(max_depth=2), emphasis=spy, n_estimators=12, random_state=0
    ).fit(X, y, sample_weight=sample_weight)
    return model, X, y, sample_weight / sample_weight.sum(), seen


def test_the_gain_and_the_variances_are_the_model_filters(watched):
    trace = watched[0].trace_
    prior, posterior, error = trace["prior_variance"], trace["posterior_variance"], trace["measurement_error"]
    np.testing.assert_allclose(trace["gain"], prior / (prior + error), rtol=1e-14)
    np.testing.assert_allclose(posterior, prior - trace["gain"] * prior, rtol=1e-14)
    np.testing.assert_array_equal(prior[1:], posterior[:-1])
    assert prior[0] == 1
    np.testing.assert_array_equal(np.append(1, posterior[:-1]), prior)


def test_errors_are_shares_of_the_weighted_training_rows(watched):
    model, X, y, base, seen = watched
    stages = list(model.staged_predict(X))
    for t, (_, missed) in enumerate(seen):
        assert model.trace_["measurement_error"][t] == pytest.approx(base @ missed, abs=1e-12)
        component = model.estimators_[t + 1].predict(X)
        assert model.trace_["component_error"][t] == pytest.approx(base @ (component != y), abs=1e-12)
        assert model.trace_["training_error"][t] == pytest.approx(base @ (stages[t + 1] != y), abs=1e-12)


def test_the_effective_sample_size_is_that_of_the_sampling_weights(watched):
    model, _, _, _, seen = watched
    expected = [1 / np.sum(weights**2) for weights, _ in seen]
    np.testing.assert_allclose(model.trace_["effective_sample_size"], expected, rtol=1e-12)


def test_with_equal_weights_every_row_counts_at_first(iris):
    X, y = iris
    model = KFHEClassifier(n_estimators=2, random_state=0).fit(X, y)
    assert model.trace_["effective_sample_size"][0] == pytest.approx(len(y))
    assert model.trace_["effective_sample_size"][1] < len(y)


def test_times_are_measured(iris):
    started = perf_counter()
    seconds = KFHEClassifier(n_estimators=5, random_state=0).fit(*iris).trace_["seconds"]
    assert (seconds > 0).all()
    assert seconds.sum() < perf_counter() - started


def test_to_frame_gives_a_row_per_iteration(watched):
    trace = watched[0].trace_
    frame = trace.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame.columns.tolist() == trace.columns == COLUMNS
    assert frame.index.tolist() == list(range(1, 13))
    assert frame.index.name == "iteration"
    for name in COLUMNS:
        np.testing.assert_array_equal(frame[name], trace[name])


def test_to_frame_without_pandas_says_what_to_install(watched, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"Trace.to_frame\(\) needs pandas: pip install pandas"):
        watched[0].trace_.to_frame()


def test_no_iterations_are_an_empty_trace():
    model = KFHEClassifier().fit([[1], [2]], [0, 0])
    assert len(model.trace_) == 0
    assert model.trace_.to_frame().shape == (0, len(COLUMNS))


def test_an_unknown_column_is_an_error_that_names_the_columns(watched):
    with pytest.raises(KeyError, match="no column 'gian' in the trace; there are measurement_error, "):
        watched[0].trace_["gian"]


def test_columns_are_copies(watched):
    trace = watched[0].trace_
    trace["gain"][:] = 7
    assert (trace["gain"] <= 1).all()


def test_cut_keeps_the_first_iterations():
    trace = Trace()
    for gain in (0.1, 0.2, 0.3):
        trace.append(iteration(gain))
    trace.cut(2)
    assert [trace[name].tolist() for name in COLUMNS] == [[0.1, 0.2]] * len(COLUMNS)


def test_traces_are_equal_if_all_their_values_are():
    assert Trace({"gain": [0.1, 0.2]}) == Trace({"gain": [0.1, 0.2]})
    assert Trace({"gain": [0.1, 0.2]}) != Trace({"gain": [0.1, 0.3]})
    assert Trace({"gain": [0.1, 0.2]}) != Trace({"gain": [0.1]})
    assert Trace({"gain": [0.1]}) != {"gain": [0.1]}
