"""Settling: whose highest score can't be turned any more, whatever votes are still to come.

A tree's votes are not negative, and sum to its weight. Scores are multiplied by a factor of their class
before the highest decides.
"""

from libc.stdint cimport int32_t, int64_t


cdef inline bint is_settled(
    const double *scores, const double *factors, int64_t n_classes, double to_come
) noexcept nogil:
    """Whether the highest of a row's scores stays ahead even if all votes to come are for another one."""
    cdef int64_t k, best = 0
    for k in range(1, n_classes):
        if scores[k] * factors[k] > scores[best] * factors[best]:
            best = k
    for k in range(n_classes):
        if k != best and not scores[best] * factors[best] > (scores[k] + to_come) * factors[k]:
            return False
    return True


cdef inline int64_t find_open(
    const double *scores, const int32_t *places, int64_t n_rows, const double *factors, int64_t n_classes,
    double to_come, int32_t *found,
) noexcept nogil:
    """Find the rows, by their position among the places of their scores, that are not settled yet; return how many."""
    cdef int64_t i, n = 0
    for i in range(n_rows):
        found[n] = <int32_t> i
        n += not is_settled(&scores[places[i] * n_classes], factors, n_classes, to_come)
    return n
