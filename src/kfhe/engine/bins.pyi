from typing import Any

import numpy as np
from numpy.typing import NDArray

def bin_columns(
    columns: NDArray[np.float64],
    first: int,
    max_bins: int,
    codes: NDArray[np.uint8],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    n_threads: int = 1,
) -> NDArray[np.int32]: ...
def bin_sparse_columns(
    stored: NDArray[np.float64],
    rows: NDArray[np.int32] | NDArray[np.int64],
    starts: NDArray[np.int64],
    first: int,
    max_bins: int,
    codes: NDArray[np.uint8],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    n_threads: int = 1,
) -> NDArray[np.int32]: ...
def sampled_rows(n: int, column: int) -> NDArray[np.int64]: ...
def bin_starts(values: NDArray[np.float64], max_bins: int) -> tuple[NDArray[np.float64], bool]: ...
def encoded(
    values: NDArray[np.float64], starts: NDArray[np.float64]
) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.float64], int]: ...
def columns_of(table: NDArray[np.floating[Any]], n_threads: int = 1) -> NDArray[np.float64]: ...
