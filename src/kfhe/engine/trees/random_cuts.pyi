import numpy as np
from numpy.typing import NDArray

def cut_numbers(n_features: int, seed: int, tree: int, key: int) -> NDArray[np.uint64]: ...
