import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.splitting import Split

def best_sorted_split(
    order: NDArray[np.uint32],
    labels: NDArray[np.int32],
    weights: NDArray[np.int32],
    n_bins: int,
    n_classes: int,
    min_samples_leaf: int,
    counts: bool,
) -> Split | None: ...
