from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

class GrownTree:
    n_classes: int
    @classmethod
    def from_arrays(
        cls,
        nodes: NDArray[np.uint8],
        gains: NDArray[np.float64],
        leaf_weights: NDArray[np.int32],
        category_sets: NDArray[np.uint64],
        leaves: NDArray[np.int32],
        n_threads: int = 1,
    ) -> Self: ...
    @property
    def nodes(self) -> NDArray[np.uint8]: ...
    @property
    def gains(self) -> NDArray[np.float64]: ...
    @property
    def leaf_weights(self) -> NDArray[np.int32]: ...
    @property
    def category_sets(self) -> NDArray[np.uint64]: ...
    @property
    def leaves(self) -> NDArray[np.int32]: ...
    def votes(self, leaf_votes: NDArray[Any]) -> NDArray[Any]: ...
    def class_votes(self) -> NDArray[np.int32]: ...
    def share_votes(self) -> NDArray[np.float64]: ...

def leaves_of_codes(
    nodes: NDArray[np.uint8],
    category_sets: NDArray[np.uint64],
    codes: NDArray[np.uint8],
    n_bins: NDArray[np.int32],
    known: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]: ...
