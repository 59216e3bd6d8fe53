"""Memory that is used again, but never while anybody has an array in it."""

import pickle
from types import SimpleNamespace

import pytest

from kfhe.dask import rooms as module
from kfhe.dask.rooms import FreedMemory, Rooms


def test_memory_is_used_again_when_nobody_has_the_array():
    rooms = Rooms()
    array = rooms.empty((10, 2))
    place = array.ctypes.data
    del array
    assert rooms.empty((20,)).ctypes.data == place


def test_memory_is_not_used_while_there_is_an_array_or_a_view_of_it():
    rooms = Rooms()
    arrays = [rooms.empty((10, 2)) for _ in range(3)]
    views = [array.ravel()[3:] for array in arrays]
    places = {array.ctypes.data for array in arrays}
    assert len(places) == 3
    del arrays
    another = rooms.empty((10, 2))
    assert another.ctypes.data not in places
    buffer = memoryview(another)
    place = another.ctypes.data
    del another, views
    assert place not in {rooms.empty((10, 2)).ctypes.data, rooms.empty((10, 2)).ctypes.data}
    assert len(buffer) == 10


def test_only_arrays_of_the_same_size_share_memory():
    rooms = Rooms()
    place = rooms.empty((10,)).ctypes.data
    kept = rooms.empty((11,))
    assert kept.ctypes.data != place


def test_rooms_that_are_sent_are_empty():
    rooms = Rooms()
    rooms.empty((1000,))
    assert len(pickle.dumps(rooms)) < 100
    assert pickle.loads(pickle.dumps(rooms)).empty((2,)).shape == (2,)


def test_a_worker_that_has_little_memory_left_keeps_none_for_later(monkeypatch):
    rooms = Rooms()
    kept = rooms.empty((10,))
    kept[:] = 1
    worker = SimpleNamespace(memory_manager=SimpleNamespace(memory_limit=1000))
    monkeypatch.setattr(module, "get_worker", lambda: worker)
    assert rooms.empty((10,)).base is None
    assert not rooms._rooms
    assert (kept == 1).all()


@pytest.fixture
def told(monkeypatch):
    """What the C library is told, in a process whose memory Dask has given back at once."""
    told = []
    library = SimpleNamespace(
        mallopt=lambda what, size: told.append(size), malloc_trim=lambda pad: told.append(pad)
    )
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: library)
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    return told


def test_freed_memory_is_kept_until_little_is_left_and_then_given_back(monkeypatch, told):
    freed = FreedMemory()
    for _ in range(2):
        freed.keep_if_plenty()
    assert told == [2**27, 2**25]
    worker = SimpleNamespace(memory_manager=SimpleNamespace(memory_limit=1000))
    monkeypatch.setattr(module, "get_worker", lambda: worker)
    freed.keep_if_plenty()
    assert told[2:] == [2**16, 2**17, 0]


@pytest.mark.parametrize(
    ("name", "value"), [("MALLOC_TRIM_THRESHOLD_", None), ("MALLOC_MMAP_THRESHOLD_", "1")]
)
def test_what_users_have_said_of_freed_memory_holds(monkeypatch, told, name, value):
    monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    FreedMemory().keep_if_plenty()
    assert not told


def test_a_c_library_that_can_not_be_told_is_left_alone(monkeypatch, told):
    monkeypatch.setattr(module.ctypes, "CDLL", lambda name: SimpleNamespace())
    FreedMemory().keep_if_plenty()
    assert not told
