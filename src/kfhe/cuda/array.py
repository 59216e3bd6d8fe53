"""Arrays on a GPU, which are copied to the host when NumPy needs them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from kfhe.cuda.device import Array, Device


class CudaArray(NDArrayOperatorsMixin):
    """An array on a device.

    Kernels work on it in place; other code, such as a user's own emphasis, gets a copy on the host.

    Parameters
    ----------
    device : Device
        The device.
    cells : array on the device
        Its values as a flat array.
    shape : tuple of int
        Its shape.
    """

    def __init__(self, device: Device, cells: Array, shape: tuple[int, ...]) -> None:
        self.device, self.cells, self.shape = device, cells, shape

    @classmethod
    def of(cls, device: Device, array: Any, dtype: Any) -> CudaArray:
        """Return an array on the device: itself, if it is there already."""
        if isinstance(array, CudaArray):
            return array
        host = np.ascontiguousarray(array, dtype=dtype)
        return cls(device, device.put(host.reshape(-1)), host.shape)

    @classmethod
    def empty(cls, device: Device, shape: tuple[int, ...], dtype: Any) -> CudaArray:
        """Return an uninitialised array."""
        return cls(device, device.empty(prod(shape), dtype), shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.device.get(self.cells).reshape(self.shape).astype(dtype or self.cells.dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if "out" in options:
            return NotImplemented
        on_host = (np.asarray(each) if isinstance(each, CudaArray) else each for each in inputs)
        return getattr(ufunc, method)(*on_host, **options)

    def __getitem__(self, key: Any) -> Any:
        """Return a part of the first dimension, which stays on the device; other indices give host arrays."""
        if not isinstance(key, int):
            return np.asarray(self)[key]
        size = len(self.cells) // len(self)
        return CudaArray(self.device, self.cells[key * size : (key + 1) * size], self.shape[1:])

    def __deepcopy__(self, memo: dict[int, Any]) -> CudaArray:
        return CudaArray(self.device, self.cells.copy(), self.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle as an array of the host."""
        return np.asarray, (np.asarray(self),)

    def copy(self) -> NDArray[Any]:
        """Return a copy on the host."""
        return np.array(self)
