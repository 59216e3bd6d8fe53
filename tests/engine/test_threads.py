"""How many threads the engine takes for n_jobs."""

import multiprocessing
import os
import subprocess
import sys

import pytest

from kfhe.engine.threads import thread_count


def test_none_stays_within_the_cores_of_this_process():
    assert 1 <= thread_count(None) <= os.cpu_count()


def test_a_positive_number_is_taken_as_it_is_but_not_beyond_reason():
    assert thread_count(3) == 3
    assert thread_count(10**30) == 256


def test_negative_numbers_count_back_from_all_cores():
    assert thread_count(-1) == os.cpu_count()
    assert thread_count(-1000) == 1


def test_zero_is_refused():
    with pytest.raises(ValueError, match=r"n_jobs must be a number of threads, .* got 0"):
        thread_count(0)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_works_alone():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(thread_count, (2,)) == 1


SPINS = "import os, kfhe.engine.arrays; print(sorted(os.environ.keys() & {'GOMP_SPINCOUNT'}))"


def loaded(**environment):
    """Return what a program prints that loads the engine, and what OpenMP says of its settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GOMP_", "OMP_"))}
    environment = {**clean, "OMP_DISPLAY_ENV": "VERBOSE", **environment}
    program = subprocess.run(
        [sys.executable, "-c", SPINS], env=environment, capture_output=True, text=True, check=True
    )
    if "GOMP_SPINCOUNT" not in program.stderr:
        pytest.skip("not GNU's OpenMP")
    return program.stdout.strip(), program.stderr


def test_threads_that_wait_soon_sleep_and_the_environment_stays_as_it_was():
    environment, settings = loaded()
    assert environment == "[]"
    assert "GOMP_SPINCOUNT = '300'" in settings


def test_how_long_threads_spin_is_up_to_the_user():
    environment, settings = loaded(GOMP_SPINCOUNT="77")
    assert environment == "['GOMP_SPINCOUNT']"
    assert "GOMP_SPINCOUNT = '77'" in settings
    assert "GOMP_SPINCOUNT = '300'" not in loaded(OMP_WAIT_POLICY="passive")[1]
