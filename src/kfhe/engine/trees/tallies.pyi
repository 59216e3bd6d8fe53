import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.splitting import Split

def best_tallied_split(
    codes: NDArray[np.uint8],
    members: NDArray[np.uint16],
    labels: NDArray[np.int32],
    weights: NDArray[np.int32],
    n_bins: int,
    min_samples_leaf: int,
) -> Split | None: ...
def tallied(
    codes: NDArray[np.uint8], members: NDArray[np.uint16], pairs: NDArray[np.uint64]
) -> tuple[NDArray[np.uint8], NDArray[np.int32]]: ...
