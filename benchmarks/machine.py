"""The machine: what it is, how busy it is, and how much memory a process has used."""

from __future__ import annotations

import os
import platform
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


def facts() -> dict[str, Any]:
    """Return what figures depend on, as a part of a run's settings."""
    return {
        "cpus": os.cpu_count(),
        "load": load_average(),
        "machine": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def load_average() -> float | None:
    """Return how many processes have been running or waiting; None where nobody counts them (Windows)."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def memory(*, reset_peak: bool = False) -> tuple[int, int] | None:
    """Return the bytes in use and the most that were in use; None where neither is told (Windows)."""
    status = Path("/proc/self/status")
    if status.is_file():
        # Linux. Not ru_maxrss: there, it starts with the peak of the process that started this one.
        if reset_peak:
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")
        kilobytes = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+)", status.read_text()))
        return 1024 * int(kilobytes["VmRSS"]), 1024 * int(kilobytes["VmHWM"])
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak, peak
