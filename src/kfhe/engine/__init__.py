"""The compiled engine: draws, bins, trees, and array operations of the filters."""

import os
from importlib import import_module

# Threads that wait for work spin for some microseconds, then sleep. By default, OpenMP's threads spin for a
# long time: on a busy machine, waiting threads keep others from working. GNU's OpenMP reads the environment
# only when it is loaded.
if not os.environ.keys() & {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}:
    os.environ["GOMP_SPINCOUNT"] = "300"
    try:
        import_module("kfhe.engine.threads")
    finally:
        del os.environ["GOMP_SPINCOUNT"]
