"""Sorting: numbers by their bits, which many of them take less time for than by comparing."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

cdef enum:
    FEW = 4096  # numbers that are sorted faster by comparing
    BITS = 11  # that numbers are dealt out by in one round
    PILES = 2048
    ROUNDS = 6


cdef inline uint64_t key_of(double value) noexcept nogil:
    """Bits of a number, such that a larger number has larger ones."""
    cdef uint64_t bits
    memcpy(&bits, &value, sizeof(double))
    return ~bits if bits >> 63 else bits | <uint64_t> 1 << 63


cdef inline double value_of(uint64_t key) noexcept nogil:
    cdef uint64_t bits = key & ~(<uint64_t> 1 << 63) if key >> 63 else ~key
    cdef double value
    memcpy(&value, &bits, sizeof(double))
    return value


cdef inline void sort_numbers(vector[double] &values) noexcept nogil:
    """Sort numbers, none of which is NaN."""
    cdef int64_t i, n = <int64_t> values.size()
    cdef int r, b
    cdef uint64_t key, start, size
    cdef vector[uint64_t] keys, dealt
    cdef vector[uint64_t] piles
    if n <= FEW:
        sort(values.begin(), values.end())
        return
    keys.resize(n)
    dealt.resize(n)
    piles.resize(ROUNDS * PILES)
    for i in range(n):
        key = keys[i] = key_of(values[i])
        for r in range(ROUNDS):
            piles[r * PILES + (key >> (r * BITS) & (PILES - 1))] += 1
    for r in range(ROUNDS):
        start = 0
        for b in range(PILES):
            size = piles[r * PILES + b]
            piles[r * PILES + b] = start
            start += size
        for i in range(n):
            b = <int> (keys[i] >> (r * BITS) & (PILES - 1))
            dealt[piles[r * PILES + b]] = keys[i]
            piles[r * PILES + b] += 1
        keys.swap(dealt)
    for i in range(n):
        values[i] = value_of(keys[i])
