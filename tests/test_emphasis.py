"""Emphasis: how misses become measured weights."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from components import Log, Scripted, assert_equal_models, numbered, rows_of

from kfhe import KalmanFilter, KFHEClassifier
from kfhe.emphasis import ByMargin, exponential, linear, margin, resolve
from kfhe.filter_bank import READ_EVERY, WARM_UP
from kfhe.rows import TrainingRows


@pytest.fixture
def weights(rng):
    weights = rng.exponential(size=20)
    return weights / weights.sum()


@pytest.fixture
def missed(rng):
    return rng.uniform(size=20) < 0.3


def test_exponential_multiplies_a_missed_rows_weight_by_e(weights, missed):
    np.testing.assert_allclose(
        exponential(weights, missed, rows=rows_of(weights)), weights * np.exp(missed + 1 / 20), rtol=1e-14
    )


def test_linear_adds_a_missed_rows_weight_to_its_base_weight(weights, missed, rng):
    base = rng.dirichlet(np.ones(20))
    raised = base + weights * missed
    np.testing.assert_allclose(linear(weights, missed, rows=rows_of(base)), raised / raised.sum(), rtol=1e-14)


def test_linear_leaves_no_row_without_weight(weights):
    measured = linear(weights, np.zeros(20, dtype=bool), rows=rows_of(np.full(20, 1 / 20)))
    np.testing.assert_allclose(measured, 1 / 20)


def test_names_and_functions_are_the_same_thing(iris):
    X, y = iris
    rows = rows_of(np.full(len(y), 1 / len(y)))

    def fitted(emphasis):
        return KFHEClassifier(emphasis=emphasis, n_estimators=10, random_state=0).fit(X, y)

    by_name = {name: fitted(name) for name in ("exponential", "linear")}
    assert_equal_models(by_name["exponential"], fitted(partial(exponential, rows=rows)), X)
    assert_equal_models(by_name["linear"], fitted(partial(linear, rows=rows)), X)
    assert not np.array_equal(by_name["linear"].trace_["gain"], by_name["exponential"].trace_["gain"])


def test_the_weight_filter_moves_towards_the_measured_weights(rng):
    """Each iteration's weights follow from the one before by the filter's equations."""
    n = 25
    y = rng.integers(2, size=n)
    votes = np.where(rng.uniform(size=(40, n)) < 0.25, 1 - y, y)
    votes[:, :3] = 1 - y[:3]  # never right, so that training goes on
    seen = []

    def doubled(weights, missed):
        seen.append((weights, missed))
        return weights * (1 + missed)

    estimator = Scripted(lambda t, rows: votes[t, rows], None, Log())
    model = KFHEClassifier(estimator, emphasis=doubled, n_estimators=20, random_state=0).fit(numbered(n), y)
    assert len(seen) == 20
    assert model.trace_["resets"].sum() == 0
    weights, variance = np.full(n, 1 / n), 1.0
    for (found, missed), error in zip(seen, model.trace_["measurement_error"], strict=True):
        np.testing.assert_allclose(found, weights, rtol=0, atol=1e-12)
        assert missed.mean() == pytest.approx(error)
        gain = variance / (variance + error)
        weights = weights + gain * (weights * (1 + missed) - weights)
        weights /= weights.sum()
        variance -= gain * variance


def test_a_function_gets_copies(iris):
    """What a function does to its arguments has no influence."""
    X, y = iris

    def spoiling(weights, missed):
        measured = exponential(weights, missed, rows=rows_of(weights))
        weights[:] = np.nan
        missed[:] = True
        return measured

    models = [
        KFHEClassifier(emphasis=emphasis, n_estimators=5, random_state=0).fit(X, y)
        for emphasis in (spoiling, "exponential")
    ]
    assert_equal_models(*models, X)


def test_a_function_may_return_a_list_or_a_view(iris):
    X, y = iris

    def fitted(emphasis):
        return KFHEClassifier(emphasis=emphasis, n_estimators=3, random_state=0).fit(X, y)

    by_name = partial(exponential, rows=rows_of(np.ones(len(y))))
    expected = fitted(by_name)
    assert_equal_models(fitted(lambda weights, missed: by_name(weights, missed).tolist()), expected, X)
    assert_equal_models(
        fitted(lambda weights, missed: np.repeat(by_name(weights, missed), 2)[::2]), expected, X
    )


def test_the_linear_rule_of_the_papers_text_works_until_nothing_is_missed():
    """f(x) = x gives weight 0 to every row that is right; it has no answer once all of them are."""
    n = 30
    y = np.repeat([0, 1, 2], 10)

    def votes(t, rows):  # one miss less in each iteration, none in the eighth
        return np.where(rows < 8 - t, (y[rows] + 1) % 3, y[rows])

    calls = []

    def text(weights, missed):
        calls.append(missed.sum())
        return weights * missed

    estimator = Scripted(votes, lambda t, rows: np.full((len(rows), 3), 1 / 3), Log())
    model = KFHEClassifier(estimator, emphasis=text, n_estimators=100, random_state=0).fit(numbered(n), y)
    assert model.n_iter_ == 8
    assert model.trace_["measurement_error"][-1] == 0
    assert model.trace_["posterior_variance"][-1] == 0
    assert min(calls) > 0
    assert len(calls) == 7
    assert model.score(numbered(n), y) == 1


def test_the_linear_rule_of_the_papers_text_trains_on_real_data(iris):
    X, y = iris
    model = KFHEClassifier(emphasis=lambda w, missed: w * missed, n_estimators=60, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert (model.trace_["effective_sample_size"] > 0).all()


def test_all_measured_weights_may_be_zero_as_long_as_some_weight_is_left(iris):
    X, y = iris
    model = KFHEClassifier(emphasis=lambda w, missed: 0 * w, n_estimators=3, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.trace_["effective_sample_size"], len(y))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda w: w * np.nan, "emphasis returned NaN, infinite or negative weights, expected at least 0"),
        (
            lambda w: np.where(np.arange(len(w)) == 3, np.inf, w),
            "emphasis returned NaN, infinite or negative",
        ),
        (lambda w: -w, "emphasis returned NaN, infinite or negative weights, expected at least 0"),
        (lambda w: np.full(len(w), 1e308), "and a finite sum"),
        (lambda w: w[:-1], r"emphasis returned shape \(149,\), expected \(150,\): one weight per row"),
        (lambda w: w.reshape(-1, 1), r"emphasis returned shape \(150, 1\), expected \(150,\)"),
        (lambda w: 1.0, r"emphasis returned shape \(\), expected \(150,\)"),
        (lambda w: None, r"emphasis returned shape \(\), expected \(150,\)"),
        (lambda w: "heavy", "emphasis returned a str, expected an array with one weight per row"),
        (lambda w: [{}] * len(w), "emphasis returned a list, expected an array with one weight per row"),
    ],
)
def test_weights_that_make_no_sense_are_refused(iris, returned, message):
    model = KFHEClassifier(emphasis=lambda weights, missed: returned(weights))
    with pytest.raises(ValueError, match=message):
        model.fit(*iris)
    assert not hasattr(model, "classes_")


def test_a_function_that_fails_raises_its_own_error(iris):
    def failing(weights, missed):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        KFHEClassifier(emphasis=failing).fit(*iris)


def test_resolve_knows_the_names(weights, missed):
    rows = rows_of(np.full(20, 1 / 20))
    model = KalmanFilter(np.full((20, 2), 0.5), 1.0)
    for name, expected in (
        ("exponential", exponential(weights, missed, rows=rows)),
        ("linear", linear(weights, missed, rows=rows)),
        ("margin", margin(weights, missed, rows=rows, model=model)),
    ):
        np.testing.assert_array_equal(resolve(name, rows, model)(weights, missed), expected)


def test_margin_weighs_rows_by_how_narrowly_they_are_right():
    labels = np.array([0, 0, 0, 2], dtype=np.int32)
    base = np.array([0.1, 0.2, 0.3, 0.4])
    rows = TrainingRows(None, labels, np.arange(3), base, seed=0, n_threads=1)
    model = KalmanFilter([[1.0, 0.0, 0.0], [0.4, 0.4, 0.2], [0.0, 0.7, 0.3], [0.6, 0.4, 0.0]], 1.0)
    expected = base * ((1 - np.array([1.0, 0.0, -0.7, -0.6])) / 2 + 0.001)
    measured = margin(None, None, rows=rows, model=model)
    np.testing.assert_allclose(measured, expected / expected.sum())


def test_margin_follows_the_state_of_the_run(iris):
    X, y = iris
    model = KFHEClassifier(emphasis="margin", n_estimators=1, warm_start=True, random_state=0).fit(X, y)
    state, weights = model._run.model.state, model._run.weights
    rows = model._run.rows
    gain = 1 / (1 + model.trace_["measurement_error"][0])
    expected = rows.base + gain * (margin(None, None, rows=rows, model=model._run.model) - rows.base)
    np.testing.assert_allclose(weights.state, expected / expected.sum())
    hard = state[np.arange(len(y)), y] < 0.5
    assert hard.any()
    assert weights.state[hard].min() > weights.state[~hard].min()


# The robust classifier's


@pytest.fixture
def clean_bank():
    """What a bank knows after its first trees, where labels look clean."""
    state = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.6, 0.3, 0.1], [0.0, 0.2, 0.8]])
    return SimpleNamespace(n_components=WARM_UP, clean=True, state=state)


@pytest.fixture
def four_rows():
    base = np.array([0.1, 0.2, 0.3, 0.4])
    return TrainingRows(None, np.array([0, 0, 1, 2], dtype=np.int32), np.arange(3), base, seed=0, n_threads=1)


def test_by_margin_a_row_weighs_more_the_nearer_it_is_to_being_missed(clean_bank, four_rows):
    state = clean_bank.state.copy()
    measured = ByMargin(four_rows, clean_bank)(np.full(4, 0.25), np.zeros(4, dtype=bool))
    lead = np.array([1.0, 0.0, -0.3, 0.6])  # of a row's label before the next class
    np.testing.assert_allclose(measured, four_rows.base * ((1 - lead) / 2 + 0.001), rtol=1e-12)
    np.testing.assert_array_equal(clean_bank.state, state)


def test_by_margin_all_rows_weigh_the_same_again_once_there_is_noise(clean_bank, four_rows):
    clean_bank.clean = False
    measured = ByMargin(four_rows, clean_bank)(np.full(4, 0.25), np.zeros(4, dtype=bool))
    np.testing.assert_array_equal(measured, four_rows.base)


@pytest.mark.parametrize("n_components", [READ_EVERY, WARM_UP - 1, WARM_UP + 1, WARM_UP + READ_EVERY - 1])
def test_by_margin_weights_stay_until_the_pilot_is_over_and_between_readings(
    clean_bank, four_rows, n_components
):
    clean_bank.n_components = n_components
    weights = np.full(4, 0.25)
    assert ByMargin(four_rows, clean_bank)(weights, np.zeros(4, dtype=bool)) is weights
