"""flip_labels changes exactly as many labels as asked for, evenly."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from kfhe.noise import flip_labels


@given(
    y=st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=2).filter(lambda y: len(set(y)) > 1),
    rate=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_exactly_the_rounded_share_gets_another_class(y, rate, seed):
    noisy = flip_labels(y, rate, random_state=seed)
    assert (noisy != np.array(y)).sum() == round(len(y) * rate)
    assert set(noisy) <= set(y)


def test_every_row_and_every_other_class_is_as_likely(rng):
    y = np.array([0, 1, 2, 3] * 5)
    rows, classes = np.zeros(20), np.zeros((4, 4))
    for _ in range(2000):
        noisy = flip_labels(y, 0.25, random_state=rng)
        changed = np.flatnonzero(noisy != y)
        rows[changed] += 1
        np.add.at(classes, (y[changed], noisy[changed]), 1)
    assert chisquare(rows).pvalue > 0.01
    for label in range(4):
        assert chisquare(np.delete(classes[label], label)).pvalue > 0.01
    assert classes.trace() == 0


def test_what_is_passed_in_is_not_changed():
    y = np.array([0, 1] * 10)
    flip_labels(y, 1.0, random_state=0)
    np.testing.assert_array_equal(y, [0, 1] * 10)


def test_the_same_random_state_gives_the_same_noise():
    y = np.arange(200) % 3
    for source in (int, np.random.default_rng, np.random.RandomState):
        np.testing.assert_array_equal(
            flip_labels(y, 0.3, random_state=source(5)), flip_labels(y, 0.3, random_state=source(5))
        )
    assert not np.array_equal(flip_labels(y, 0.3, random_state=5), flip_labels(y, 0.3, random_state=6))
    assert not np.array_equal(flip_labels(y, 0.3, random_state=None), flip_labels(y, 0.3, random_state=None))


def test_no_noise_and_nothing_but_noise():
    y = np.array(["x", "y"] * 5)
    np.testing.assert_array_equal(flip_labels(y, 0, random_state=0), y)
    np.testing.assert_array_equal(flip_labels(y, 1, random_state=0), y[::-1])
    np.testing.assert_array_equal(flip_labels(["only"] * 3, 0, random_state=0), ["only"] * 3)


def test_which_labels_a_seed_flips_stays_the_same():
    y = np.arange(20) % 3
    noisy = flip_labels(y, 0.3, random_state=7)
    changed = np.flatnonzero(noisy != y)
    assert changed.tolist() == [2, 5, 7, 8, 11, 12]
    assert noisy[changed].tolist() == [0, 0, 0, 0, 1, 2]


@pytest.mark.parametrize(
    "y",
    [
        ["b", "a", "b", "a"],
        np.array([3, 1, 3, 1], dtype=np.int8),
        np.array([True, False, True, False]),
        pd.Series(["b", "a", "b", "a"], dtype="category"),
        pl.Series([3, 1, 3, 1]),
    ],
    ids=["list", "int8", "bool", "pandas", "polars"],
)
def test_labels_of_any_kind_keep_their_kind(y):
    noisy = flip_labels(y, 0.5, random_state=0)
    expected = np.array(y)
    assert isinstance(noisy, np.ndarray)
    assert noisy.dtype == expected.dtype
    assert (noisy != expected).sum() == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": -0.1}, r"rate must be a number from 0 to 1, got -0\.1"),
        ({"rate": 1.01}, r"rate must be a number from 0 to 1, got 1\.01"),
        ({"rate": np.nan}, "rate must be a number from 0 to 1, got nan"),
        ({"rate": "20 %"}, "rate must be a number from 0 to 1, got '20 %'"),
        ({"rate": None}, "rate must be a number from 0 to 1, got None"),
        ({"rate": True}, "rate must be a number from 0 to 1, got True"),
        ({"model": "pairwise"}, "model must be 'uniform', got 'pairwise'"),
        ({"y": ["only"] * 4}, r"y has one class only \('only'\): there is no other to change to"),
        ({"y": [0, 1, None]}, "y has missing labels .* first in row 2"),
        ({"y": [0, 1, "a"]}, "y mixes labels of types int, str; use one type for all"),
        ({"y": None}, "flip_labels requires y to be passed, but the target y is None"),
        ({"y": []}, "y is empty"),
        ({"y": [[0, 1], [1, 0]]}, "y should be a 1d array"),
        ({"random_state": "x"}, "'x' cannot be used to seed"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    arguments = {"y": [0, 1, 0, 1], "rate": 0.5, "random_state": 0, **arguments}
    with pytest.raises(ValueError, match=message):
        flip_labels(arguments.pop("y"), arguments.pop("rate"), **arguments)
