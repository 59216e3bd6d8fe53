"""The Kalman filter does what the theory of static estimation says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfhe import KalmanFilter
from kfhe.kalman import RowFilter, SomeRows, component_weights, stages, take_step


def test_an_uninformed_filter_ends_at_the_inverse_variance_weighted_mean():
    rng = np.random.default_rng(0)
    noises = rng.uniform(0.1, 4.0, size=50)
    readings = 1.5 + rng.normal(scale=np.sqrt(noises))
    # Prior and measurements are combined alike, so the prior is one more reading.
    voltage = KalmanFilter(9.0, 2.0)
    for reading, noise in zip(readings, noises, strict=True):
        voltage.predict()
        voltage.update(reading, noise)
    expected = np.average(np.append(9.0, readings), weights=1 / np.append(2.0, noises))
    assert float(voltage.state) == pytest.approx(expected, abs=1e-12)
    assert voltage.variance == pytest.approx(1 / (1 / 2.0 + (1 / noises).sum()), rel=1e-12)


def test_the_battery_error_falls_as_theory_says():
    """Over many batteries, the mean squared error after t readings is the filter's own variance."""
    rng = np.random.default_rng(1)
    n_batteries, noise = 20_000, 0.25
    truth = rng.normal(size=n_batteries)
    voltage = KalmanFilter(np.zeros(n_batteries), 1.0)
    for _ in range(20):
        voltage.update(truth + rng.normal(scale=np.sqrt(noise), size=n_batteries), noise)
        assert np.mean((voltage.state - truth) ** 2) == pytest.approx(voltage.variance, rel=0.05)
    assert voltage.variance == pytest.approx(1 / (1 + 20 / noise))


def test_gain_is_one_for_an_exact_measurement_and_zero_afterwards():
    state = KalmanFilter([0.0, 0.0], 1.0)
    assert state.update([1.0, 2.0], 0.0) == 1.0
    assert state.variance == 0.0
    assert state.update([5.0, 5.0], 0.0) == 0.0
    np.testing.assert_array_equal(state.state, [1.0, 2.0])


@pytest.mark.parametrize("variance", [0.0, 5e-324])
def test_gain_has_no_minus_sign_even_where_variance_and_noise_vanish(variance):
    gain = KalmanFilter(0.0, variance).update(1.0, 0.0)
    assert not np.signbit(gain)


def test_time_update_moves_the_state_and_adds_process_noise():
    state = KalmanFilter([1.0, -2.0], 3.0, transition=0.5, process_noise=0.1)
    state.predict()
    np.testing.assert_array_equal(state.state, [0.5, -1.0])
    assert state.variance == pytest.approx(0.85)


@given(
    shape=st.sampled_from([(), (1,), (7,), (3, 4), (2, 1, 3)]),
    variance=st.floats(0, 1e6),
    noises=st.lists(st.floats(0, 1e6), max_size=5),
    seed=st.integers(0, 1000),
)
def test_update_follows_the_equations_for_a_state_of_any_shape(shape, variance, noises, seed):
    rng = np.random.default_rng(seed)
    estimate = rng.normal(size=shape)
    state, p = KalmanFilter(estimate, variance), variance
    for noise in noises:
        z = rng.normal(size=shape)
        k = p / (p + noise + np.finfo(float).tiny)
        estimate, p = estimate + k * (z - estimate), p - k * p
        assert state.update(z, noise) == k
    np.testing.assert_array_equal(state.state, estimate)
    assert state.variance == p


def test_process_noise_may_follow_a_schedule():
    for schedule in ([0.5, 0.25], np.array([0.5, 0.25]), lambda time: {1: 0.5}.get(time, 0.25)):
        state, variances = KalmanFilter(0.0, 1.0, process_noise=schedule), []
        for _ in range(3):
            state.predict()
            variances.append(state.variance)
        assert variances == [1.5, 1.75, 2.0]


def test_a_transition_leads_back_to_the_prior():
    state = KalmanFilter([[1.0, 0.0], [0.5, 0.5]], 1.0, transition=0.75, prior=[0.2, 0.8])
    state.predict()
    np.testing.assert_allclose(state.state, [[0.8, 0.2], [0.425, 0.575]])
    for _ in range(200):
        state.predict()
    np.testing.assert_allclose(state.state, [[0.2, 0.8]] * 2)
    assert state.variance == pytest.approx(0)


