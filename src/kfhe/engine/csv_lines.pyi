import numpy as np
from numpy.typing import NDArray

class LineReader:
    def __init__(
        self,
        sep: bytes,
        decimal: bytes,
        gaps: list[bytes],
        columns: list[tuple[int, dict[bytes, float] | None, bool] | None],
    ) -> None: ...
    def read(
        self, data: bytes | bytearray | memoryview
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], int] | None: ...
