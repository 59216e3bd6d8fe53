import numpy as np
from numpy.typing import NDArray

def class_histograms(
    codes: NDArray[np.uint8],
    n_bins: NDArray[np.int32],
    rows: NDArray[np.uint32],
    classes: NDArray[np.uint16],
    weights: NDArray[np.int32],
    n_classes: int,
) -> NDArray[np.int32]: ...
def count_histograms(
    codes: NDArray[np.uint8], n_bins: NDArray[np.int32], rows: NDArray[np.uint32]
) -> NDArray[np.int32]: ...
