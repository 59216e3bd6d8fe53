"""Noise in the inputs: errors in numbers, and changed categories."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.noise.labels import checked_rate, generator_of
from kfhe.tables.columns import Columns, open_columns
from kfhe.validation import readable_table


def disturb_inputs(X: Any, rate: float, *, random_state: Any) -> Any:
    """Add noise to the numbers and the categories of a table.

    Parameters
    ----------
    X : array or pandas data frame of shape (n, n_features)
        The rows.
    rate : float
        Amount of noise, 0 to 1. Each number gets a normal error with `rate` times the standard deviation of
        its column. In a text column, exactly the share `rate` of the values, rounded, becomes another value
        of the column. Missing values stay missing.
    random_state : int, Generator, RandomState or None
        Seed.

    Returns
    -------
    array or data frame
        A copy of `X`; its numbers are floats.

    Examples
    --------
    >>> import numpy as np
    >>> from kfhe.noise import disturb_inputs
    >>> disturb_inputs(np.array([[1, 10], [2, 20], [3, 30]]), 0.1, random_state=0).round(2)
    array([[ 0.9 ,  9.82],
           [ 2.02, 19.15],
           [ 3.05, 30.2 ]])
    """
    rate = checked_rate(rate)
    X = readable_table(X, "disturb_inputs")
    library = type(X).__module__.split(".")[0]
    if library in ("polars", "pyarrow"):
        raise TypeError(
            f"disturb_inputs takes arrays and pandas data frames, got {library}; use X.to_pandas()"
        )
    columns, generator = open_columns(X), generator_of(random_state)
    disturbed = [
        _mixed_up(columns, j, rate, generator)
        if columns.is_text(j)
        else _blurred(columns.numbers(j), rate, generator)
        for j in range(columns.n_columns)
    ]
    if library == "pandas":
        return _frame_like(X, disturbed)
    with_text = any(map(columns.is_text, range(columns.n_columns)))
    return np.column_stack([column.astype(object if with_text else np.float64) for column in disturbed])


def _blurred(numbers: NDArray[np.float64], rate: float, generator: np.random.Generator) -> NDArray[Any]:
    present = ~np.isnan(numbers)
    spread = numbers[present].std() if present.any() else 0.0
    return numbers + rate * spread * generator.standard_normal(len(numbers))


def _mixed_up(columns: Columns, j: int, rate: float, generator: np.random.Generator) -> NDArray[Any]:
    codes, values = columns.factorize(j)
    codes = np.array(codes, dtype=np.intp)
    present = np.flatnonzero(codes >= 0)
    if len(values) > 1:
        cells = generator.choice(present, size=round(rate * len(present)), replace=False)
        shifts = generator.integers(1, len(values), size=len(cells))
        codes[cells] = (codes[cells] + shifts) % len(values)
    texts = np.empty(len(values) + 1, dtype=object)
    texts[:-1] = values
    return texts[codes]  # the code of a gap, -1, picks the last entry: None


def _frame_like(X: Any, columns: list[NDArray[Any]]) -> Any:
    """Return a frame of other columns, with the names, index and categories of X."""
    import pandas as pd

    made = [
        pd.Series(values, index=X.index, dtype=X.dtypes.iloc[j] if values.dtype == object else None)
        for j, values in enumerate(columns)
    ]
    frame = pd.concat(made, axis=1)
    frame.columns = X.columns
    return frame
