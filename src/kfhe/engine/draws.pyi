from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Stream(IntEnum):
    ROWS = 0
    ESTIMATORS = 1
    FEATURES = 2
    BINS = 3
    CUTS = 4
    FOLDS = 5

def bootstrap(
    weights: NDArray[np.float64],
    seed: int,
    iteration: int,
    attempt: int,
    n_threads: int = 1,
    n_draws: int = 0,
    exchange: Any = None,
) -> NDArray[np.int32]: ...
def random_numbers(seed: int, stream: int, c0: int, c1: int, c2: int, c3: int) -> list[int]: ...
def folds(ids: NDArray[np.int64], seed: int, n_folds: int) -> NDArray[np.uint8]: ...

ROWS_OF_BLOCK: int
REDRAWS: int

class Draws:
    def __init__(
        self,
        labels: NDArray[np.int32],
        n_classes: int,
        n_present: int,
        seed: int,
        n_threads: int = 1,
        n_draws: int = 0,
        exchange: Any = None,
    ) -> None: ...
    def draw(self, weights: NDArray[np.float64], iteration: int, attempt: int) -> NDArray[np.int32]: ...
