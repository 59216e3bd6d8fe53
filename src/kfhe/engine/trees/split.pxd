"""What a split is, what it is judged by, and when one beats another."""

from libc.math cimport nextafter
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

cdef struct Split:
    double score  # sum of squared class weights over the weight, added up over both children; 0: no split
    int64_t left_weight
    int32_t feature
    bint categorical
    bint missing_left
    int last_left  # numeric: the last bin of the left child that has rows in the node
    int first_right  # and the first bin of the right one
    uint64_t left_bins[4]  # categorical: the bins that go left

cdef struct NodeTotals:
    const int64_t *classes  # weight of each class
    int64_t n_classes
    int64_t weight
    int64_t count  # rows as min_samples_leaf counts them
    int64_t squares  # sum of the squared class weights
    int64_t min_count  # smallest count that a child may have
    bint weighted  # rows count as 1 each, not as their weight

cdef struct Row:
    uint32_t weight
    uint32_t label

# A candidate is worth a division only if it may beat the best; the margin covers rounding.
cdef extern from *:
    """
    static const double KFHE_MARGIN = 1 - 1e-12;
    """
    const double MARGIN "KFHE_MARGIN"


cdef inline bint better(const Split *challenger, const Split *champion) noexcept nogil:
    """Higher score; on a tie the lower feature."""
    if challenger.score != champion.score:
        return challenger.score > champion.score
    return challenger.score > 0 and challenger.feature < champion.feature


cdef inline double bar_for(int32_t feature, const Split *champion) noexcept nogil:
    """Score that a split of a feature has to exceed to be better than the champion; it may tie with a later feature."""
    return champion.score if feature > champion.feature else nextafter(champion.score, 0)


cdef inline bint improves(
    double left_squares, double right_squares, int64_t left_weight, int64_t weight, Split *best
) noexcept nogil:
    """Score a candidate and say whether it beats the best so far, which then gets its score."""
    cdef double left = <double> left_weight, right = <double> (weight - left_weight), score
    cdef double numerator = left_squares * right + right_squares * left
    cdef double denominator = left * right
    if numerator <= best.score * MARGIN * denominator:
        return False
    score = numerator / denominator
    if score <= best.score:
        return False
    best.score = score
    best.left_weight = left_weight
    return True
