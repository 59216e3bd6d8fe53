from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.engine.trees.grown_tree import GrownTree

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
        random_cuts: bool = False,
        cp: float,
        seed: int,
        n_threads: int,
        force_parallel: bool = False,
        lines: NDArray[np.uint8] | None = None,
        exchange: Any = None,
    ) -> None: ...
    def grow(self, weights: NDArray[np.int32], counts: bool, tree: int, key: int = 1) -> GrownTree: ...

def made_again(args: tuple[Any, ...], settings: dict[str, Any]) -> Grower: ...
