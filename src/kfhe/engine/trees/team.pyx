"""The team: how many threads grow the next tree.

The tree doesn't depend on it, so speed decides. On a busy machine threads wait for each other longer than
they work; so both ways are timed, and the faster one is taken.
"""

cimport cython
from libc.stdint cimport int64_t

cdef enum:
    PARALLEL_CELLS = 32768  # rows times features from which threads may be worth their start,
    SURELY_PARALLEL_CELLS = 4194304  # and from which they surely are
    TRIAL_TREES = 16  # in between, the slower way is tried again after so many trees
    HOPELESS = 4  # times slower: then it is not, as a trial may cost a few trees' time and not more


@cython.final
cdef class Team:
    """Chooses between one thread and all of them.

    Parameters
    ----------
    n_threads : int
        Number of threads that may be used.
    always : bool
        Use them on small tables too.
    """

    def __cinit__(self, int n_threads, bint always=False):
        self.n_threads, self.always = n_threads, always
        self.seconds_per_cell[0] = self.seconds_per_cell[1] = 0
        self.n_timed = 0

    cpdef int size(self, int64_t n_cells) noexcept nogil:
        """Return how many threads to grow a tree of so many cells (rows times features) with."""
        cdef bint parallel = self.seconds_per_cell[1] <= self.seconds_per_cell[0]
        if self.always or self.n_threads == 1 or n_cells >= SURELY_PARALLEL_CELLS:
            return self.n_threads
        if n_cells < PARALLEL_CELLS:
            return 1
        self.n_timed += 1
        if self.n_timed % TRIAL_TREES == 0:
            if self.seconds_per_cell[not parallel] < HOPELESS * self.seconds_per_cell[parallel]:
                parallel = not parallel
        return self.n_threads if parallel else 1

    cpdef void worked(self, int n_threads, int64_t n_cells, double seconds) noexcept nogil:
        """Note how long a tree has taken."""
        self.seconds_per_cell[n_threads > 1] = seconds / <double> n_cells
