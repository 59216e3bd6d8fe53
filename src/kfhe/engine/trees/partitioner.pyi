import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.splitter import Split

def cut(
    split: Split, n_bins: int, low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[int, float]: ...
def sides(
    split: Split, n_bins: int, low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.uint8]: ...
def partition(
    column: NDArray[np.uint8],
    goes_left: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    classes: NDArray[np.uint16],
    weights: NDArray[np.int32],
    n_classes: int,
    n_threads: int = 1,
) -> tuple[int, NDArray[np.int64]]: ...
