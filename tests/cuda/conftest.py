"""Where there is no GPU, ``device="cuda"`` is one that runs the kernels on this machine's processor."""

import pytest
from host_device import HostDevice

from kfhe.cuda import rows


@pytest.fixture
def device(monkeypatch):
    device = HostDevice()
    monkeypatch.setattr(rows, "open_device", lambda: device)
    return device
