"""Settling: whose highest score can't be turned any more, whatever votes are still to come.

A tree's votes are not negative, and sum to its weight. Scores are multiplied by a factor of their class
before the highest decides.
"""

from libc.stdint cimport int32_t, int64_t


cdef inline double higher(double one, double other) noexcept nogil:
    return one if one > other else other


cdef inline double lower(double one, double other) noexcept nogil:
    return one if one < other else other


cdef inline bint is_settled(
    const double *scores, const double *factors, int64_t n_classes, double to_come, double leeway
) noexcept nogil:
    """Whether the highest of a row's scores stays ahead even if all votes to come are for another one.

    The highest that a class may get to must be further ahead of the second than the votes to come can have made it;
    they are taken times the largest factor for that (``leeway``), so that there is no branch to guess.
    """
    cdef int64_t k
    cdef double possible, highest = 0, second = 0
    for k in range(n_classes):
        possible = (scores[k] + to_come) * factors[k]
        second = higher(second, lower(highest, possible))
        highest = higher(highest, possible)
    return highest - leeway > second


cdef inline int64_t find_open(
    const double *scores, const int32_t *places, int64_t n_rows, const double *factors, int64_t n_classes,
    double to_come, int32_t *found,
) noexcept nogil:
    """Find the rows, by their position among the places of their scores, that are not settled; return how many."""
    cdef int64_t i, k, n = 0
    cdef double leeway = 0
    for k in range(n_classes):
        leeway = higher(leeway, to_come * factors[k])
    for i in range(n_rows):
        found[n] = <int32_t> i
        n += not is_settled(&scores[places[i] * n_classes], factors, n_classes, to_come, leeway)
    return n
