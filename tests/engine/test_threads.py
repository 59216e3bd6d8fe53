"""How many threads the engine takes for n_jobs."""

import multiprocessing
import os

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
