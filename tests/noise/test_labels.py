"""Label noise: exactly as many labels change as asked for, and in the way that the model says."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from kfhe.noise import flip_by_transition, flip_labels

MODELS = ["uniform", "pairwise", "border", "neighbourhood"]


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
        (
            {"model": "other"},
            "model must be one of 'uniform', 'pairwise', 'border', 'neighbourhood', got 'other'",
        ),
        ({"model": "pairwise", "rate": 0.6}, r"from 0 to 0\.5 for model='pairwise', got 0\.6"),
        ({"model": "border"}, "model='border' needs the rows as well: X"),
        ({"model": "border", "X": [[1], [2]]}, "X has 2 rows, y has 4"),
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


@given(
    labels=st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=4, max_size=40).filter(
        lambda labels: len(set(labels)) > 1
    ),
    model=st.sampled_from(MODELS),
    rate=st.floats(0, 0.5),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=60)
def test_every_model_changes_exactly_the_rounded_share(labels, model, rate, seed):
    y, X = np.array(labels), np.random.default_rng(0).integers(4, size=(len(labels), 2)).astype(float)
    before = X.copy()
    noisy, again = (flip_labels(y, rate, random_state=seed, model=model, X=X) for _ in range(2))
    assert (noisy != y).sum() == round(len(y) * rate)
    assert set(noisy) <= set(labels)
    np.testing.assert_array_equal(noisy, again)
    np.testing.assert_array_equal(X, before)
    assert y.tolist() == labels


def test_pairwise_noise_goes_to_the_next_class_and_from_the_last_to_the_first():
    y = np.repeat(["cat", "dog", "mouse"], 40)
    noisy = flip_labels(y, 0.4, random_state=0, model="pairwise")
    changed = noisy != y
    confused = set(zip(y[changed].tolist(), noisy[changed].tolist(), strict=True))
    assert confused == {("cat", "dog"), ("dog", "mouse"), ("mouse", "cat")}


@pytest.fixture
def line():
    """Three classes along a line, which meet at 200 and 400."""
    return np.arange(600.0)[:, None], np.repeat([0, 1, 2], 200)


@pytest.mark.parametrize("model", ["border", "neighbourhood"])
def test_mistakes_are_near_the_border_and_with_the_class_beyond_it(model):
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 200)
    X = (4 * y + random.normal(size=600))[:, None]  # the classes meet at 2 and 6
    distances, far = [], 0
    for seed in range(5):
        noisy = flip_labels(y, 0.05, random_state=seed, model=model, X=X)
        changed = noisy != y
        distances += np.minimum(abs(X[changed, 0] - 2), abs(X[changed, 0] - 6)).tolist()
        far += (abs(noisy - y) == 2).sum()
    usual = np.minimum(abs(X[:, 0] - 2), abs(X[:, 0] - 6))
    assert np.mean(distances) < 0.75 * usual.mean()
    assert far < 0.1 * len(distances), "0 and 2 don't meet"


def test_at_the_border_a_label_is_as_likely_to_be_wrong_as_right(line):
    X, y = line
    wrong = [
        (flip_labels(y, 0.1, random_state=seed, model="neighbourhood", X=X) != y)[[199, 200, 399, 400]].mean()
        for seed in range(100)
    ]
    assert 0.4 < np.mean(wrong) < 0.6


def test_a_border_is_found_among_categories_and_gaps():
    random = np.random.default_rng(0)
    kind = random.choice(["plain", "mixed"], 400)
    y = np.where(kind == "mixed", random.integers(0, 2, 400), 0)
    size = np.where(random.random(400) < 0.1, np.nan, 1.0)
    X = pd.DataFrame({"kind": pd.Categorical(kind), "size": size, "nothing": np.nan})
    for table in (X, pl.from_pandas(X), X.to_numpy(dtype=object)):
        noisy = flip_labels(y, 0.1, random_state=0, model="border", X=table)
        assert (kind[noisy != y] == "mixed").mean() > 0.8


def test_a_transition_matrix_says_how_many_of_each_class_become_what():
    y = np.repeat(["a", "b", "c"], [100, 50, 10])
    matrix = [[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.5, 0.25, 0.25]]
    noisy = flip_by_transition(y, matrix, random_state=0)
    counts = pd.crosstab(y, noisy)
    assert counts.loc["a"].tolist() == [70, 30, 0]
    assert counts.loc["b"].tolist() == [0, 50, 0]
    assert counts.at["c", "c"] == 2
    np.testing.assert_array_equal(noisy, flip_by_transition(y, matrix, random_state=0))
    assert (noisy != flip_by_transition(y, matrix, random_state=1)).any()


def test_classes_are_confused_in_the_shares_of_the_matrix():
    y = np.zeros(10_000, dtype=int)
    y[:2] = 1, 2
    noisy = flip_by_transition(y, [[0.4, 0.2, 0.4], [0, 1, 0], [0, 0, 1]], random_state=0)
    assert (noisy == 1).sum() == pytest.approx(2000, abs=150)
    assert (noisy == 2).sum() == pytest.approx(4000, abs=150)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0]], r"of shape \(2, 2\), for the classes a, b; got \(1, 1\)"),
        ([[0.5, 0.5], [0.5, 0.6]], r"must sum to 1, that of class b sums to 1\.1"),
        ([[1.5, -0.5], [0, 1]], "got a negative or missing one"),
        ([[np.nan, 0.5], [0, 1]], "got a negative or missing one"),
    ],
)
def test_a_matrix_that_is_none_is_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        flip_by_transition(["a", "b"], matrix, random_state=0)
