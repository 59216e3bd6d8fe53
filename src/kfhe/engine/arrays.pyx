"""Array operations of the two filters, with one pass over the rows per call.

Sums are over integers, so they do not depend on the order or the number of threads. Each operation is a
function of a range of rows. A small table is one range; a large one is cut into chunks of CHUNK rows for
threads. (even a single OpenMP thread would take longer than a small table does.)
"""

from cython.parallel cimport prange
from libc.math cimport NAN, frexp, ldexp
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp cimport bool as cpp_bool
from libcpp.vector cimport vector

import numpy as np

cdef enum:
    CHUNK = 8192
    PARALLEL_CELLS = 262144


cdef inline int64_t chunks(int64_t n, int64_t cells, int n_threads) noexcept nogil:
    """Number of chunks; 1: no threads."""
    return (n + CHUNK - 1) // CHUNK if n_threads > 1 and cells >= PARALLEL_CELLS else 1


cdef void correct_range(double *state, const double *measurement, double gain, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        state[i] += gain * (measurement[i] - state[i])


def correct(double[::1] state, const double[::1] measurement, double gain, int n_threads=1):
    """Move a state towards a measurement, in place: ``state += gain * (measurement - state)``."""
    cdef int64_t n = state.shape[0], c, n_chunks = chunks(n, n, n_threads)
    if n == 0:
        return
    if n_chunks == 1:
        correct_range(&state[0], &measurement[0], gain, n)
        return
    for c in prange(n_chunks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        correct_range(
            &state[c * CHUNK], &measurement[c * CHUNK], gain, min(<int64_t> CHUNK, n - c * CHUNK)
        )


cdef inline int64_t units_of(double weight) noexcept nogil:
    """A base weight in units of 2^-60."""
    return <int64_t> (weight * 1152921504606846976.0 + 0.5)


cdef struct Measured:
    int64_t measurement_units
    int64_t component_units


cdef Measured measure_range(
    const double *scores, const int32_t *voted, const double *vote_scores, const int32_t *labels,
    const double *base, double fusion, double *measurement, uint8_t *missed, int64_t n_classes,
    int64_t start, int64_t stop,
) noexcept nogil:
    """Measure some rows; either ``voted`` or ``vote_scores`` is NULL."""
    cdef Measured sums
    cdef const double *s
    cdef double *z
    cdef int64_t i, k, vote
    cdef double rest = 1 - fusion
    sums.measurement_units = sums.component_units = 0
    for i in range(start, stop):
        s = &scores[i * n_classes]
        z = &measurement[i * n_classes]
        if voted != NULL:
            vote = voted[i]
            for k in range(n_classes):
                z[k] = rest * s[k]
            z[vote] = rest * s[vote] + fusion
        else:
            vote = largest(&vote_scores[i * n_classes], n_classes)
            for k in range(n_classes):
                z[k] = rest * s[k] + fusion * vote_scores[i * n_classes + k]
        missed[i] = largest(z, n_classes) != labels[i]
        sums.measurement_units += missed[i] * units_of(base[i])
        sums.component_units += (vote != labels[i]) * units_of(base[i])
    return sums


cdef int64_t missed_range(
    const double *scores, const int32_t *labels, const double *base, int64_t n_classes, int64_t start, int64_t stop
) noexcept nogil:
    cdef int64_t i, total = 0
    for i in range(start, stop):
        total += (largest(&scores[i * n_classes], n_classes) != labels[i]) * units_of(base[i])
    return total


cdef class Measurer:
    """Computes measurements of the training rows, and their errors.

    Parameters
    ----------
    labels : int32 array of shape (n_rows,)
        The rows' classes.
    base : array of shape (n_rows,)
        Their base weights, which sum to 1. Misses are summed over them in units of 2^-60.
    n_classes : int
        Number of classes.
    n_threads : int
        Number of threads for a large table.

    Attributes
    ----------
    measurement : array of shape (n_rows, n_classes)
        The last measurement z.
    missed : bool array of shape (n_rows,)
        The rows that it misclassifies.
    """

    cdef readonly object measurement, missed
    cdef object arguments  # of the constructor, for pickling
    cdef const int32_t[::1] labels
    cdef const double[::1] base
    cdef double[:, ::1] z
    cdef uint8_t[::1] flags
    cdef int64_t n, n_classes, n_chunks, weight
    cdef int n_threads

    def __cinit__(self, labels, base, int64_t n_classes, int n_threads=1):
        self.labels = labels
        self.arguments = (labels, base, n_classes, n_threads)
        self.base = base
        self.weight = -1
        self.n, self.n_classes, self.n_threads = len(labels), n_classes, n_threads
        self.n_chunks = chunks(self.n, self.n * n_classes, n_threads)
        self.measurement = np.empty((self.n, n_classes))
        self.missed = np.empty(self.n, dtype=bool)
        self.z, self.flags = self.measurement, self.missed.view(np.uint8)

    def __reduce__(self):
        return Measurer, self.arguments

    @property
    def total(self):
        """The weight of all rows, in units."""
        cdef int64_t i
        if self.weight < 0:
            self.weight = 0
            for i in range(self.n):
                self.weight += units_of(self.base[i])
        return self.weight

    def measure(self, const double[:, ::1] scores, votes, double fusion):
        """Compute the measurement z = (1 - fusion) * scores + fusion * votes.

        ``votes`` has a class per row, or a score per row and class. Returns the weight of the rows that the
        measurement misses, and of those that the votes alone miss, in units.
        """
        cdef int64_t c, measured = 0, alone = 0
        cdef const int32_t[::1] classes
        cdef const double[:, ::1] class_scores
        cdef const int32_t *voted = NULL
        cdef const double *vote_scores = NULL
        cdef Measured sums
        if votes.ndim == 1:
            classes = votes
            voted = &classes[0]
        else:
            class_scores = votes
            vote_scores = &class_scores[0, 0]
        if self.n_chunks == 1:
            sums = measure_range(
                &scores[0, 0], voted, vote_scores, &self.labels[0], &self.base[0], fusion,
                &self.z[0, 0], &self.flags[0], self.n_classes, 0, self.n,
            )
            return sums.measurement_units, sums.component_units
        for c in prange(self.n_chunks, nogil=True, num_threads=self.n_threads, schedule="dynamic"):
            sums = measure_range(
                &scores[0, 0], voted, vote_scores, &self.labels[0], &self.base[0], fusion,
                &self.z[0, 0], &self.flags[0], self.n_classes, c * CHUNK, min(self.n, (c + 1) * CHUNK),
            )
            measured += sums.measurement_units
            alone += sums.component_units
        return measured, alone

    def misses(self, const double[:, ::1] scores):
        """Return the weight of the rows that the scores miss, in units."""
        cdef int64_t c, missed = 0
        if self.n_chunks == 1:
            return missed_range(&scores[0, 0], &self.labels[0], &self.base[0], self.n_classes, 0, self.n)
        for c in prange(self.n_chunks, nogil=True, num_threads=self.n_threads, schedule="dynamic"):
            missed += missed_range(
                &scores[0, 0], &self.labels[0], &self.base[0], self.n_classes, c * CHUNK, min(self.n, (c + 1) * CHUNK)
            )
        return missed


cdef int64_t sum_range(const double *values, double half_scale, double other_half, int64_t n) noexcept nogil:
    cdef int64_t i, total = 0
    for i in range(n):
        total += <int64_t> (values[i] * half_scale * other_half + 0.5)
    return total


cdef double highest_range(const double *values, int64_t n) noexcept nogil:
    cdef int64_t i, bad = 0
    cdef double top = 0
    for i in range(n):
        if values[i] > top:
            top = values[i]
        bad += not 0 <= values[i] <= 1.7976931348623157e308
    return NAN if bad else top


cpdef double highest(const double[::1] values, int n_threads=1) noexcept:
    """Return the maximum of non-negative values, 0 if there are none; NaN if one is negative or not finite."""
    cdef int64_t c, n = values.shape[0], n_chunks = chunks(n, n, n_threads)
    cdef double top
    cdef vector[double] tops = vector[double](n_chunks)
    if n == 0:
        return 0
    if n_chunks == 1:
        return highest_range(&values[0], n)
    for c in prange(n_chunks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        tops[c] = highest_range(&values[c * CHUNK], min(<int64_t> CHUNK, n - c * CHUNK))
    top = tops[0]
    for c in range(1, n_chunks):
        top = tops[c] if tops[c] != tops[c] or tops[c] > top else top  # keeps NaN
    return top


cpdef int unit_of(double top, int64_t n) noexcept:
    """Return u such that n values of at most ``top`` can be summed as integers in units of 2^-u."""
    cdef int exponent, length_exponent
    frexp(top, &exponent)
    frexp(<double> n, &length_exponent)
    return 61 - exponent - length_exponent


cpdef int64_t sum_of_units(const double[::1] values, int unit, int n_threads=1) noexcept:
    """Return the sum of values in units of 2^-unit, each rounded to an integer."""
    cdef int64_t c, total = 0, n = values.shape[0]
    cdef int64_t n_chunks = chunks(n, n, n_threads)
    # In two steps, because the scale of very small values would overflow.
    cdef double half_scale = ldexp(1.0, unit // 2), other_half = ldexp(1.0, unit - unit // 2)
    if n == 0:
        return 0
    if n_chunks == 1:
        return sum_range(&values[0], half_scale, other_half, n)
    for c in prange(n_chunks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        total += sum_range(&values[c * CHUNK], half_scale, other_half, min(<int64_t> CHUNK, n - c * CHUNK))
    return total


cpdef double exact_sum(const double[::1] values, int n_threads=1) noexcept:
    """Return the fixed-point sum of non-negative values; NaN if one is negative or not finite."""
    cdef double top = highest(values, n_threads)
    cdef int unit
    if top != top:
        return top
    unit = unit_of(top, values.shape[0])
    return ldexp(<double> sum_of_units(values, unit, n_threads), -unit)


def divide(double[::1] values, double divisor, int n_threads=1):
    """Divide values, in place."""
    cdef int64_t i, n = values.shape[0]
    if chunks(n, n, n_threads) == 1:
        for i in range(n):
            values[i] /= divisor
    else:
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=CHUNK):
            values[i] = values[i] / divisor


def multiply(const double[::1] weights, const cpp_bool[::1] missed, double right, double wrong, int n_threads=1):
    """Multiply weights by one factor for rows that are right and another for rows that were missed."""
    cdef int64_t i, n = weights.shape[0]
    result = np.empty(n)
    cdef double[::1] products = result
    if chunks(n, n, n_threads) == 1:
        for i in range(n):
            products[i] = weights[i] * (wrong if missed[i] else right)
    else:
        for i in prange(n, nogil=True, num_threads=n_threads, schedule="dynamic", chunksize=CHUNK):
            products[i] = weights[i] * (wrong if missed[i] else right)
    return result


cdef int64_t sum_squares(const double *values, double half_scale, double other_half, int64_t n) noexcept nogil:
    cdef int64_t i, total = 0
    for i in range(n):
        total += <int64_t> (values[i] * values[i] * half_scale * other_half + 0.5)
    return total


def squares_of_units(const double[::1] values, int unit, int n_threads=1):
    """Return the sum of squares in units of 2^-unit, each rounded to an integer."""
    cdef int64_t c, total = 0, n = values.shape[0], n_chunks = chunks(n, n, n_threads)
    cdef double half_scale = ldexp(1.0, unit // 2), other_half = ldexp(1.0, unit - unit // 2)
    if n == 0:
        return 0
    if n_chunks == 1:
        return sum_squares(&values[0], half_scale, other_half, n)
    for c in prange(n_chunks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        total += sum_squares(&values[c * CHUNK], half_scale, other_half, min(<int64_t> CHUNK, n - c * CHUNK))
    return total


def effective_sample_size(const double[::1] weights, int n_threads=1):
    """Return the effective sample size of weights that sum to 1: 1 / sum(weights ** 2), summed as in `exact_sum`."""
    cdef double top = highest(weights, n_threads)
    cdef int unit = unit_of(top * top, weights.shape[0])
    return 1 / ldexp(<double> squares_of_units(weights, unit, n_threads), -unit)


def class_totals(const int32_t[::1] labels, const int32_t[::1] weights, int64_t n_classes):
    """Return the sum of integer weights, one per row, for each class (int64)."""
    cdef int64_t i
    result = np.zeros(n_classes, dtype=np.int64)
    cdef int64_t[::1] totals = result
    for i in range(labels.shape[0]):
        totals[labels[i]] += weights[i]
    return result


def margins(const double[:, ::1] scores, const int32_t[::1] labels):
    """Return the score of each row's label minus the highest other score."""
    cdef int64_t i, k
    cdef double other
    result = np.empty(labels.shape[0])
    cdef double[::1] leads = result
    for i in range(labels.shape[0]):
        other = 0
        for k in range(scores.shape[1]):
            if k != labels[i] and scores[i, k] > other:
                other = scores[i, k]
        leads[i] = scores[i, labels[i]] - other
    return result
