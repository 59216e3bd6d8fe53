"""A device that is none: the very kernels, compiled for this machine's processor, on arrays of NumPy."""

import ctypes
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock

import numpy as np
import pytest

import kfhe.cuda
from kfhe.cuda.device import INCLUDED, open_device

ON_GPU = os.environ.get("KFHE_TEST_DEVICE") == "cuda"  # as `make test-cuda` has it

ONE_AT_A_TIME = Lock()
SOURCES = Path(kfhe.cuda.__file__).parent
FLAGS = ["-std=c++20", "-O1", "-g", "-ffp-contract=off", "-fPIC", "-shared", "-pthread"]


@cache
def kernels():
    """Compile the kernels; skip the test if nothing here can."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs g++ or clang++")
    library = Path(mkdtemp()) / "kernels.so"
    places = [f"-I{SOURCES / folder}" for folder in INCLUDED[1:]]  # the library of C++ is the compiler's own
    command = [compiler, *FLAGS, *places, "-x", "c++", str(SOURCES / "kernels.cu"), "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def some_device(*options, **further):
    """Return the GPU, if tests are to run on one; else a device here."""
    return open_device() if ON_GPU else HostDevice(*options, **further)


class Cells:
    """An array that NumPy can't read, as if it were on a GPU."""

    __array_ufunc__ = None

    def __init__(self, cells):
        self.cells, self.dtype, self.nbytes = cells, cells.dtype, cells.nbytes

    def __array__(self, *options, **further):
        raise TypeError("this array is on a device")

    def __len__(self):
        return len(self.cells)

    def __getitem__(self, key):
        assert isinstance(key, slice)
        return Cells(self.cells[key])

    def __setitem__(self, key, value):
        self.cells[key] = value.cells if isinstance(value, Cells) else value

    def copy(self):
        return Cells(self.cells.copy())


class HostDevice:
    """Runs kernels here.

    Parameters
    ----------
    n_blocks : int
        Number of blocks.
    n_threads : int
        Number of threads of each block.
    backwards : bool
        Whether blocks and threads take turns in the opposite order.
    """

    def __init__(self, n_blocks=3, n_threads=1, backwards=False):
        self.n_blocks, self._n_threads, self._backwards = n_blocks, n_threads, backwards
        self._kernels = kernels()
        self.memory = 1 << 30
        self.launched = []

    def empty(self, n, dtype):
        return Cells(np.full(n * np.dtype(dtype).itemsize, 0xA5, dtype=np.uint8).view(dtype))

    def zeros(self, n, dtype):
        return Cells(np.zeros(n, dtype))

    def put(self, array):
        return Cells(np.array(array, order="C"))

    def get(self, array):
        return array.cells.copy()

    def address(self, array):
        assert array.cells.flags.c_contiguous
        return array.cells.ctypes.data

    def free_bytes(self):
        return self.memory

    def launch(self, kernel, arguments, n_blocks, n_threads, n_room=0):
        self.launched.append(kernel)
        launch = np.array([n_blocks, self._n_threads, self._backwards, n_room], dtype=np.int64)
        run = getattr(self._kernels, kernel)
        run.restype = ctypes.c_bool
        with ONE_AT_A_TIME:
            kept_to_room = run(ctypes.c_void_p(arguments.ctypes.data), ctypes.c_void_p(launch.ctypes.data))
        assert kept_to_room, f"{kernel} has written beyond {n_room} numbers"
