import numpy as np
from numpy.typing import NDArray

def sorted_order(
    codes: NDArray[np.uint8], members: NDArray[np.uint16], n_bins: int
) -> NDArray[np.uint32]: ...
def side_of_sorted(order: NDArray[np.uint32], side: NDArray[np.uint8], wanted: int) -> NDArray[np.uint32]: ...