def test_rows_that_are_not_measured_each_time_are_filtered_each_by_itself():
    rng = np.random.default_rng(0)
    dynamics = {"process_noise": [0.3, 0.1], "transition": 0.8, "prior": 0.25}
    rows, to_come = RowFilter(np.full((5, 2), 0.25), 1.0, **dynamics), KalmanFilter(0.25, 1.0, **dynamics)
    alone = [KalmanFilter(np.full(2, 0.25), 1.0, **dynamics) for _ in range(5)]
    for _ in range(6):
        values, measured, noise = rng.random((5, 2)), rng.random(5) < 0.5, rng.random()
        for each in (rows, to_come, *alone):
            each.predict()
        gain = rows.update(SomeRows(values, measured), noise)
        assert gain == pytest.approx(to_come.update(0.0, noise))
        for i in np.flatnonzero(measured):
            alone[i].update(values[i], noise)
        np.testing.assert_allclose(rows.state, [each.state for each in alone])
        np.testing.assert_allclose(rows.variances, [each.variance for each in alone])
        assert rows.variance == pytest.approx(to_come.variance)


shares = st.floats(0, 1)


@given(st.lists(st.tuples(shares, shares | st.just(1.0)), max_size=30), st.integers(0, 1000))
def test_steps_weights_and_stages_tell_the_same_story(moves, seed):
    steps, transitions = np.array(moves).reshape(-1, 2).T
    votes = np.random.default_rng(seed).dirichlet(np.ones(3), size=(len(steps) + 1, 4))
    state, total = votes[0].copy(), np.zeros((4, 3))
    added_up = stages(steps, transitions)
    for t, (scale, weight, back, share) in enumerate(zip(*added_up, strict=True)):
        if t:
            take_step(state, votes[t], steps[t - 1], transition=transitions[t - 1], prior=votes[0])
        total = scale * total + weight * votes[t] + back * votes[0]
        np.testing.assert_allclose(total / share, state, atol=1e-12)
    weights = component_weights(steps, transitions)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.tensordot(weights, votes, 1), state, atol=1e-12)


def test_stages_are_kept_apart_where_hardly_anything_of_the_first_is_left():
    votes = np.random.default_rng(0).dirichlet(np.ones(2), size=3001)
    state, total = votes[0], np.zeros(2)
    for t, (scale, weight, _, share) in enumerate(zip(*stages(np.full(3000, 0.6)), strict=True)):
        state = state + 0.6 * (votes[t] - state) if t else state
        total = scale * total + weight * votes[t]
        np.testing.assert_allclose(total / share, state, rtol=1e-12)


def test_a_vote_for_a_class_is_a_score_of_one():
    votes = np.array([2, 0], dtype=np.int32)
    by_class, by_score = np.full((2, 3), 1 / 3), np.full((2, 3), 1 / 3)
    take_step(by_class, votes, 0.25)
    take_step(by_score, np.eye(3)[votes], 0.25)
    np.testing.assert_array_equal(by_class, by_score)
    assert by_class[0].tolist() == pytest.approx([0.25, 0.25, 0.5])


def test_the_callers_array_is_not_changed():
    mine = np.zeros(3)
    KalmanFilter(mine, 1.0).update(np.ones(3), 0.0)
    np.testing.assert_array_equal(mine, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: KalmanFilter(0.0, -1.0), "variance must be a finite number of at least 0, got -1.0"),
        (lambda: KalmanFilter(0.0, np.nan), "variance must be"),
        (lambda: KalmanFilter(0.0, np.inf), "variance must be a finite number"),
        (lambda: KalmanFilter(0.0, 1.0, process_noise=np.inf), "process_noise must be a finite number"),
        (lambda: KalmanFilter(0.0, 1.0).update(1.0, np.inf), "noise must be a finite number"),
        (lambda: KalmanFilter(0.0, 1.0, process_noise=-0.1), "process_noise must be"),
        (lambda: KalmanFilter(0.0, 1.0, process_noise=[0.1, -1]), "process_noise must be a finite number"),
        (lambda: KalmanFilter(0.0, 1.0, process_noise=[]), "process_noise must be a number, a sequence"),
        (
            lambda: KalmanFilter(0.0, 1.0, process_noise=lambda time: -time).predict(),
            r"process_noise\(1\) must be a finite number of at least 0, got -1",
        ),
        (lambda: KalmanFilter(0.0, 1.0).update(1.0, -1.0), "noise must be a finite number"),
        (
            lambda: KalmanFilter([0.0, 0.0], 1.0).update([1.0], 1.0),
            r"measurement has shape \(1,\), the state has \(2,\)",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
