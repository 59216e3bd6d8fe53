"""Bounds: whether any cut within a stretch of rows or of bins of two classes may beat the best split so far.

With l_k of class k on the left and t_k in the node, a cut gains 2 v^2 / (left * right * weight), where
v = t_0 l_1 - t_1 l_0. Within a stretch, v is highest if all rows of the second class come first, and lowest if they
come last. So what is left of the two ends says how good a cut in between can be, and only few stretches have to be
tried cut by cut.
"""

from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from kfhe.engine.trees.split cimport MARGIN, NodeTotals, Split, improves

cdef struct Bound:
    double first  # t_0
    double second  # t_1
    double weight  # of the node
    double squares  # t_0^2 + t_1^2
    double least  # weight that may be left of a cut
    double most
    double bar  # for 2 v^2 / (left * right)
    double slack  # what rounding may take from 2 v^2


cdef inline Bound bound_of(const NodeTotals *node, double score) noexcept nogil:
    """Ask for more than a score."""
    cdef Bound bound
    bound.first, bound.second = <double> node.classes[0], <double> node.classes[1]
    bound.weight, bound.squares = <double> node.weight, <double> node.squares
    bound.least, bound.most = 1, bound.weight - 1
    if not node.weighted:
        bound.least, bound.most = <double> node.min_count, <double> (node.count - node.min_count)
    raise_bar(&bound, score)
    return bound


cdef inline double bar_above(double score, double weight, double squares) noexcept nogil:
    """What 2 v^2 / (left * right) has to exceed for a cut to be better than a score, if not by rounding alone."""
    return (score * MARGIN * weight - squares) * (1 - 1e-9)


cdef inline void raise_bar(Bound *bound, double score) noexcept nogil:
    cdef double weight = bound.weight
    bound.bar = bar_above(score, weight, bound.squares)
    bound.slack = 1e-12 * weight * weight * weight * sqrt(max(bound.bar, 0.0))


# What is left of a place.
cdef struct Place:
    double first
    double second


cdef inline Place place_of(int32_t first, int32_t second) noexcept nogil:
    cdef Place place
    place.first, place.second = <double> first, <double> second
    return place


cdef inline bint may_win(const Bound *bound, const Place *start, const Place *end) noexcept nogil:
    """Whether a cut between two places may clear the bar."""
    cdef double v = max(
        bound.first * end.second - bound.second * start.first, bound.second * end.first - bound.first * start.second
    )
    cdef double left = max(start.first + start.second, bound.least), right = min(end.first + end.second, bound.most)
    # The product of a cut's sides is least at one of the ends.
    cdef double product = min(left * (bound.weight - left), right * (bound.weight - right))
    return (left <= right) & (2 * v * v > bound.bar * product - bound.slack)


cdef inline bint cut_may_win(const Bound *bound, double first, double second) noexcept nogil:
    """Whether the cut at a place may clear the bar."""
    cdef double v = bound.first * second - bound.second * first, left = first + second
    return 2 * v * v > bound.bar * (left * (bound.weight - left)) - bound.slack


cdef inline bint cut_improves(
    int64_t first, int64_t second, int64_t count, const NodeTotals *node, Split *best
) noexcept nogil:
    """Score a cut, and say whether it beats the best; ``count`` rows are left of it, if each counts as one."""
    cdef int64_t right_first = node.classes[0] - first, right_second = node.classes[1] - second
    if not node.weighted:
        count = first + second
    if count < node.min_count or count > node.count - node.min_count:
        return False
    return improves(
        <double> (first * first + second * second),
        <double> (right_first * right_first + right_second * right_second), first + second, node.weight, best,
    )


# Sums of both classes in one number, so that one addition adds up both
cdef inline uint64_t pair_of(int32_t weight, int32_t label) noexcept nogil:
    return <uint64_t> <uint32_t> weight << (32 if label else 0)


cdef inline int32_t first_of(uint64_t pair) noexcept nogil:
    return <int32_t> <uint32_t> pair


cdef inline int32_t second_of(uint64_t pair) noexcept nogil:
    return <int32_t> (pair >> 32)
