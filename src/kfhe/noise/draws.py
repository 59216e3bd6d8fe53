"""What all kinds of noise begin with: how much of it, and where the randomness comes from."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def checked_rate(rate: Any, most: float = 1.0, why: str = "") -> float:
    """Return a rate, or raise unless it is a number from 0 to `most`."""
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) <= most:
        raise ValueError(f"rate must be a number from 0 to {most:g}{why}, got {rate!r}")
    return float(rate)


def generator_of(random_state: Any) -> np.random.Generator:
    """Return the generator that a user's random state stands for."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))
