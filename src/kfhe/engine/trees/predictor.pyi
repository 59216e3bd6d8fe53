from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.compact import CompactTrees

def add_trees(
    nodes: NDArray[Any],
    category_sets: NDArray[np.uint64],
    leaf_classes: NDArray[np.int32],
    leaf_votes: NDArray[np.float64],
    tree_nodes: NDArray[np.int64],
    tree_leaves: NDArray[np.int64],
    tree_sets: NDArray[np.int64],
    weights: NDArray[np.float64],
    first: int,
    last: int,
    plain: bool,
    rows: NDArray[np.float64],
    scores: NDArray[np.float64],
    n_threads: int = 1,
    compact: CompactTrees | None = None,
    factors: NDArray[np.float64] | None = None,
) -> None: ...
def apply(
    nodes: NDArray[Any], category_sets: NDArray[np.uint64], rows: NDArray[np.float64], n_threads: int = 1
) -> NDArray[np.int32]: ...
