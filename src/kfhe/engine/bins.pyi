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
