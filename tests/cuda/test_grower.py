"""Trees that are grown by the kernels are those of the engine, bit by bit."""

import numpy as np
import pytest
from cuda.host_device import HostDevice
