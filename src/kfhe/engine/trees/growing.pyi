from typing import Any

import numpy as np
from numpy.typing import NDArray

class Grower:
    def __init__(
        self,
        codes: NDArray[np.uint8],
        n_bins: NDArray[np.int32],
        categorical: NDArray[np.uint8],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        labels: NDArray[np.int32],
        n_classes: int,
        *,
        max_depth: int,
        min_samples_split: int,
        min_samples_leaf: int,
        max_leaf_nodes: int,
        max_features: int,
        cp: float,
        seed: int,
        n_threads: int,
        force_parallel: bool = False,
    ) -> None: ...
    def __len__(self) -> int: ...
    def keep(self, n_trees: int) -> None: ...
    def grow(self, weights: NDArray[np.int32], counts: bool, tree: int, hard: bool) -> NDArray[Any]: ...
    def tree(self, t: int) -> tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint64]]: ...
    def arrays(self, *, copy: bool = True) -> dict[str, NDArray[Any]]: ...

def restored(args: tuple[Any, ...], settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Grower: ...
