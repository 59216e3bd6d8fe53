"""Memory: whatever is fitted, audited, saved and loaded over and over, no more of it is in use."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import gc, json

import numpy as np
import scipy.sparse as sp

import kfhe
from kfhe import EarlyStopping, KFHEClassifier, RobustKFHEClassifier
from kfhe.audit import label_quality

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 10))
y = (X[:, 0] + rng.normal(size=3000) > 0).astype(int)
S = sp.random(3000, 20, 0.1, "csr", random_state=0)
small = {"n_estimators": 5, "random_state": 0, "n_jobs": 2}
held_back = EarlyStopping(2, validation_fraction=0.2)


def saved_and_loaded():
    KFHEClassifier(**small).fit(X, y).save("model.kfhe")
    kfhe.load("model.kfhe").predict_proba(X)


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4  # pages of 4 KiB


def growth(work):
    # The least of three rounds: what leaks is lost in each of them, what the allocator keeps settles.
    for _ in range(10):
        work()
    least = float("inf")
    for _ in range(3):
        before = resident()
        for _ in range(40):
            work()
        least = min(least, resident() - before)
        if least <= 300:
            break
    return least


cases = {
    "kfhe": lambda: KFHEClassifier(**small).fit(X, y).predict(X),
    "robust": lambda: RobustKFHEClassifier(**small).fit(X, y).predict_proba(X),
    "sparse": lambda: RobustKFHEClassifier(**small).fit(S, y).predict(S),
    "validation set": lambda: KFHEClassifier(**small, early_stopping=2).fit(X, y, X_val=X, y_val=y),
    "rows held back": lambda: RobustKFHEClassifier(**small, early_stopping=held_back).fit(X, y),
    "audit": lambda: label_quality(X, y, **small),
    "saved and loaded": saved_and_loaded,
}
print(json.dumps({name: growth(work) for name, work in cases.items()}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what is resident is told elsewhere by other means")
def test_forty_more_times_take_no_more_memory(tmp_path):
    """Had each left the bins of its rows behind, a byte per value, that would be 1,200 KiB."""
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {name: grown for name, grown in json.loads(done.stdout).items() if grown > 600} == {}
