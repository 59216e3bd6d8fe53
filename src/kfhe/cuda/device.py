"""The device: arrays on a GPU, and kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kfhe.display.text import needed

Array = Any  # an array on a device

SOURCES = Path(__file__).parent
INCLUDED = ("library", "", "../engine", "../engine/trees")  # include folders of the sources
# No fused multiply-add, so that rounding is the same as on a CPU. Few registers, so that many threads run.
OPTIONS = ("--std=c++17", "--fmad=false", "-default-device", "--device-int128", "--maxrregcount=64")
BLOCKS_PER_PROCESSOR = 32


class Device(Protocol):
    """The interface of a GPU in training.

    Attributes
    ----------
    n_blocks : int
        Number of blocks that keep it busy.
    """

    n_blocks: int

    def empty(self, n: int, dtype: Any) -> Array:
        """Return an uninitialised array."""

    def zeros(self, n: int, dtype: Any) -> Array:
        """Return an array of zeros."""

    def put(self, array: NDArray[Any]) -> Array:
        """Copy an array of the host."""

    def get(self, array: Array) -> NDArray[Any]:
        """Copy an array to the host, after all launched kernels have ended."""

    def address(self, array: Array) -> int:
        """Return the address of an array."""

    def free_bytes(self) -> int:
        """Return the free memory in bytes."""

    def launch(
        self, kernel: str, arguments: NDArray[Any], n_blocks: int, n_threads: int, n_room: int = 0
    ) -> None:
        """Run a kernel, after all that were launched before.

        Parameters
        ----------
        kernel : str
            Its name.
        arguments : structured array without dimensions
            Its argument.
        n_blocks, n_threads : int
            Number of blocks, and of threads per block.
        n_room : int, default=0
            Additional shared memory of a block, in units of 32 bits.
        """


class CudaDevice:
    """The current GPU, through CuPy, which compiles kernels at their first use.

    Parameters
    ----------
    cupy : module
        CuPy.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        with self._faults():
            n_processors = cupy.cuda.Device().attributes["MultiProcessorCount"]
            folders = [(SOURCES / folder).resolve() for folder in INCLUDED]
            code = (SOURCES / "kernels.cu").read_text(encoding="utf-8")
            # CuPy caches compiled kernels by source and options, and does not look at included files.
            options = (*OPTIONS, *(f"-I{folder}" for folder in folders), f"-DSOURCES={digest(folders)}")
            self._module = cupy.RawModule(code=code, options=options)
            self._module.compile()
        self.n_blocks = BLOCKS_PER_PROCESSOR * int(n_processors)
        self._kernels: dict[str, Any] = {}

    def empty(self, n: int, dtype: Any) -> Array:
        """Return an uninitialised array."""
        with self._faults():
            return self._cupy.empty(n, dtype)

    def zeros(self, n: int, dtype: Any) -> Array:
        """Return an array of zeros."""
        with self._faults():
            return self._cupy.zeros(n, dtype)

    def put(self, array: NDArray[Any]) -> Array:
        """Copy an array of the host."""
        with self._faults():
            return self._cupy.asarray(np.ascontiguousarray(array))

    def get(self, array: Array) -> NDArray[Any]:
        """Copy an array to the host, after all launched kernels have ended."""
        with self._faults():
            copied: NDArray[Any] = self._cupy.asnumpy(array)
            return copied

    def address(self, array: Array) -> int:
        """Return the address of an array."""
        return int(array.data.ptr)

    def free_bytes(self) -> int:
        """Return the free memory in bytes."""
        with self._faults():
            return int(
                self._cupy.cuda.Device().mem_info[0] + self._cupy.get_default_memory_pool().free_bytes()
            )

    def launch(
        self, kernel: str, arguments: NDArray[Any], n_blocks: int, n_threads: int, n_room: int = 0
    ) -> None:
        """Run a kernel, after all that were launched before."""
        with self._faults():
            if kernel not in self._kernels:
                self._kernels[kernel] = self._module.get_function(kernel)
            self._kernels[kernel]((n_blocks,), (n_threads,), (arguments,), shared_mem=4 * n_room)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn errors of the GPU into advice."""
        cuda = self._cupy.cuda
        try:
            yield
        except cuda.memory.OutOfMemoryError as error:
            raise MemoryError(f"device='cuda': the GPU is out of memory: {error}") from error
        except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            raise RuntimeError(f"device='cuda': the GPU failed: {error}") from error
        except cuda.compiler.CompileException as error:
            raise RuntimeError(
                f"device='cuda': the kernels can't be compiled for this GPU: {error}"
            ) from error


def digest(folders: list[Path]) -> str:
    """Return a digest of all sources in some folders."""
    files = sorted(file for folder in folders for file in folder.iterdir() if file.suffix in ("", ".h"))
    content = b"".join(file.read_bytes() for file in files if file.is_file())
    return str(int.from_bytes(hashlib.sha256(content).digest()[:8]))


def open_device() -> Device:
    """Return the GPU; raise if none can be used."""
    with needed("device='cuda' needs CuPy", "cuda"):
        import cupy
    return _opened(cupy)


@cache
def _opened(cupy: Any) -> CudaDevice:
    runtime = cupy.cuda.runtime
    try:
        driver, wanted = runtime.driverGetVersion(), runtime.runtimeGetVersion()
        if driver < wanted // 1000 * 1000:
            found = f"it supports CUDA {version_of(driver)}" if driver else "there is none"
            raise RuntimeError(
                f"device='cuda' needs a driver for CUDA {version_of(wanted)}, which CuPy is made for: {found}"
            )
        if not runtime.getDeviceCount():
            raise RuntimeError("device='cuda' finds no GPU")
    except runtime.CUDARuntimeError as error:
        raise RuntimeError(f"device='cuda' finds no GPU that it can use: {error}") from error
    return CudaDevice(cupy)


def version_of(number: int) -> str:
    """Format a version of CUDA.

    Examples
    --------
    >>> from kfhe.cuda.device import version_of
    >>> version_of(12080)
    '12.8'
    """
    return f"{number // 1000}.{number % 1000 // 10}"
