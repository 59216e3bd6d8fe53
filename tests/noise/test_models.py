"""The registry: every noise model turns rows and labels into worse ones, the same by the same seed."""

import numpy as np
import pandas as pd
import pytest

from kfhe.noise import NOISE_MODELS


@pytest.fixture
def rows(rng):
    y = np.repeat([0, 1, 2], 20)
    return pd.DataFrame({"x0": y + rng.normal(size=60), "x1": pd.Categorical(rng.choice(["a", "b"], 60))}), y


@pytest.mark.parametrize("name", NOISE_MODELS)
def test_a_model_makes_rows_worse_and_leaves_what_it_gets(name, rows):
    X, y = rows
    before = X.copy(), y.copy()
    noisy_X, noisy_y = NOISE_MODELS[name].disturb(X, y, 0.4, 0)
    pd.testing.assert_frame_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    assert len(noisy_X) == len(noisy_y)
    assert not (noisy_X.equals(X) and np.array_equal(noisy_y, y))
    again_X, again_y = NOISE_MODELS[name].disturb(X, y, 0.4, 0)
    pd.testing.assert_frame_equal(noisy_X, again_X)
    np.testing.assert_array_equal(noisy_y, again_y)


@pytest.mark.parametrize("name", NOISE_MODELS)
def test_without_noise_all_stays(name, rows):
    X, y = rows
    noisy_X, noisy_y = NOISE_MODELS[name].disturb(X, y, 0.0, 0)
    pd.testing.assert_frame_equal(noisy_X, X, check_dtype=False)
    np.testing.assert_array_equal(noisy_y, y)


@pytest.mark.parametrize("name", NOISE_MODELS)
def test_the_highest_level_is_accepted_and_one_beyond_is_refused(name, rows):
    model = NOISE_MODELS[name]
    model.disturb(*rows, model.most, 0)
    with pytest.raises(ValueError, match=f"from 0 to {model.most:g}"):
        model.disturb(*rows, model.most + 0.01, 0)
