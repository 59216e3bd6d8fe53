"""What is done row by row is done there as by the engine, bit by bit."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from host_device import HostDevice, some_device

from kfhe.cuda import filters
from kfhe.cuda.array import CudaArray
from kfhe.cuda.filters import CudaBank, CudaFilter, CudaMeasurer
from kfhe.cuda.samples import CudaDraws
from kfhe.engine import arrays
from kfhe.engine.arrays import Measurer
from kfhe.engine.bank import HonestBank
from kfhe.engine.draws import Draws
from kfhe.kalman import KalmanFilter

DEVICES = [some_device(3), some_device(2, backwards=True), some_device(2, n_threads=3)]
sizes = pytest.mark.parametrize("n", [1, 50, 1024, 8192, 8193, 30_000])
devices = pytest.mark.parametrize("device", DEVICES, ids=["forwards", "backwards", "threads"])


def simplex(rng, shape):
    values = rng.random(shape)
    return values / values.sum(axis=-1, keepdims=True)


@sizes
@devices
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_samples_are_those_of_the_engine(device, n, share):
    rng = np.random.default_rng(n)
    labels = rng.integers(3, size=n).astype(np.int32)
    weights = rng.exponential(size=n) * (rng.random(n) < 0.9) + 1e-300
    weights /= weights.sum()
    options = (labels, 3, len(np.unique(labels)), 2**63 + 5)
    n_draws = max(1, round(share * n))
    expected, found = Draws(*options, 1, n_draws), CudaDraws(device, *options, n_draws)
    for iteration, attempt in ((1, 0), (2, 1), (900, 2)):
        np.testing.assert_array_equal(
            found.draw(weights, iteration, attempt), expected.draw(weights, iteration, attempt)
        )
    again = pickle.loads(pickle.dumps(found)).draw(weights, 7, 0)
    np.testing.assert_array_equal(again, found.draw(weights, 7, 0))


def test_a_sample_without_a_class_is_drawn_again():
    labels = np.zeros(40, dtype=np.int32)
    labels[:2] = 1, 2
    weights = np.full(40, 1 / 40)
    for iteration in range(5):
        found = CudaDraws(DEVICES[0], labels, 3, 3, 0, 40).draw(weights, iteration, 0)
        np.testing.assert_array_equal(found, Draws(labels, 3, 3, 0, 1, 40).draw(weights, iteration, 0))
        assert np.unique(labels[np.asarray(found) > 0]).tolist() == [0, 1, 2]


def test_weights_that_do_not_sum_to_1_are_refused():
    labels = np.zeros(9000, dtype=np.int32)
    with pytest.raises(ValueError, match="weights to draw by must be at least 0 and sum to 1"):
        CudaDraws(DEVICES[0], labels, 1, 1, 0, 9000).draw(np.zeros(9000), 1, 0)


@sizes
@devices
def test_measurements_are_those_of_the_engine(device, n):
    rng = np.random.default_rng(n)
    labels, base = rng.integers(4, size=n).astype(np.int32), simplex(rng, n)
    expected, found = Measurer(labels, base, 4), CudaMeasurer(device, labels, base, 4)
    assert found.total == expected.total
    for votes in (rng.integers(4, size=n).astype(np.int32), simplex(rng, (n, 4)).round(1)):
        scores = simplex(rng, (n, 4)).round(1)
        assert found.measure(scores, votes, 0.3) == expected.measure(scores, votes, 0.3)
        np.testing.assert_array_equal(found.measurement, expected.measurement)
        np.testing.assert_array_equal(found.missed, expected.missed)
        assert found.misses(scores) == expected.misses(scores)
    assert type(pickle.loads(pickle.dumps(found))) is Measurer


@sizes
@devices
def test_a_bank_is_that_of_the_engine(device, n):
    rng = np.random.default_rng(n)
    labels, base, prior = rng.integers(3, size=n).astype(np.int32), simplex(rng, n), np.array([0.2, 0.3, 0.5])
    expected, found = HonestBank(labels, base, prior, 4), CudaBank(device, labels, base, prior, 4)
    before = copy.deepcopy(found)
    for _ in range(3):
        n_leaves = int(rng.integers(1, 9))
        leaves, votes = rng.integers(n_leaves, size=n).astype(np.int32), simplex(rng, (4, n_leaves, 3))
        counts = rng.integers(0, 3, size=n).astype(np.int32)
        missed, *sums = expected.misses(leaves, votes[1], counts)
        found_missed, *found_sums = found.misses(leaves, votes[1], counts)
        np.testing.assert_array_equal(found_missed, missed)
        assert found_sums == sums
        for bank in (expected, found):
            bank.update(leaves, votes, counts)
        for b in range(4):
            np.testing.assert_array_equal(found.state(b), expected.state(b))
            np.testing.assert_array_equal(found.label_scores(b), expected.label_scores(b))
        np.testing.assert_array_equal(found.n_read, expected.n_read)
        np.testing.assert_array_equal(found.brier_scores(), expected.brier_scores())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).states, expected.states)
    np.testing.assert_array_equal(before.state(0), np.broadcast_to(prior, (n, 3)))


@devices
@pytest.mark.parametrize("scale", [1.0, 1e-320, 1e300, 0.0])
def test_sums_and_filters_are_those_of_the_engine(device, scale):
    rng = np.random.default_rng(0)
    values = rng.random(5000) * scale
    placed = CudaArray.of(device, values, np.float64)
    assert filters.exact_sum(placed) == arrays.exact_sum(values)
    weights = simplex(rng, 5000)
    found = filters.effective_sample_size(CudaArray.of(device, weights, np.float64))
    assert found == arrays.effective_sample_size(weights)
    one, other = KalmanFilter(values, 1.0), CudaFilter(values, 1.0, device=device)
    for _ in range(3):
        measured = rng.random(5000) * scale
        assert other.update(measured, 0.3) == one.update(measured, 0.3)
    np.testing.assert_array_equal(other.state, one.state)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_a_sum_of_what_is_no_weight_is_nan(bad):
    values = CudaArray.of(DEVICES[0], np.array([0.5, bad, 0.1]), np.float64)
    assert np.isnan(filters.exact_sum(values))


def test_a_filter_of_a_device_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"measurement has shape \(2,\), the state has \(3,\)"):
        CudaFilter(np.zeros(3), 1.0, device=DEVICES[0]).update(np.zeros(2), 1.0)


def test_an_array_comes_to_the_host_where_numpy_asks_for_it():
    cells = np.arange(6.0).reshape(2, 3)
    array = CudaArray.of(DEVICES[0], cells, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(2 * array + 1, 2 * cells + 1)
        np.testing.assert_array_equal(array[:, 1], cells[:, 1])
        np.testing.assert_array_equal(np.asarray(array, dtype=np.float32), cells)
    assert isinstance(array[1], CudaArray)
    np.testing.assert_array_equal(array[1], cells[1])
    other = copy.deepcopy(array)
    CudaFilter(other, 1.0, device=DEVICES[0])
    assert type(pickle.loads(pickle.dumps(array))) is np.ndarray
    copied = array.copy()
    copied[0, 0] = 7
    np.testing.assert_array_equal(array, cells)


def test_a_host_device_hides_its_arrays():
    with pytest.raises(TypeError, match="on a device"):
        np.asarray(HostDevice().zeros(3, np.float64))
