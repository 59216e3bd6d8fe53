"""Operations on rows: starts the kernels of rows.h."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kfhe.cuda.array import CudaArray
from kfhe.cuda.device import Device

ROWS_OF_PIECE = 1024  # as in rows.h
THREADS = 256

# `Rows` in rows.h, and the types of its arrays
NUMBERS = {"n": "i8", "n_classes": "i8", "n_filters": "i8", "n_leaves": "i8", "one": "f8", "other": "f8"}
NUMBERS |= {"seed": "u8", "iteration": "u8", "attempt": "u8", "n_draws": "i8"}
ARRAYS = {"labels": "i4", "base": "f8", "counts": "i4", "leaves": "i4", "classes": "i4", "votes": "f8"}
ARRAYS |= {"state": "f8", "measured": "f8", "missed": "u1", "n_read": "i4", "sums": "i8"}
ARRAYS |= {"cumulated": "u8", "chosen": "i8", "drawn": "i4", "seen": "u1"}
ORDER = [
    "n",
    "n_classes",
    "labels",
    "base",
    "counts",
    "leaves",
    "classes",
    "votes",
    "state",
    "measured",
    "missed",
]
ORDER += ["n_read", "n_filters", "n_leaves", "sums", "one", "other", "cumulated", "chosen", "drawn", "seen"]
ORDER += ["seed", "iteration", "attempt", "n_draws"]
ROWS = np.dtype([(name, NUMBERS.get(name, "u8")) for name in ORDER])


class RowWork:
    """Starts kernels on rows.

    Parameters
    ----------
    device : Device
        The device.
    **lasting
        Arrays, on the host or the device, and numbers: fields of `Rows` for all kernels.
    """

    def __init__(self, device: Device, **lasting: Any) -> None:
        self.device = device
        self._lasting = {name: self._placed(name, value) for name, value in lasting.items()}

    def _placed(self, name: str, value: Any) -> Any:
        """Return a number unchanged, and an array on the device."""
        if name in NUMBERS:
            return value
        return CudaArray.of(self.device, value, ARRAYS[name]).cells

    def run(
        self,
        kernel: str,
        n_sums: int = 0,
        *,
        n_blocks: int = 0,
        n_threads: int = THREADS,
        n_room: int = 0,
        **given: Any,
    ) -> NDArray[np.int64]:
        """Run a kernel on all rows, and return its sums, if it has any."""
        device = self.device
        values = self._lasting | {name: self._placed(name, value) for name, value in given.items()}
        if n_sums:
            values["sums"] = device.zeros(n_sums, np.int64)
        arguments = np.zeros((), dtype=ROWS)
        for name, value in values.items():
            arguments[name] = value if name in NUMBERS else device.address(value)
        n_blocks = n_blocks or max(1, -(-values["n"] // ROWS_OF_PIECE))
        device.launch(kernel, arguments, n_blocks, n_threads, n_room)
        return device.get(values["sums"]) if n_sums else np.empty(0, dtype=np.int64)
