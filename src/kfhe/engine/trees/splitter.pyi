from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

class Split(TypedDict):
    score: float
    left_weight: int
    feature: int
    categorical: bool
    missing_left: bool
    last_left: int
    first_right: int
    left_bins: list[int]

def child_key(key: int, side: int) -> int: ...
def drawn_features(n_features: int, seed: int, tree: int, key: int) -> NDArray[np.int32]: ...
def cut_numbers(n_features: int, seed: int, tree: int, key: int) -> NDArray[np.uint64]: ...
def best_split(
    histograms: NDArray[np.int32],
    n_bins: NDArray[np.int32],
    categorical: NDArray[np.uint8],
    min_samples_leaf: int,
    counts: NDArray[np.int32] | None = None,
    cut_numbers: NDArray[np.uint64] | None = None,
) -> Split | None: ...
