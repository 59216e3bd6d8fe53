from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

class HonestBank:
    states: Floats
    n_read: NDArray[np.int32]
    def __init__(
        self, labels: NDArray[np.int32], base: Floats, prior: Floats, n_filters: int, n_threads: int = 1
    ) -> None: ...
    def update(self, leaves: NDArray[np.int32], votes: Floats, counts: NDArray[np.int32]) -> None: ...
    def state(self, b: int) -> Floats: ...
    def brier_scores(self) -> Floats: ...
    def misses(
        self, leaves: NDArray[np.int32], votes: Floats, counts: NDArray[np.int32]
    ) -> tuple[NDArray[np.bool_], float, float]: ...

def restored(arguments: tuple[Any, ...], states: Floats, n_read: NDArray[np.int32]) -> HonestBank: ...
