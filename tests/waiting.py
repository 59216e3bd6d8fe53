"""Waiting for what takes a moment, or much longer where the machine is busy."""

import time

PATIENCE = 60  # seconds: more than anything takes on a busy machine


def wait_until(condition):
    """Wait until something holds; fail if it doesn't in the long run. Return what the condition returned."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found
