"""What can be wrong with a GPU is one clear error each; CuPy is played here, as there is no GPU."""

import contextlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kfhe import KFHEClassifier
from kfhe.cuda import device


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class CompileException(Exception):  # noqa: N818
    pass


class Placed(np.ndarray):
    """An array as CuPy shows where it is."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


class Module:
    """What CuPy makes of sources; all that was launched is noted."""

    def __init__(self, played, code, options):
        self.played, self.code, self.options = played, code, options
        played.module = self

    def compile(self):
        if self.played.compiling is not None:
            raise self.played.compiling

    def get_function(self, name):
        def kernel(grid, block, arguments, shared_mem):
            if self.played.running is not None:
                raise self.played.running
            self.played.launched.append((name, grid, block, shared_mem))

        return kernel


class PlayedCupy(SimpleNamespace):
    """CuPy on a machine whose driver, GPUs and memory are as one likes."""

    def __init__(self, *, driver=12080, counting=lambda: 1, compiling=None, running=None, making=None):
        def zeros(n, dtype):
            if making is not None:
                raise making
            return np.zeros(n, dtype).view(Placed)

        runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            driverGetVersion=lambda: driver,
            runtimeGetVersion=lambda: 12090,
            getDeviceCount=counting,
        )
        gpu = SimpleNamespace(attributes={"MultiProcessorCount": 132}, mem_info=(5 << 30, 8 << 30))
        super().__init__(
            cuda=SimpleNamespace(
                runtime=runtime,
                driver=SimpleNamespace(CUDADriverError=CUDADriverError),
                memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
                compiler=SimpleNamespace(CompileException=CompileException),
                Device=lambda: gpu,
            ),
            get_default_memory_pool=lambda: SimpleNamespace(free_bytes=lambda: 1 << 30),
            RawModule=lambda code, options: Module(self, code, options),
            zeros=zeros,
            empty=zeros,
            asarray=lambda array: np.array(array).view(Placed),
            asnumpy=np.array,
            compiling=compiling,
            running=running,
            launched=[],
        )

    __hash__ = object.__hash__


@contextlib.contextmanager
def played(monkeypatch, **options):
    cupy = PlayedCupy(**options)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    yield cupy


def no_gpu():
    raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"driver": 0}, "needs a driver for CUDA 12.9, which CuPy is made for: there is none"),
        ({"driver": 11040}, "which CuPy is made for: it supports CUDA 11.4"),
        ({"counting": lambda: 0}, "finds no GPU"),
        ({"counting": no_gpu}, "finds no GPU that it can use: cudaErrorNoDevice"),
        ({"compiling": CompileException("no such arch")}, "can't be compiled for this GPU: no such arch"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_told_before_training(monkeypatch, iris, options, message):
    with played(monkeypatch, **options), pytest.raises(RuntimeError, match=message):
        KFHEClassifier(device="cuda").fit(*iris)


def test_without_cupy_the_extra_is_named(monkeypatch, iris):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r'device=\'cuda\' needs CuPy: pip install "kfhe\[cuda\]"'):
        KFHEClassifier(device="cuda").fit(*iris)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"running": CUDARuntimeError("the GPU has fallen off the bus")}, RuntimeError, "fallen off the bus"),
        (
            {"running": CUDADriverError("an illegal address")},
            RuntimeError,
            "the GPU failed: an illegal address",
        ),
        ({"making": OutOfMemoryError("4 bytes")}, MemoryError, "the GPU is out of memory: 4 bytes"),
    ],
)
def test_a_gpu_that_fails_is_told_and_the_model_stays_as_it_was(monkeypatch, iris, options, error, message):
    model = KFHEClassifier(n_estimators=2, random_state=0).fit(*iris)
    before = dict(vars(model.set_params(device="cuda")))
    with played(monkeypatch, **options), pytest.raises(error, match=message):
        model.fit(*iris)
    assert vars(model) == before


def test_a_device_has_what_is_free_and_launches_kernels(monkeypatch):
    with played(monkeypatch) as cupy:
        gpu = device.open_device()
        assert gpu is device.open_device()
        assert gpu.free_bytes() == 6 << 30
        gpu.launch("build", np.zeros(()), 7, 64, 10)
        assert cupy.launched == [("build", (7,), (64,), 40)]
        np.testing.assert_array_equal(gpu.get(gpu.put(np.arange(3))), [0, 1, 2])


def test_the_compiler_is_told_not_to_fuse_and_what_the_sources_are(monkeypatch):
    with played(monkeypatch) as cupy:
        device.open_device()
    options = cupy.module.options
    assert "--fmad=false" in options
    folders = [Path(option[2:]) for option in options if option.startswith("-I")]
    for name in ("cmath", "block.h", "philox.h", "rules.h", "search.h", "categories.h"):
        assert any((folder / name).is_file() for folder in folders), name
    assert options[-1] == f"-DSOURCES={device.digest(folders)}"


def test_other_sources_have_another_name(tmp_path):
    (tmp_path / "a.h").write_text("one")
    before = device.digest([tmp_path])
    (tmp_path / "a.h").write_text("two")
    assert device.digest([tmp_path]) != before
