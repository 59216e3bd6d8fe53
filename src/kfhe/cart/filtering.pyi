import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

def correct(state: Floats, measurement: Floats, gain: float, n_threads: int = 1) -> None: ...
def measure(
    scores: Floats,
    votes: NDArray[np.int32] | Floats,
    labels: NDArray[np.int32],
    units: NDArray[np.int64],
    measurement: Floats,
    missed: NDArray[np.uint8],
    n_threads: int = 1,
) -> tuple[int, int]: ...
def missed_units(
    scores: Floats, labels: NDArray[np.int32], units: NDArray[np.int64], n_threads: int = 1
) -> int: ...
def exact_sum(values: Floats, n_threads: int = 1) -> float: ...
