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
