from typing import Any

import numpy as np
from numpy.typing import NDArray

class CompactTrees: ...

def compact(nodes: NDArray[Any], tree_nodes: NDArray[np.int64]) -> CompactTrees | None: ...
