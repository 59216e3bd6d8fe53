from typing import Any

import numpy as np
from numpy.typing import NDArray

class CompactTrees: ...

def compact(
    nodes: NDArray[Any],
    category_sets: NDArray[np.uint64],
    tree_nodes: NDArray[np.int64],
    tree_sets: NDArray[np.int64],
    tree_leaves: NDArray[np.int64],
    leaf_weights: NDArray[np.int32],
    n_features: int,
    gaps: bool,
    n_threads: int = 1,
) -> CompactTrees | None: ...
