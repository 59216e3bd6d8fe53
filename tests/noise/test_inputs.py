"""Noise in the inputs: numbers blur by a share of their spread, categories are mixed up, gaps stay."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfhe.noise import disturb_inputs


@pytest.fixture
def frame(rng):
    index = np.arange(1000)[::-1]
    colour = pd.Categorical(
        rng.choice(["red", "green", "blue", None], 1000), ["blue", "green", "red", "grey"]
    )
    number = np.where(rng.random(1000) < 0.1, np.nan, rng.normal(5, 3, 1000))
    columns = {"colour": colour, "number": number, "count": rng.integers(9, size=1000)}
    return pd.DataFrame({**columns, "word": rng.choice(["yes", "no"], 1000)}, index=index)


def test_a_frame_keeps_its_shape_names_types_and_gaps(frame):
    before = frame.copy()
    noisy = disturb_inputs(frame, 0.2, random_state=0)
    pd.testing.assert_frame_equal(frame, before)
    assert noisy.columns.tolist() == frame.columns.tolist()
    assert noisy.index.equals(frame.index)
    assert noisy.isna().equals(frame.isna())
    assert noisy.dtypes["colour"] == frame.dtypes["colour"]
    assert noisy.dtypes["word"] == frame.dtypes["word"]
    assert noisy.dtypes["count"] == np.float64


def test_numbers_blur_by_the_share_of_their_columns_spread(frame):
    noisy = disturb_inputs(frame, 0.2, random_state=0)
    for name in ("number", "count"):
        error = noisy[name] - frame[name]
        assert error.std() == pytest.approx(0.2 * frame[name].std(), rel=0.1)
        assert abs(error.mean()) < 0.02 * frame[name].std()


@given(rate=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_exactly_the_rounded_share_of_the_categories_changes(rate, seed):
    X = np.array([["a", "x"], ["b", "x"], ["c", "x"], ["a", "x"], [None, "x"]], dtype=object)
    noisy = disturb_inputs(X, rate, random_state=seed)
    assert (noisy[:4, 0] != X[:4, 0]).sum() == round(4 * rate)
    assert set(noisy[:4, 0]) <= {"a", "b", "c"}
    assert noisy[4, 0] is None
    assert (noisy[:, 1] == "x").all(), "there is no other one"


def test_the_same_seed_gives_the_same_table_and_no_noise_leaves_it(rng):
    X = rng.normal(size=(50, 3))
    np.testing.assert_array_equal(
        disturb_inputs(X, 0.3, random_state=1), disturb_inputs(X, 0.3, random_state=1)
    )
    assert (disturb_inputs(X, 0.3, random_state=1) != disturb_inputs(X, 0.3, random_state=2)).all()
    np.testing.assert_array_equal(disturb_inputs(X, 0, random_state=1), X)


def test_what_is_no_table_of_numbers_or_pandas_is_refused():
    with pytest.raises(TypeError, match=r"takes arrays and pandas data frames, got polars; use X\.to_pandas"):
        disturb_inputs(pl.DataFrame({"a": [1, 2]}), 0.1, random_state=0)
    with pytest.raises(ValueError, match=r"rate must be a number from 0 to 1, got 1\.5"):
        disturb_inputs([[1.0]], 1.5, random_state=0)
