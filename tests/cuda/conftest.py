"""Where there is no GPU, ``device="cuda"`` is one that runs the kernels on this machine's processor."""

import pytest
from host_device import some_device

from kfhe.cuda import rows


@pytest.fixture
def device(monkeypatch):
    device = some_device()
    monkeypatch.setattr(rows, "open_device", lambda: device)
    return device
