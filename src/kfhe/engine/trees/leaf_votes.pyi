from typing import Any

import numpy as np
from numpy.typing import NDArray

def shrunken_shares(
    nodes: NDArray[Any], leaf_weights: NDArray[np.int32], shrinkages: NDArray[np.float64], n_threads: int = 1
) -> NDArray[np.float64]: ...
def shrunken_shares_of_all(
    nodes: NDArray[Any],
    leaf_weights: NDArray[np.int32],
    tree_nodes: NDArray[np.int64],
    tree_leaves: NDArray[np.int64],
    shrinkage: float,
    n_threads: int = 1,
) -> NDArray[np.float64]: ...
def leaf_classes(leaf_weights: NDArray[np.int32], n_threads: int = 1) -> NDArray[np.int32]: ...
def leaf_shares(leaf_weights: NDArray[np.int32], n_threads: int = 1) -> NDArray[np.float64]: ...
