from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

class Stream(IntEnum):
    ROWS = 0
    ESTIMATORS = 1
    FEATURES = 2
    BINS = 3

def bootstrap(
    weights: NDArray[np.float64],
    seed: int,
    iteration: int,
    attempt: int,
    n_threads: int = 1,
    n_draws: int = 0,
) -> NDArray[np.int32]: ...
def random_numbers(seed: int, stream: int, c0: int, c1: int, c2: int, c3: int) -> list[int]: ...

class Draws:
    def __init__(
        self,
        labels: NDArray[np.int32],
        n_classes: int,
        n_present: int,
        seed: int,
        n_threads: int = 1,
        n_draws: int = 0,
    ) -> None: ...
    def draw(self, weights: NDArray[np.float64], iteration: int, attempt: int) -> NDArray[np.int32]: ...
