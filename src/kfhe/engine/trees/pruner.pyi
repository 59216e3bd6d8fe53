import numpy as np
from numpy.typing import NDArray

def pruned(
    left: NDArray[np.int32],
    gains: NDArray[np.float64],
    totals: NDArray[np.int64],
    *,
    max_leaf_nodes: int = 0,
    cp: float = 0.0,
) -> NDArray[np.int32]: ...
