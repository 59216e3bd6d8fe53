"""The compiled engine: draws, trees and the array work of the two filters."""

import os
from importlib import import_module

# Threads that wait for work spin for some microseconds, and then sleep. OpenMP's own default is to spin for
# long: on a busy machine those who wait keep the others from working. GNU's OpenMP asks the environment once,
# when it is loaded.
if not os.environ.keys() & {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}:
    os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        import_module("kfhe.engine.threads")
    finally:
        del os.environ["GOMP_SPINCOUNT"]
