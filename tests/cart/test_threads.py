"""Threads: as many as are asked for and make sense."""

import os

import numpy as np
import pytest

from kfhe import CARTClassifier, KFHEClassifier
from kfhe.cart.threads import thread_count

CPUS = os.cpu_count() or 1


def test_n_jobs_counts_as_in_scikit_learn():
    assert thread_count(1) == 1
    assert thread_count(2) == 2
    assert thread_count(-1) == CPUS
    assert thread_count(-CPUS - 5) == 1
    assert 1 <= thread_count() <= CPUS


def test_no_number_of_jobs_floods_the_system():
    X = np.random.default_rng(0).normal(size=(4000, 10))
    y = X[:, 0] > 0
    assert thread_count(10**9) <= 4 * CPUS
    few, many = (CARTClassifier(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 10**9))
    np.testing.assert_array_equal(few.tree_.nodes, many.tree_.nodes)


@pytest.mark.parametrize("model", [CARTClassifier(n_jobs=0), KFHEClassifier(n_jobs=0)])
def test_zero_jobs_are_refused(model):
    with pytest.raises(ValueError, match="'n_jobs' parameter"):
        model.fit([[0.0], [1.0]], [0, 1])
