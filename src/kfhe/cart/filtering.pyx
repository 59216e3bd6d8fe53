"""The array work around the two filters, one pass over the rows per call.

Sums run over integers, so they come out the same in any order and on any number of threads.
"""

from cython.parallel cimport prange
from libc.math cimport frexp, ldexp
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

cdef enum:
    PARALLEL_CELLS = 65536


cdef inline int parallel_threads(int64_t cells, int n_threads) noexcept nogil:
    return n_threads if cells >= PARALLEL_CELLS else 1


cdef inline int64_t largest(const double *values, int64_t n) noexcept nogil:
    """Position of the largest value; the first one of equals."""
    cdef int64_t k, best = 0
    for k in range(1, n):
        if values[k] > values[best]:
            best = k
    return best


def correct(double[::1] state, const double[::1] measurement, double gain, int n_threads=1):
    """Move a state towards a measurement, in place: ``state += gain * (measurement - state)``."""
    cdef int64_t i, n = state.shape[0]
    cdef int threads = parallel_threads(n, n_threads)
    with nogil:
        for i in prange(n, num_threads=threads, schedule="static"):
            state[i] += gain * (measurement[i] - state[i])


cdef inline int64_t measure_row(
    const double *scores, const double *vote, int64_t voted, int64_t n_classes, double *measurement
) noexcept nogil:
    """Average a row's scores with a vote (class ``voted``, or scores if it is -1); return its class."""
    cdef int64_t k
    if voted >= 0:
        for k in range(n_classes):
            measurement[k] = scores[k] / 2
        measurement[voted] = (scores[voted] + 1) / 2
    else:
        for k in range(n_classes):
            measurement[k] = (scores[k] + vote[k]) / 2
    return largest(measurement, n_classes)


def measure(
    const double[:, ::1] scores,
    votes,
    const int32_t[::1] labels,
    const int64_t[::1] units,
    double[:, ::1] measurement,
    uint8_t[::1] missed,
    int n_threads=1,
):
    """Take the measurement z = (scores + votes) / 2, into ``measurement``.

    ``votes`` holds a class per row, or a score per row and class. ``missed`` gets 1 where the
    measurement's class is wrong. Returns the summed ``units`` (base weights as integers) of the
    rows that the measurement misses, and of those that the votes alone miss.
    """
    cdef int64_t i, n = scores.shape[0], n_classes = scores.shape[1]
    cdef int64_t measurement_units = 0, component_units = 0, voted
    cdef const int32_t[::1] classes
    cdef const double[:, ::1] vote_scores
    cdef bint hard = votes.ndim == 1
    cdef int threads = parallel_threads(n * n_classes, n_threads)
    if hard:
        classes = votes
        for i in prange(n, nogil=True, num_threads=threads, schedule="static"):
            voted = classes[i]
            missed[i] = measure_row(&scores[i, 0], NULL, voted, n_classes, &measurement[i, 0]) != labels[i]
            measurement_units += missed[i] * units[i]
            component_units += (voted != labels[i]) * units[i]
    else:
        vote_scores = votes
        for i in prange(n, nogil=True, num_threads=threads, schedule="static"):
            missed[i] = (
                measure_row(&scores[i, 0], &vote_scores[i, 0], -1, n_classes, &measurement[i, 0]) != labels[i]
            )
            measurement_units += missed[i] * units[i]
            component_units += (largest(&vote_scores[i, 0], n_classes) != labels[i]) * units[i]
    return measurement_units, component_units


def missed_units(
    const double[:, ::1] scores, const int32_t[::1] labels, const int64_t[::1] units, int n_threads=1
):
    """Sum the units of the rows whose largest score is not their label's."""
    cdef int64_t i, total = 0, n = scores.shape[0], n_classes = scores.shape[1]
    cdef int threads = parallel_threads(n * n_classes, n_threads)
    for i in prange(n, nogil=True, num_threads=threads, schedule="static"):
        total += (largest(&scores[i, 0], n_classes) != labels[i]) * units[i]
    return total


def exact_sum(const double[::1] values, int n_threads=1):
    """Sum non-negative values over fixed-point integers; NaN if one is negative or not finite."""
    cdef int64_t i, total = 0, bad = 0, n = values.shape[0]
    cdef int exponent, length_exponent, shift, threads = parallel_threads(n, n_threads)
    cdef double top = 0, half_scale, other_half
    for i in range(n):
        if values[i] > top:
            top = values[i]
        bad += not 0 <= values[i] <= 1.7976931348623157e308
    if bad:
        return float("nan")
    frexp(top, &exponent)
    frexp(<double> n, &length_exponent)
    shift = 61 - exponent - length_exponent
    # In two halves: the scale of very small values is no double.
    half_scale = ldexp(1.0, shift // 2)
    other_half = ldexp(1.0, shift - shift // 2)
    for i in prange(n, nogil=True, num_threads=threads, schedule="static"):
        total += <int64_t> (values[i] * half_scale * other_half + 0.5)
    return ldexp(<double> total, -shift)
