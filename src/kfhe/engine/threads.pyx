"""How many threads the engine may use."""

import os

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    static int kfhe_max_threads(void) { return omp_get_max_threads(); }
    #else
    static int kfhe_max_threads(void) { return 1; }
    #endif
    """
    int kfhe_max_threads() noexcept nogil

MOST_THREADS = 256  # OpenMP aborts the process if the system has no more threads

_forked = False


def _after_fork():
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def thread_count(n_jobs=None):
    """Return the number of threads for ``n_jobs``, as in scikit-learn, up to OpenMP's current limit.

    OpenMP's threads do not survive a fork, so a forked child uses one thread.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must be a number of threads, negative (-1: all cores) or None, got 0")
    if _forked:
        return 1
    allowed = kfhe_max_threads()
    if n_jobs is None:
        return min(allowed, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else allowed)
    if n_jobs < 0:
        return max(1, (os.cpu_count() or 1) + 1 + n_jobs)
    return min(n_jobs, MOST_THREADS)
