"""Trees that the kernels grow are those of the engine, bit by bit."""

import pickle

import numpy as np
import pytest
from host_device import HostDevice, some_device
from hypothesis import given, settings
from hypothesis import strategies as st

from kfhe.cuda.grower import CudaGrower, CudaTable
from kfhe.engine.trees.grower import Grower
from kfhe.tables.binned import BinnedTable
from kfhe.validation import integer_weights

NAMES = ("nodes", "gains", "leaf_weights", "category_sets", "leaves")
devices = st.sampled_from([some_device(3), some_device(2, backwards=True), some_device(1)])


class Problem:
    """A table, labels, weights and rules, all drawn."""

    def __init__(self, seed, n_rows, n_classes, kind):
        rng = np.random.default_rng(seed)
        categorical = rng.random(rng.integers(1, 8)) < rng.choice([0, 0.3])
        X = np.column_stack([column(rng, n_rows, few) for few in categorical])
        self.table = BinnedTable.from_table(X, categorical, int(rng.choice([255, 30, 4])), 1)
        signal = (np.nan_to_num(X).sum(axis=1) * 2).astype(int) % n_classes
        self.labels = ((signal + (rng.random(n_rows) < 0.2)) % n_classes).astype(np.int32)
        self.n_classes = n_classes
        self.weights, self.counts = weights(rng, n_rows, kind)
        n_features = len(self.table.n_bins)
        self.rules = {
            "max_depth": int(rng.choice([0, 0, 3])),
            "min_samples_split": int(rng.choice([2, 4, 20])),
            "min_samples_leaf": int(rng.choice([1, 1, 7])),
            "max_leaf_nodes": int(rng.choice([0, 0, 5])),
            "max_features": int(rng.integers(1, n_features + 1)) if rng.random() < 0.5 else n_features,
            "random_cuts": bool(rng.random() < 0.4),
            "cp": float(rng.choice([0, 0, 0.02])),
            "seed": int(rng.integers(2**63)),
        }

    def grower(self, device, **sizes):
        return CudaGrower(CudaTable(device, self.table, self.labels, self.n_classes), self.rules, **sizes)

    def expected(self, tree):
        table = self.table
        columns = (table.codes, table.n_bins, table.categorical, table.low, table.high)
        return Grower(*columns, self.labels, self.n_classes, self.rules).grow(self.weights, self.counts, tree)


def column(rng, n_rows, few):
    values = rng.normal(size=n_rows)
    if few or rng.random() < 0.5:
        values = rng.integers(rng.integers(1, 40), size=n_rows).astype(float)
    values[rng.random(n_rows) < rng.choice([0, 0, 0.2, 0.9])] = np.nan
    return values


def weights(rng, n_rows, kind):
    if kind == "counts":
        counts = rng.integers(0, 4, size=n_rows).astype(np.int32)
        counts[rng.integers(n_rows)] = 1
        return counts, True
    return integer_weights(np.ones(n_rows) if kind == "ones" else rng.exponential(size=n_rows))


def assert_same_tree(tree, expected):
    for name in NAMES:
        np.testing.assert_array_equal(getattr(tree, name), getattr(expected, name), err_msg=name)


@settings(max_examples=300)
@given(
    seed=st.integers(0, 2**32),
    n_rows=st.sampled_from([1, 2, 5, 30, 100, 400, 1500]),
    n_classes=st.sampled_from([2, 2, 3, 5, 20]),
    kind=st.sampled_from(["counts", "counts", "ones", "real"]),
    device=devices,
    small_rows=st.sampled_from([1, 3, 20, 2048]),
    piece_rows=st.sampled_from([4, 50, 4096]),
)
def test_the_kernels_grow_the_trees_of_the_engine(
    seed, n_rows, n_classes, kind, device, small_rows, piece_rows
):
    problem = Problem(seed, n_rows, n_classes, kind)
    grower = problem.grower(device, small_rows=small_rows, piece_rows=piece_rows)
    for tree in (0, 7, 7):  # memory is used again
        assert_same_tree(grower.grow(problem.weights, problem.counts, tree), problem.expected(tree))


@pytest.mark.parametrize("kind", ["counts", "real"])
@pytest.mark.parametrize("small_rows", [1, 2048])
def test_threads_of_a_block_work_at_the_same_time(kind, small_rows):
    problem = Problem(3, 80, 3, kind)
    grower = problem.grower(some_device(2, n_threads=3), small_rows=small_rows, piece_rows=16)
    assert_same_tree(grower.grow(problem.weights, problem.counts, 1), problem.expected(1))


@pytest.mark.parametrize("n_classes", [60, 600])
def test_histograms_that_a_block_has_no_room_for_are_made_elsewhere(n_classes):
    problem = Problem(5, 1500, n_classes, "counts")
    for small_rows in (20, 2048):
        grower = problem.grower(some_device(), small_rows=small_rows)
        assert_same_tree(grower.grow(problem.weights, problem.counts, 1), problem.expected(1))


def test_both_ways_of_growing_are_taken():
    problem, device = Problem(0, 1500, 2, "ones"), HostDevice()
    problem.grower(device, small_rows=100).grow(problem.weights, problem.counts, 0)
    assert device.launched.count("build") > 3
    assert device.launched[-4:] == ["grow_subtrees", "count_leaves", "write_tree", "find_leaves"]


def test_a_pickled_grower_comes_back_on_the_host_and_grows_the_same_trees():
    problem = Problem(1, 400, 3, "counts")
    copy = pickle.loads(pickle.dumps(problem.grower(some_device())))
    assert type(copy) is Grower
    assert_same_tree(copy.grow(problem.weights, problem.counts, 2), problem.expected(2))


def test_what_does_not_fit_is_told_before_anything_is_copied():
    problem, device = Problem(1, 1500, 3, "counts"), HostDevice()
    device.memory = 1000
    grower = problem.grower(device)
    with pytest.raises(
        MemoryError, match=r"needs 0\.\d\d GB of the GPU's memory to grow trees on 1500 rows; 0.00"
    ):
        grower.grow(problem.weights, problem.counts, 0)
    assert device.launched == []
    device.memory = 1 << 30
    assert_same_tree(grower.grow(problem.weights, problem.counts, 0), problem.expected(0))


def test_more_classes_than_a_block_has_room_for_are_refused():
    with pytest.raises(ValueError, match="y has 601 classes; device='cuda' accepts at most 600"):
        Problem(0, 1500, 601, "counts").grower(some_device())
