"""Data and settings that many tests share."""

import signal
import sys

import numpy as np
import pytest
from browser import chromium
from hypothesis import settings
from sklearn.datasets import load_iris

from kfhe.noise import flip_labels

settings.register_profile("kfhe", deadline=None)  # a busy machine is no failure
settings.load_profile("kfhe")

# A job in the background ignores Ctrl-C, and so would the processes that tests start
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item):
    if sys.platform == "win32" and item.get_closest_marker("posix"):
        pytest.skip("Windows has no such signals, links, pipes or limits")


@pytest.fixture(scope="session")
def iris():
    """Return iris with a tenth of the labels changed, so that training doesn't stop early."""
    X, y = load_iris(return_X_y=True)
    y = flip_labels(y, 0.1, random_state=0)
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as chrome:
        yield chrome
