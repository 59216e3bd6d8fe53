from collections.abc import Mapping
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
        rules: Mapping[str, Any],
        n_threads: int = 1,
        force_parallel: bool = False,
        exchange: Any = None,
    ) -> None: ...
    def grow(self, weights: NDArray[np.int32], counts: bool, tree: int, key: int = 1) -> GrownTree: ...
