"""Tallies: rows of two classes added up by bin, and the best cut between two of the bins that they are in.

For nodes of few rows that draw their features: there is no order to inherit, and rows need not be sorted within a bin.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from kfhe.engine.trees.bits cimport lowest_bit
from kfhe.engine.trees.bounds cimport bar_above, cut_improves, first_of, pair_of, second_of
from kfhe.engine.trees.split cimport NodeTotals, Split
from kfhe.engine.trees.splitting cimport add_up

import numpy as np

cdef enum:
    LANES = 4  # of which one need not wait for what another has just written


cdef void tally(
    const uint8_t *codes, const uint16_t *members, int64_t n_members, const uint64_t *pairs, Tallies *tallies
) noexcept nogil:
    """Find the bins of some rows, and what the rows up to each of them weigh; ``codes`` are those of one feature."""
    cdef uint64_t bits, cumulated = 0
    cdef int64_t i, b, lane, n = 0
    cdef uint8_t code
    for i in range(n_members):
        code = codes[members[i]]
        tallies.room[code] += pairs[members[i]]
        tallies.present[i % LANES][code >> 6] |= <uint64_t> 1 << (code & 63)
    for i in range(4):
        bits = tallies.present[0][i] | tallies.present[1][i] | tallies.present[2][i] | tallies.present[3][i]
        for lane in range(LANES):
            tallies.present[lane][i] = 0
        while bits:
            b = 64 * i + lowest_bit(bits)
            cumulated += tallies.room[b]
            tallies.room[b] = 0
            tallies.bins[n] = <uint8_t> b
            tallies.first[n], tallies.second[n] = first_of(cumulated), second_of(cumulated)
            n += 1
            bits &= bits - 1
    tallies.n_bins = n


cdef void cut_tallies(Tallies *tallies, uint32_t missing_bin, const NodeTotals *node, Split *best) noexcept nogil:
    """Try each threshold, with the missing values right of it and, if there are any, left of it."""
    cdef int64_t last = tallies.n_bins - 1, found, other
    cdef bint any_missing = tallies.bins[last] == missing_bin
    cdef int32_t first, second
    if last == 0:
        return
    found = best_cut(tallies, last, 0, 0, node, best)
    if found >= 0:
        best.missing_left = not any_missing and 2 * best.left_weight >= node.weight
    if any_missing:
        first, second = tallies.first[last] - tallies.first[last - 1], tallies.second[last] - tallies.second[last - 1]
        other = best_cut(tallies, last - 1, first, second, node, best)
        if other >= 0:
            found = other
            best.missing_left = True
    if found >= 0:
        best.last_left, best.first_right = tallies.bins[found], tallies.bins[found + 1]


cdef int64_t best_cut(
    Tallies *tallies, int64_t n_cuts, int32_t first, int32_t second, const NodeTotals *node, Split *best
) noexcept nogil:
    """Find the best of the first cuts, with some more weight left of it; -1: none is better than the best so far.

    All gains are estimated first, so that only those cuts are scored that come close to the highest.
    """
    cdef int64_t i, start = 0, found = -1, more = first + second
    cdef double weight = <double> node.weight, squares = <double> node.squares, highest, bar
    # The further right a cut is, the more is left of it.
    while start < n_cuts and tallies.first[start] + tallies.second[start] + more < node.min_count:
        start += 1
    while n_cuts > start and (
        tallies.first[n_cuts - 1] + tallies.second[n_cuts - 1] + more > node.count - node.min_count
    ):
        n_cuts -= 1
    if start == n_cuts:
        return -1
    highest = estimate_gains(tallies, start, n_cuts, first, second, node)
    if highest <= bar_above(best.score, weight, squares):
        return -1
    bar = bar_above((squares + highest) / weight, weight, squares)
    for i in range(start, n_cuts):
        if tallies.gains[i] > bar and cut_improves(tallies.first[i] + first, tallies.second[i] + second, 0, node, best):
            found = i
    return found


cdef double estimate_gains(
    Tallies *tallies, int64_t start, int64_t stop, int32_t first, int32_t second, const NodeTotals *node
) noexcept nogil:
    """Work out 2 v^2 / (left * right) for some cuts, as in `bounds`, and return the highest."""
    cdef double weight = <double> node.weight, of_first = <double> node.classes[0], of_second = <double> node.classes[1]
    cdef double left_first, left_second, left, v, gain, highest[LANES]
    cdef int64_t i, lane
    for i in range(start, stop):
        left_first, left_second = <double> (tallies.first[i] + first), <double> (tallies.second[i] + second)
        v, left = of_first * left_second - of_second * left_first, left_first + left_second
        tallies.gains[i] = 2 * v * v / (left * (weight - left))
    for lane in range(LANES):
        highest[lane] = tallies.gains[start]
    for i in range(start, stop - 3, 4):
        for lane in range(LANES):
            gain = tallies.gains[i + lane]
            highest[lane] = gain if gain > highest[lane] else highest[lane]
    for i in range(max(start, stop - LANES), stop):
        highest[0] = max(highest[0], tallies.gains[i])
    return max(max(highest[0], highest[1]), max(highest[2], highest[3]))


def best_tallied_split(
    const uint8_t[::1] codes, const uint16_t[::1] members, const int32_t[::1] labels, const int32_t[::1] weights,
    int64_t n_bins, int64_t min_samples_leaf,
):
    """Choose the best threshold of one numeric feature for some rows of two classes, as `best_split` does.

    ``codes``, ``labels`` and ``weights``, which are numbers of rows, are those of all rows.
    """
    cdef vector[uint64_t] pairs
    cdef vector[int32_t] totals = vector[int32_t](2)
    cdef vector[int64_t] classes = vector[int64_t](2)
    cdef Tallies tallies
    cdef NodeTotals node
    cdef Split split
    cdef int64_t i
    for i in range(labels.shape[0]):
        pairs.push_back(pair_of(weights[i], labels[i]))
    for i in range(members.shape[0]):
        totals[labels[members[i]]] += weights[members[i]]
    node = add_up(totals.data(), NULL, 1, classes)
    node.min_count = min_samples_leaf
    memset(&split, 0, sizeof(Split))
    memset(&tallies, 0, sizeof(Tallies))
    tally(&codes[0], &members[0], members.shape[0], pairs.data(), &tallies)
    cut_tallies(&tallies, <uint32_t> n_bins - 1, &node, &split)
    return split if split.score > 0 else None


def tallied(const uint8_t[::1] codes, const uint16_t[::1] members, const uint64_t[::1] pairs):
    """Return the bins that some rows (members) are in (uint8), and the weights of both classes up to each (int32).

    ``pairs`` are the weights of all rows, in their lower 32 bits if they are of the first class, in the upper ones if
    of the second.
    """
    cdef Tallies tallies
    memset(&tallies, 0, sizeof(Tallies))
    if members.shape[0]:
        tally(&codes[0], &members[0], members.shape[0], &pairs[0], &tallies)
    n = tallies.n_bins
    bins = np.array([tallies.bins[i] for i in range(n)], dtype=np.uint8)
    weights = np.array([(tallies.first[i], tallies.second[i]) for i in range(n)], dtype=np.int32).reshape(-1, 2)
    return bins, weights
