"""A bank of filters whose states are honest: a component moves only the rows that it has not seen.

All filters of a bank see the same components, with votes that are shrunken more or less. A row's state is the
mean of the votes that it got: each is as noisy as any other, so the gain is 1 / (1 + those before). Scores are
summed as fixed-point integers, so that threads don't show.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

from kfhe.engine.arrays cimport largest

import numpy as np

cdef enum:
    CHUNK = 4096
    PARALLEL_CELLS = 262144

cdef double UNIT = 2.0**50  # sums are of multiples of 1 / UNIT


cdef void correct_rows(
    double *states, int64_t n_filters, int64_t n_rows, int64_t n_classes, const int32_t *leaves, const double *votes,
    int64_t n_leaves, const int32_t *counts, int32_t *n_read, int64_t start, int64_t stop,
) noexcept nogil:
    """Move the states of those of some rows that are not in the sample."""
    cdef int32_t unseen[CHUNK]
    cdef double gains[CHUNK]
    cdef int64_t b, i, k, n = 0
    cdef const double *vote
    cdef double *row
    for i in range(start, stop):
        unseen[n], gains[n] = <int32_t> i, 1.0 / (1 + n_read[i])
        n += counts[i] == 0
        n_read[i] += counts[i] == 0
    for b in range(n_filters):
        for i in range(n):
            vote = &votes[(b * n_leaves + leaves[unseen[i]]) * n_classes]
            row = &states[(b * n_rows + unseen[i]) * n_classes]
            for k in range(n_classes):
                row[k] += gains[i] * (vote[k] - row[k])


cdef int64_t brier_of(
    const double *state, const int32_t *labels, const double *base, int64_t n_classes, int64_t start, int64_t stop
) noexcept nogil:
    """Sum up the Brier score of some rows, in units."""
    cdef int64_t i, k, total = 0
    cdef double squares, difference
    cdef const double *row
    for i in range(start, stop):
        row = &state[i * n_classes]
        squares = 0
        for k in range(n_classes):
            difference = row[k] - (k == labels[i])
            squares += difference * difference
        total += <int64_t> (base[i] * squares * UNIT + 0.5)
    return total


# What rows weigh, in units.
cdef struct Missed:
    int64_t wrong
    int64_t unseen


cdef Missed miss_rows(
    const int32_t *leaves, const int32_t *classes, const int32_t *counts, const int32_t *labels, const double *base,
    int64_t start, int64_t stop, cpp_bool *missed,
) noexcept nogil:
    """Say which of some rows that are not in the sample are missed, by the classes of their leaves."""
    cdef Missed total
    cdef int64_t i, units
    total.wrong = total.unseen = 0
    for i in range(start, stop):
        if counts[i] > 0:
            continue
        units = <int64_t> (base[i] * UNIT + 0.5)
        missed[i] = classes[leaves[i]] != labels[i]
        total.unseen += units
        total.wrong += units * missed[i]
    return total


cdef class HonestBank:
    """The states of a bank of filters.

    Parameters
    ----------
    labels : int32 array of shape (n_rows,)
        The rows' classes.
    base : array of shape (n_rows,)
        Their base weights, which sum to 1.
    prior : array of shape (n_classes,)
        Shares of the classes: the state of each row that no component has read yet.
    n_filters : int
        How many filters there are.
    n_threads : int
        Threads that share a large table.

    Attributes
    ----------
    states : array of shape (n_filters, n_rows, n_classes)
        The states.
    n_read : int32 array of shape (n_rows,)
        By how many components each row was read.
    """

    cdef readonly object states, n_read
    cdef object arguments  # of the constructor, for pickling
    cdef const int32_t[::1] labels
    cdef const double[::1] base, prior
    cdef double[:, :, ::1] cells
    cdef int32_t[::1] read
    cdef int64_t n, n_classes, n_filters, n_chunks
    cdef int n_threads

    def __cinit__(self, labels, base, prior, int64_t n_filters, int n_threads=1):
        self.arguments = (labels, base, prior, n_filters, n_threads)
        self.labels, self.base, self.prior = labels, base, prior
        self.n, self.n_classes, self.n_filters = len(labels), len(prior), n_filters
        self.n_chunks = (self.n + CHUNK - 1) // CHUNK
        self.n_threads = n_threads if self.n * self.n_classes * n_filters >= PARALLEL_CELLS else 1
        self.states = np.empty((n_filters, self.n, self.n_classes))
        self.n_read = np.zeros(self.n, dtype=np.int32)
        self.cells, self.read = self.states, self.n_read
        cdef int64_t c
        for c in prange(n_filters * self.n_chunks, nogil=True, num_threads=self.n_threads, schedule="static"):
            self.begin(c // self.n_chunks, c % self.n_chunks * CHUNK)

    cdef void begin(self, int64_t b, int64_t start) noexcept nogil:
        """Let the states of some rows be the prior."""
        cdef int64_t i
        for i in range(start, min(self.n, start + CHUNK)):
            memcpy(&self.cells[b, i, 0], &self.prior[0], self.n_classes * sizeof(double))

    def __reduce__(self):
        return restored, (self.arguments, self.states, self.n_read)

    def update(self, const int32_t[::1] leaves, const double[:, :, ::1] votes, const int32_t[::1] counts):
        """Let a component move the rows that it has not seen (counts 0) towards what their leaves vote for.

        ``votes`` has the shape (n_filters, n_leaves, n_classes).
        """
        cdef int64_t c
        for c in prange(self.n_chunks, nogil=True, num_threads=self.n_threads, schedule="dynamic"):
            correct_rows(
                &self.cells[0, 0, 0], self.n_filters, self.n, self.n_classes, &leaves[0], &votes[0, 0, 0],
                votes.shape[1], &counts[0], &self.read[0], c * CHUNK, min(self.n, (c + 1) * CHUNK),
            )

    def state(self, int64_t b):
        """Return the state of one filter: a score per row and class."""
        return self.states[b]

    def label_scores(self, int64_t b):
        """Return the score of each row's label in the state of one filter."""
        cdef int64_t i
        result = np.empty(self.n)
        cdef double[::1] scores = result
        for i in prange(self.n, nogil=True, num_threads=self.n_threads, schedule="static"):
            scores[i] = self.cells[b, i, self.labels[i]]
        return result

    def brier_scores(self):
        """Return the Brier score of each filter."""
        cdef int64_t b, c, total
        result = np.empty(self.n_filters)
        for b in range(self.n_filters):
            total = 0
            for c in prange(self.n_chunks, nogil=True, num_threads=self.n_threads, schedule="dynamic"):
                total += brier_of(
                    &self.cells[b, 0, 0], &self.labels[0], &self.base[0], self.n_classes,
                    c * CHUNK, min(self.n, (c + 1) * CHUNK),
                )
            result[b] = total / UNIT
        return result

    def misses(self, const int32_t[::1] leaves, const double[:, ::1] votes, const int32_t[::1] counts):
        """Say which of the rows that a component has not seen it misses; what these weigh, and all that it has not seen."""
        cdef int64_t c, i, n_leaves = votes.shape[0]
        cdef vector[int32_t] classes = vector[int32_t](n_leaves)
        cdef vector[Missed] sums = vector[Missed](self.n_chunks)
        cdef Missed total
        result = np.zeros(self.n, dtype=bool)
        cdef cpp_bool[::1] missed = result
        for i in range(n_leaves):
            classes[i] = <int32_t> largest(&votes[i, 0], self.n_classes)
        for c in prange(self.n_chunks, nogil=True, num_threads=self.n_threads, schedule="dynamic"):
            sums[c] = miss_rows(
                &leaves[0], classes.data(), &counts[0], &self.labels[0], &self.base[0], c * CHUNK,
                min(self.n, (c + 1) * CHUNK), &missed[0],
            )
        total.wrong = total.unseen = 0
        for c in range(self.n_chunks):
            total.wrong += sums[c].wrong
            total.unseen += sums[c].unseen
        return result, total.wrong / UNIT, total.unseen / UNIT


def restored(arguments, states, n_read):
    """Bring a pickled bank back."""
    bank = HonestBank(*arguments)
    bank.states[:] = states
    bank.n_read[:] = n_read
    return bank
